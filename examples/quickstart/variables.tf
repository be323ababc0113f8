variable "name" {
  description = "What the machine is called."
  type        = string
  default     = "quickstart"
}

variable "gpu_num" {
  description = "How many GPUs it has."
  type        = number
  default     = 1
}
