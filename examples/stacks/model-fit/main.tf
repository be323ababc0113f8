provider "damodel" {
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
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

# The specifications that the model fits on, cheapest first. No filter by stock or price is needed: the plan checks both.
data "damodel_specs" "gpu" {
  capacity_type  = "ondemand"
  gpu_name_regex = var.gpus
  min_gpu_mem_mb = local.gpu_mem_mb
  sort_by        = "price"
}

data "damodel_public_image" "gpu" {
  name = "llama.cpp"
}

resource "damodel_instance" "gpu" {
  name       = var.name
  candidates = [for spec in data.damodel_specs.gpu.specs : { spec_id = spec.spec_id }]
  image      = data.damodel_public_image.gpu.image_url

  lifecycle {
    # Keep the instance when another image is newer.
    ignore_changes = [image]

    precondition {
      condition     = local.memory.total != null
      error_message = "The memory of the model is unknown: ${join("; ", local.memory.notes)}."
    }
  }
}

resource "damodel_llama_server" "chat" {
  instance_id  = damodel_instance.gpu.id
  model        = var.model
  context_size = var.context_size
  parallel     = var.parallel
  host         = "127.0.0.1" # reachable through SSH only
}
