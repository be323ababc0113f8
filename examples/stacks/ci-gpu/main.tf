# If a runner is lost, its instance keeps this name, and the next create of that name fails instead of buying a second one.
provider "damodel" {
  stack            = "ci-gpu-${var.run}"
  unique_names     = true
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = var.image
}

resource "damodel_instance" "gpu" {
  name      = "ci-gpu-${var.run}"
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url

  wait_for_capacity = "10m"
}
