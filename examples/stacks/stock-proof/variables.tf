variable "name" {
  description = "The prefix of the names."
  type        = string
  default     = "worker"
}

variable "workers" {
  description = "How many workers."
  type        = number
  default     = 2
}

variable "candidates" {
  description = "Specifications in order of preference. A changed list never replaces a worker that exists."
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

variable "max_account_hourly_price" {
  description = "The maximum price of all instances of the account per hour."
  type        = number
  default     = 60
}
