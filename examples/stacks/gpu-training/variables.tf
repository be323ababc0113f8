variable "name" {
  description = "What the instance is called, and its disk after it."
  type        = string
  default     = "training"
}

variable "gpu_num" {
  description = "How many GPUs."
  type        = number
  default     = 2
}

variable "min_gpu_mem_gb" {
  description = "The least memory of each GPU."
  type        = number
  default     = 24
}

variable "spot" {
  description = "Whether the instance may be taken away, for a lower price."
  type        = bool
  default     = false
}

variable "checkpoint_size_gb" {
  description = "The disk for checkpoints. It can grow and never shrink."
  type        = number
  default     = 100
}

variable "protect_checkpoints" {
  description = "Whether a destroy of the checkpoints is refused. To destroy them: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "dataset_size_gb" {
  description = "Extra local disk for the data set."
  type        = number
  default     = 200
}

variable "hourly_budget" {
  description = "The most that the instance may cost an hour."
  type        = number
  default     = 30
}

variable "hours" {
  description = "How long the run is expected to take."
  type        = number
  default     = 24
}

variable "run_budget" {
  description = "The most that the whole run should cost: above it a warning is shown."
  type        = number
  default     = 500
}
