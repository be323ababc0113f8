# Some defaults are values of the sandbox.
variable "name" {
  description = "The prefix of the names."
  type        = string
  default     = "gateway"
}

variable "members" {
  description = "The servers by name, with the local port that each has on the gateway."
  type        = map(number)
  default     = { a = 8001, b = 8002 }
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "model" {
  description = "The model, a GGUF file in each instance."
  type        = string
  default     = "~/public-storage/model/tiny.gguf"
}

variable "alias" {
  description = "The name of the model in requests."
  type        = string
  default     = "chat"
}

variable "address" {
  description = "The address for clients. For a public name, Caddy gets a certificate by itself."
  type        = string
  default     = "https://localhost:8443"
}

variable "is_internal" {
  description = "Whether Caddy's own authority issues the certificate: for names that are not public."
  type        = bool
  default     = true
}

variable "request_buffers" {
  description = "The option of Caddy that buffers requests. In Debian 12 (Caddy 2.6.2) it is buffer_requests."
  type        = string
  default     = "request_buffers 16MiB"
}

variable "program" {
  description = "The path of this provider's program on the gateway."
  type        = string
  default     = "/usr/local/bin/terraform-provider-damodel"
}

variable "chat_key" {
  description = "The key that clients send. The state contains it."
  type        = string
  sensitive   = true
}
