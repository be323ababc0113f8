variable "name" {
  description = "The name of the image, and the prefix of the instances' names."
  type        = string
  default     = "team-base"
}

variable "release" {
  description = "The number of the image; 0 for the builder alone. A new number creates a new image, which needs the builder."
  type        = number
  default     = 1
}

variable "keep_builder" {
  description = "Whether the builder exists and is billed."
  type        = bool
  default     = true
}

variable "workers" {
  description = "How many instances are created from the image."
  type        = number
  default     = 1
}
