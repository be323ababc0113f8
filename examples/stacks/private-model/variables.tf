# Some defaults are values of the sandbox.
variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "private-model"
}

variable "spec_type" {
  description = "The specification of an instance."
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

variable "serve" {
  description = "Whether the server runs. It needs the model on the disk."
  type        = bool
  default     = true
}

variable "chat_key" {
  description = "The key that clients send. The state contains it."
  type        = string
  sensitive   = true
}

variable "disk_spec_id" {
  description = "The specification of a disk: block storage."
  type        = number
  default     = 31
}

variable "disk_size_gb" {
  description = "The capacity of the disk, which can grow but not shrink."
  type        = number
  default     = 100
}

variable "deletion_protection" {
  description = "Whether a plan that deletes a disk is refused. To delete one: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 5
}
