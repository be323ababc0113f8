# The defaults of specification and image are values of the sandbox.
variable "run" {
  description = "What tells the runs of the pipeline apart, such as the number of the run."
  type        = string
  default     = "local"
}

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

variable "hourly_budget" {
  description = "The most that the instance may cost per hour."
  type        = number
  default     = 5
}
