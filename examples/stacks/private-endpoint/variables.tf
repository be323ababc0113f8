# Some defaults are values of the sandbox.
variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "private-endpoint"
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "model" {
  description = "The model, a GGUF file in the instance."
  type        = string
  default     = "~/public-storage/model/tiny.gguf"
}

variable "chat_key" {
  description = "The key that clients send."
  type        = string
  sensitive   = true
  ephemeral   = true
}

variable "command" {
  description = "The application: a command of the shell."
  type        = string
  default     = "curl --fail --silent --show-error --header \"Authorization: Bearer $OPENAI_API_KEY\" $OPENAI_BASE_URL/models"
}
