terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region          = "cn-east-1"
  default_max_age = "24h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

# The instance whose system disk is saved.
resource "damodel_instance" "builder" {
  name      = "builder"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

# The apply waits until the image is ready, so that other resources can use it. Its storage is billed.
resource "damodel_private_image" "base" {
  name        = "training-base" # unique in the account, changed in place
  instance_id = damodel_instance.builder.id

  lifecycle {
    # Without this, replacing the builder would delete the image and save another one. To save it again:
    # `terraform apply -replace=damodel_private_image.base`.
    ignore_changes = [instance_id]
  }

  timeouts {
    create = "3h"
  }
}
