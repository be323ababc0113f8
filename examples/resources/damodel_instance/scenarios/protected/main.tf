# Protected from `terraform destroy`

terraform {
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

variable "protect" {
  description = "Set to true in production. To destroy the instance, set it to false, apply, then destroy."
  type        = bool
  default     = false
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "service" {
  name                = "service"
  spec_type           = "gpu.rtx4090.1"
  image_id            = data.damodel_public_image.pytorch.image_id
  image_type          = "public"
  deletion_protection = var.protect

  # A replacement creates the new instance first. The old one is released afterwards, with its disks.
  lifecycle {
    create_before_destroy = true
  }
}
