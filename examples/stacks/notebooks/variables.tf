# The defaults of specifications and images are values of the sandbox.
variable "name" {
  description = "The beginning of each name."
  type        = string
  default     = "notebook"
}

variable "members" {
  description = "Who gets a notebook."
  type        = set(string)
  default     = ["ada", "grace"]
}

variable "spec_type" {
  description = "The specification of each instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image with Jupyter."
  type        = string
  default     = "PyTorch 2.5.1"
}

variable "disk_spec_id" {
  description = "The specification of the disks: block storage."
  type        = number
  default     = 31
}

variable "home_size_gb" {
  description = "The capacity of each disk, which can grow but not shrink."
  type        = number
  default     = 50
}

variable "protect_homes" {
  description = "Whether a plan may not delete the disks."
  type        = bool
  default     = false
}

variable "instance_budget" {
  description = "The most that one instance may cost per hour."
  type        = number
  default     = 5
}

variable "account_budget" {
  description = "The most that all instances of the account may cost per hour."
  type        = number
  default     = 20
}
