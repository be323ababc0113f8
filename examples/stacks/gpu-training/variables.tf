variable "name" {
  description = "The name of the instance, and the prefix of its disk's name."
  type        = string
  default     = "training"
}

variable "running" {
  description = "Whether the instance exists. Without it, only the disk is billed."
  type        = bool
  default     = true
}

variable "gpu_num" {
  description = "How many GPUs an instance has."
  type        = number
  default     = 2
}

variable "min_gpu_mem_gb" {
  description = "The minimum memory of each GPU."
  type        = number
  default     = 24
}

variable "spot" {
  description = "Whether to use spot capacity: cheaper, but the service may release the instance."
  type        = bool
  default     = false
}

variable "disk_size_gb" {
  description = "The capacity of the disk, which can grow but not shrink."
  type        = number
  default     = 100
}

variable "deletion_protection" {
  description = "Whether a plan that deletes a disk is refused. To delete one: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "dataset_size_gb" {
  description = "Extra local disk for the data set."
  type        = number
  default     = 200
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 30
}

variable "hours" {
  description = "How long the run is expected to take."
  type        = number
  default     = 24
}

variable "run_budget" {
  description = "The maximum cost of the whole run; above it the plan warns."
  type        = number
  default     = 500
}
