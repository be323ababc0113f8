variable "name" {
  description = "The prefix of the names."
  type        = string
  default     = "fleet"
}

variable "fleet" {
  description = "The members by name: which GPU (a regular expression), how many, and the model, a GGUF file in the instance."
  type = map(object({
    gpu          = string
    gpu_num      = optional(number, 1)
    model        = string
    context_size = optional(number, 32768)
    parallel     = optional(number, 1)
  }))
  default = {
    small = {
      gpu   = "RTX-?4090"
      model = "~/public-storage/model/tiny.gguf"
    }
    large = {
      gpu          = "A100"
      model        = "~/public-storage/model/tiny.gguf"
      context_size = 65536
      parallel     = 4
    }
  }
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 20
}

variable "chat_key" {
  description = "The key that clients send. The state contains it."
  type        = string
  sensitive   = true
}

variable "ask_canary" {
  description = "Whether each plan asks one member a question."
  type        = bool
  default     = true
}
