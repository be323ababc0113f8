terraform {
  required_version = ">= 1.8" # OpenTofu: >= 1.7
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region = "cn-east-1"
}

data "damodel_specs" "large" {
  gpu_name      = "A100|H100|4090"
  capacity_type = "ondemand"
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

# If no specification has two free GPUs in one instance, the plan is an error.
resource "damodel_instance" "trainer" {
  name       = "trainer"
  spec_id    = provider::damodel::cheapest_spec(data.damodel_specs.large.specs, 2).spec_id
  gpu_num    = 2
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"

  lifecycle {
    ignore_changes = [spec_id] # stock and prices change, and another specification would replace the instance
  }
}
