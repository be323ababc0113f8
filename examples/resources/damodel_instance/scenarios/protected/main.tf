# Protected from `terraform destroy`

variable "protect" {
  description = "Set to true in production. To destroy the instance, set it to false, apply, then destroy."
  type        = bool
  default     = false
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "service" {
  name                = "service"
  spec_type           = "gpu.rtx4090.1"
  image               = data.damodel_public_image.gpu.image_url
  deletion_protection = var.protect
  max_age             = "720h"

  # A replacement creates the new instance first. The old one is released afterwards, with its disks.
  lifecycle {
    create_before_destroy = true
  }
}
