variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "model-fit"
}

variable "model_file" {
  description = "The GGUF file on the computer that runs Terraform."
  type        = string
  default     = "model.gguf"
}

variable "model" {
  description = "The same file in the instance."
  type        = string
  default     = "~/public-storage/model/tiny.gguf"
}

variable "context_size" {
  description = "The context in tokens, for all chats together."
  type        = number
  default     = 16384
}

variable "parallel" {
  description = "How many chats are served at once."
  type        = number
  default     = 2
}

variable "gpus" {
  description = "A regular expression for the GPU models to choose from."
  type        = string
  default     = "A100|H100|4090"
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 15
}
