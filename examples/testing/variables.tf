variable "name" {
  description = "The name of the instance and its disk."
  type        = string
  default     = "workbench"
}

variable "gpu_num" {
  description = "How many GPUs the instance has."
  type        = number
  default     = 1
}

variable "disk_size_gb" {
  description = "The disk's capacity, which can grow but not shrink."
  type        = number
  default     = 50

  validation {
    condition     = var.disk_size_gb >= 50
    error_message = "The disk must have at least 50 GB."
  }
}

# OpenTofu takes values of an earlier run only in the variables of a run.
variable "earlier" {
  description = "For the tests: the ids of an earlier run."
  type        = map(string)
  default     = {}
}
