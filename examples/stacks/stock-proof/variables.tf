variable "name" {
  description = "What the workers are called, with a number behind it."
  type        = string
  default     = "worker"
}

variable "workers" {
  description = "How many workers."
  type        = number
  default     = 2
}

variable "candidates" {
  description = "Specifications in order of preference. Taking the chosen one off the list replaces the worker."
  type = list(object({
    spec_type = string
    region    = string
  }))
  default = [
    { spec_type = "gpu.rtx4090.1", region = "cn-east-1" },
    { spec_type = "gpu.a100-80g.1", region = "cn-north-2" },
    { spec_type = "gpu.a100-80g.1", region = "cn-east-1" },
    { spec_type = "gpu.h100-80g.1", region = "cn-east-1" },
  ]
}

variable "account_budget" {
  description = "The most that all instances of the account may cost an hour."
  type        = number
  default     = 60
}
