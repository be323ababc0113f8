# The defaults of specification, image and model are values of the sandbox.
variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "private-model"
}

variable "spec_type" {
  description = "The specification of the instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "llama.cpp"
}

variable "model" {
  description = "The model's file in the instance, such as /data/models/private.gguf on the disk."
  type        = string
  default     = "~/public-storage/model/tiny.gguf"
}

variable "chat_key" {
  description = "The key that the server asks its clients for."
  type        = string
  sensitive   = true
}

variable "disk_spec_id" {
  description = "The specification of the disk: block storage."
  type        = number
  default     = 31
}

variable "disk_size_gb" {
  description = "The capacity of the disk, which can grow but not shrink."
  type        = number
  default     = 100
}

variable "protect_models" {
  description = "Whether a plan may not delete the disk."
  type        = bool
  default     = false
}

variable "hourly_budget" {
  description = "The most that the instance may cost per hour."
  type        = number
  default     = 5
}
