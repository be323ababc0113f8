variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "quickstart"
}

variable "gpu_num" {
  description = "How many GPUs it has."
  type        = number
  default     = 1
}

variable "model" {
  description = "A GGUF file in the instance to serve, such as ~/public-storage/model/tiny.gguf on the sandbox. Default: no model server."
  type        = string
  default     = null
}

variable "prompt" {
  description = "The question to the model."
  type        = string
  default     = "Say hello to Terraform."
}
