# A nightly batch: an instance for one job, which is destroyed when the job has ended. run.sh does all of it; a scheduler calls it.

terraform {
  required_version = ">= 1.3"

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

data "damodel_public_image" "this" {
  name = var.image
}

resource "damodel_instance" "batch" {
  name       = var.name
  image_id   = data.damodel_public_image.this.image_id
  image_type = "public"

  # In order of preference: the first that is in stock, for at most its price in the plan.
  candidates        = [for spec_type in var.spec_types : { spec_type = spec_type }]
  wait_for_capacity = "30m"
}
