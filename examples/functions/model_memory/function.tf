terraform {
  required_version = ">= 1.8" # OpenTofu: >= 1.7
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

data "damodel_model" "this" {
  path = "model.gguf"
}

locals {
  memory = provider::damodel::model_memory(data.damodel_model.this, {
    context_size = 8192
    parallel     = 4
  })
}

# Null if a part is unknown; the notes have the reason.
output "gpu_memory_gib" {
  value = local.memory.total == null ? null : ceil(local.memory.total / 1073741824 * 10) / 10
}

output "notes" {
  value = local.memory.notes
}
