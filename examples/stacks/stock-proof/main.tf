provider "damodel" {
  # The maximum cost of the whole account per hour, instances of other configurations included.
  max_account_hourly_price = var.max_account_hourly_price
  default_max_age          = "24h"
}

data "damodel_public_image" "gpu" {
  name = "llama.cpp"
}

resource "damodel_instance" "worker" {
  count = var.workers

  name       = "${var.name}-${count.index}"
  candidates = var.candidates
  image      = data.damodel_public_image.gpu.image_url

  # If no candidate has stock, request all of them again for this long.
  wait_for_capacity = "30m"

  lifecycle {
    # Keep the worker when another image is newer.
    ignore_changes = [image]
  }
}
