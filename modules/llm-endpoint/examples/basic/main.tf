provider "damodel" {
  max_hourly_price = 20
  default_max_age  = "24h"
}

data "damodel_specs" "gpu" {
  capacity_type  = "ondemand"
  min_gpu_mem_mb = 16000
  sort_by        = "price"
}

data "damodel_public_image" "gpu" {
  name_regex  = "(?i)pytorch|cuda|ubuntu"
  most_recent = true
}

data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

module "endpoint" {
  source = "../.."

  candidates   = data.damodel_specs.gpu.specs
  image        = data.damodel_public_image.gpu.image_url
  disk_spec_id = data.damodel_cloud_disk_spec.block.spec_id
  model_url    = var.model_url
  chat_key     = var.chat_key
}
