provider "damodel" {
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = var.image
}

resource "damodel_instance" "gpu" {
  name  = var.name
  image = data.damodel_public_image.gpu.image_url

  # The apply buys the first one that is in stock, at or below its price in the plan.
  candidates        = [for spec_type in var.spec_types : { spec_type = spec_type }]
  wait_for_capacity = "30m"
}
