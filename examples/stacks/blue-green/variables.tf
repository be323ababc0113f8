# Some defaults are values of the sandbox.
variable "name" {
  description = "The prefix of the names."
  type        = string
  default     = "chat"
}

variable "colors" {
  description = "Which of the two servers run."
  type        = set(string)
  default     = ["blue"]
}

variable "live" {
  description = "Which server clients use."
  type        = string
  default     = "blue"
}

variable "models" {
  description = "The model of each server."
  type        = map(string)

  default = {
    blue  = "~/public-storage/model/tiny.gguf"
    green = "~/public-storage/model/tiny.gguf"
  }
}

variable "canary" {
  description = "The question that a new model must answer, and a pattern for its answer."
  type        = object({ prompt = string, expect = string })

  default = {
    prompt = "Reply with the word pong."
    expect = "(?i)pong"
  }
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "llama.cpp"
}

variable "max_hourly_price" {
  description = "The maximum price of an instance per hour."
  type        = number
  default     = 5
}
