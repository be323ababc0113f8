# A disk that is created and released with its instance

data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

# The disk is no resource of its own. A destroy of the instance deletes the disk and its data.
resource "damodel_instance" "scratch" {
  name      = "scratch-space"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"

  new_disks = [{
    size_gb    = 50
    spec_id    = data.damodel_cloud_disk_spec.block.spec_id
    mount_path = "/data/scratch"
  }]
}
