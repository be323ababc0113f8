# Some defaults are values of the sandbox.
variable "run" {
  description = "A different value in each run of the pipeline, such as its number."
  type        = string
  default     = "local"
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "PyTorch 2.5.1"
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 5
}
