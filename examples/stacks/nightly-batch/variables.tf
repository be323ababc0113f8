# Some defaults are values of the sandbox.
variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "nightly-batch"
}

variable "spec_types" {
  description = "Specifications in order of preference."
  type        = list(string)
  default     = ["gpu.rtx4090.1", "gpu.v100-32g.1"]
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "PyTorch 2.5.1"
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 10
}
