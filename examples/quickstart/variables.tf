variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "quickstart"
}

# The defaults of specification and image are values of the sandbox. docs/guides/getting-started.md shows how to list those of your
# account.
variable "spec_type" {
  description = "The specification of the instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "PyTorch 2.5.1"
}

variable "gpu_num" {
  description = "How many GPUs the instance has."
  type        = number
  default     = 1
}

variable "model_url" {
  description = "The address of a GGUF file to serve; on the sandbox its own address with /files/tiny.gguf. Default: no model server."
  type        = string
  default     = null
}

variable "prompt" {
  description = "The question to the model."
  type        = string
  default     = "Say hello to Terraform."
}
