variable "model_url" {
  description = "The address of a GGUF file; on the sandbox its own address with /files/tiny.gguf."
  type        = string
}

variable "chat_key" {
  description = "The key that clients send."
  type        = string
  sensitive   = true
  ephemeral   = true
}
