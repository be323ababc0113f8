# Instances of a saved image

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "builder" {
  name      = "builder"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"
}

resource "damodel_private_image" "base" {
  name                = "worker-base"
  instance_id         = damodel_instance.builder.id
  deletion_protection = false # true keeps the image when its builder is replaced

  lifecycle {
    ignore_changes = [instance_id]
  }
}

# In the region of the image.
resource "damodel_instance" "worker" {
  name      = "worker"
  region    = damodel_private_image.base.region
  spec_type = "gpu.rtx4090.1"
  image     = damodel_private_image.base.image_tag
  max_age   = "24h"
}
