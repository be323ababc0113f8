# Versions of an image

variable "versions" {
  description = "Each version is saved when it is added, and deleted when it is removed."
  type        = set(string)
  default     = ["2026-11"]
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "builder" {
  name      = "builder"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"
}

resource "damodel_private_image" "version" {
  for_each = var.versions

  name        = "worker-${each.key}"
  instance_id = damodel_instance.builder.id

  lifecycle {
    # A new builder saves the next version, and leaves the others.
    ignore_changes = [instance_id]
  }
}
