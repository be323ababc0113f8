# Inference workers that are created wherever there is a card for them: three cards in two regions, under one budget.
#
# terraform plan     each worker with its candidates, and the most that it may cost
# terraform apply    the first candidate that has stock; the next one if it sells out meanwhile
# terraform apply    no changes, however stock and prices move: the choice is kept

terraform {
  required_version = ">= 1.3" # for optional attributes of variables

  required_providers {
    damodel = {
      source = "damodel/damodel"
    }
  }
}

# What the whole account may cost an hour, instances of other configurations included.
provider "damodel" {
  max_account_hourly_price = var.account_budget
}

data "damodel_public_image" "llama" {
  name = "llama.cpp"
}

resource "damodel_instance" "worker" {
  count = var.workers

  name       = "${var.name}-${count.index}"
  gpu_num    = 1
  candidates = var.candidates
  image_id   = data.damodel_public_image.llama.id
  image_type = "public"

  # With no stock anywhere, all candidates are asked for again, politely.
  wait_for_capacity = "30m"

  # Nothing to leak from the state: log in with the password of the console.
  store_credentials = false

  lifecycle {
    # Tomorrow the image may be another one.
    ignore_changes = [image_id]
  }
}
