# The defaults of specification, image and models are values of the sandbox.
variable "name" {
  description = "The beginning of each name."
  type        = string
  default     = "chat"
}

variable "colors" {
  description = "Which of the two run."
  type        = set(string)
  default     = ["blue"]
}

variable "live" {
  description = "Which of them clients use."
  type        = string
  default     = "blue"
}

variable "models" {
  description = "The model of each."
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
  description = "The specification of the instances."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "image" {
  description = "The name of a public image."
  type        = string
  default     = "llama.cpp"
}

variable "hourly_budget" {
  description = "The most that one instance may cost per hour."
  type        = number
  default     = 5
}
