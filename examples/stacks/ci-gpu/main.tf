# A GPU for one job of a pipeline. ../../ci/github/gpu.yml creates it before the tests and destroys it after them.

terraform {
  required_version = ">= 1.3"

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# A runner that vanishes leaves an instance that only its name tells: the next create of this name is then an error.
provider "damodel" {
  stack            = "ci-gpu-${var.run}"
  unique_names     = true
  max_hourly_price = var.hourly_budget
}

data "damodel_public_image" "this" {
  name = var.image
}

resource "damodel_instance" "gpu" {
  name       = "ci-gpu-${var.run}"
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.this.image_id
  image_type = "public"

  wait_for_capacity = "10m"
}
