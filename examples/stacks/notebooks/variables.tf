# Some defaults are values of the sandbox.
variable "name" {
  description = "The prefix of the names."
  type        = string
  default     = "notebook"
}

variable "members" {
  description = "Who gets a notebook."
  type        = set(string)
  default     = ["ada", "grace"]
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image with Jupyter."
  type        = string
  default     = "PyTorch 2.5.1"
}

variable "disk_spec_id" {
  description = "The specification of a disk: block storage."
  type        = number
  default     = 31
}

variable "disk_size_gb" {
  description = "The capacity of each disk, which can grow but not shrink."
  type        = number
  default     = 50
}

variable "deletion_protection" {
  description = "Whether a plan that deletes a disk is refused. To delete one: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 5
}

variable "max_account_hourly_price" {
  description = "The maximum price of all instances of the account per hour."
  type        = number
  default     = 20
}
