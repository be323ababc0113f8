# A model and the cheapest instance that it fits on: the memory that it needs is computed from the file, and selects the GPUs.
#
# terraform plan     the memory that the model needs, and the candidates that have it
# terraform apply    an instance with one of them, and the server
# terraform apply    no changes, even if stock and prices change: the choice is kept

terraform {
  required_version = ">= 1.8" # for functions of providers; OpenTofu: >= 1.7

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  max_hourly_price = var.hourly_budget
}

# Only the header of the file is read.
data "damodel_model" "this" {
  path = var.model_file
}

locals {
  memory = provider::damodel::model_memory(data.damodel_model.this, {
    context_size = var.context_size
    parallel     = var.parallel
  })

  # 5 % stay free.
  gpu_mem_mb = local.memory.total == null ? null : ceil(local.memory.total / 0.95 / 1048576)
}

# The specifications that the model fits on, cheapest first. The plan rules out what is sold out or above the budget, so
# no filter does.
data "damodel_specs" "fitting" {
  capacity_type  = "ondemand"
  gpu_name       = var.gpus
  min_gpu_mem_mb = local.gpu_mem_mb
  sort_by        = "price"
}

data "damodel_public_image" "llama" {
  name = "llama.cpp"
}

resource "damodel_instance" "server" {
  name       = var.name
  candidates = [for spec in data.damodel_specs.fitting.specs : { spec_id = spec.spec_id }]
  image_id   = data.damodel_public_image.llama.image_id
  image_type = "public"

  lifecycle {
    # Keep the instance when another image is newer.
    ignore_changes = [image_id]

    precondition {
      condition     = local.memory.total != null
      error_message = "The memory of the model is unknown: ${join("; ", local.memory.notes)}."
    }
  }
}

resource "damodel_llama_server" "model" {
  instance_id  = damodel_instance.server.id
  model        = var.model
  context_size = var.context_size
  parallel     = var.parallel
  host         = "127.0.0.1" # reachable through SSH only
}
