variable "name" {
  description = "The name of the instance, and the prefix of its disk's name."
  type        = string
  default     = "llm"
}

variable "candidates" {
  description = "Specifications in order of preference, such as `specs` of the data source `damodel_specs`. A changed list never replaces the instance."
  type = list(object({
    spec_id   = optional(number)
    spec_type = optional(string)
    region    = optional(string)
    gpu_num   = optional(number)
  }))

  validation {
    condition     = alltrue([for it in var.candidates : it.spec_id != null || it.spec_type != null])
    error_message = "Each candidate needs spec_id or spec_type."
  }
}

variable "image" {
  description = "The full address of the instance's image. Another one does not replace the instance."
  type        = string
}

variable "disk_spec_id" {
  description = "The specification of the disk, block storage: see the data source `damodel_cloud_disk_spec`."
  type        = number
}

variable "disk_size_gb" {
  description = "The capacity of the disk, which can grow but not shrink. It must hold the model."
  type        = number
  default     = 100

  validation {
    condition     = var.disk_size_gb >= 20
    error_message = "disk_size_gb must be at least 20."
  }
}

variable "deletion_protection" {
  description = "Whether a plan that deletes the disk is refused. To delete it: set this to false, apply, destroy."
  type        = bool
  default     = false
}

variable "wait_for_capacity" {
  description = "How long an apply tries again while no candidate has stock, such as `30m`."
  type        = string
  default     = null
}

variable "max_age" {
  description = "How long the instance may exist, such as `720h`, before the command `expire` releases it. Default: the provider's `default_max_age`."
  type        = string
  default     = null
}

variable "external_ip" {
  description = "A public address that was requested before. Clients then need no SSH, and the key is sent unencrypted."
  type        = string
  default     = null
}

variable "model_url" {
  description = "The address of the GGUF file, such as `https://huggingface.co/OWNER/NAME/resolve/COMMIT/FILE.gguf`."
  type        = string

  validation {
    condition     = endswith(var.model_url, ".gguf")
    error_message = "model_url must end in .gguf."
  }
}

variable "model_sha256" {
  description = "The SHA-256 that the file must have."
  type        = string
  default     = null

  validation {
    condition     = var.model_sha256 == null || can(regex("^[0-9a-fA-F]{64}$", var.model_sha256))
    error_message = "model_sha256 must have 64 hexadecimal digits."
  }
}

variable "model_token" {
  description = "The token for the download, if the model's terms were accepted on a hub. It enters no plan and no state."
  type        = string
  default     = null
  sensitive   = true
  ephemeral   = true
}

variable "context_size" {
  description = "The context in tokens, shared by all chats; 0 is the context that the model was trained with."
  type        = number
  default     = 32768
}

variable "parallel" {
  description = "How many chats are served at once."
  type        = number
  default     = 1
}

variable "chat_key" {
  description = "The key that clients send. It enters no plan and no state."
  type        = string
  sensitive   = true
  ephemeral   = true

  validation {
    condition     = trimspace(var.chat_key) != ""
    error_message = "chat_key must not be empty."
  }
}

variable "chat_key_version" {
  description = "Change this number with the key: Terraform cannot detect changes of write-only values."
  type        = number
  default     = 1
}
