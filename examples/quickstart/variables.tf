variable "name" {
  description = "What the instance is called."
  type        = string
  default     = "quickstart"
}

variable "gpu_num" {
  description = "How many GPUs it has."
  type        = number
  default     = 1
}

variable "model" {
  description = "A GGUF file in the instance that it is to serve, such as ~/public-storage/model/tiny.gguf on the sandbox. None: it serves nothing."
  type        = string
  default     = null
}

variable "prompt" {
  description = "What the model is asked."
  type        = string
  default     = "Say hello to Terraform."
}
