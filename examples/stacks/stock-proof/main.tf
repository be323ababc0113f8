# Inference workers on any GPU in stock: three GPU models in two regions, under one budget.
#
# terraform plan     each worker with its candidates, and the most that it may cost
# terraform apply    the first candidate that has stock; the next one if it sells out meanwhile
# terraform apply    no changes, even if stock and prices change: the choice is kept

terraform {
  required_version = ">= 1.3" # for optional attributes of variables

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# The maximum cost of the whole account per hour, instances of other configurations included.
provider "damodel" {
  max_account_hourly_price = var.account_budget
}

data "damodel_public_image" "llama" {
  name = "llama.cpp"
}

resource "damodel_instance" "worker" {
  count = var.workers

  name       = "${var.name}-${count.index}"
  candidates = var.candidates
  image_id   = data.damodel_public_image.llama.image_id
  image_type = "public"

  # If no candidate has stock, request all of them again for this long.
  wait_for_capacity = "30m"

  lifecycle {
    # Keep the worker when another image is newer.
    ignore_changes = [image_id]
  }
}
