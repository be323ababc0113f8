variable "name" {
  description = "What the image is called, and the instances after it."
  type        = string
  default     = "team-base"
}

variable "release" {
  description = "Another number makes another image. It needs the builder."
  type        = number
  default     = 1
}

variable "keep_builder" {
  description = "Whether the builder exists. It is billed as long as it does."
  type        = bool
  default     = true
}

variable "workers" {
  description = "How many instances are made of the image."
  type        = number
  default     = 1
}
