variable "name" {
  description = "The name of the instance, and the prefix of its disk's name."
  type        = string
  default     = "training"
}

variable "gpu_num" {
  description = "How many GPUs."
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

variable "checkpoint_size_gb" {
  description = "The disk for checkpoints, which can grow but not shrink."
  type        = number
  default     = 100
}

variable "protect_checkpoints" {
  description = "Whether destroying the checkpoints is refused. To destroy them: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "dataset_size_gb" {
  description = "Extra local disk for the data set."
  type        = number
  default     = 200
}

variable "hourly_budget" {
  description = "The maximum price of the instance per hour."
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
