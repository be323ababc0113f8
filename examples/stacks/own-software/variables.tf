# Some defaults are values of the sandbox.
variable "name" {
  description = "The name of the instance."
  type        = string
  default     = "own-software"
}

variable "spec_type" {
  description = "The specification of an instance."
  type        = string
  default     = "gpu.rtx4090.1"
}

variable "disk_spec_id" {
  description = "The specification of a disk: block storage."
  type        = number
  default     = 31
}

variable "commands" {
  description = "The commands that install and start the software, each safe to repeat."
  type        = list(string)
  default = [
    "mkdir -p ~/own",
    "echo 'print(\"ready\")' > ~/own/main.py",
  ]
}
