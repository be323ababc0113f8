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

# Block storage, for one instance at a time.
data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

# The disk remains when the instances that mount it are released, and is billed until it is destroyed.
resource "damodel_cloud_disk" "checkpoints" {
  name       = "checkpoints" # changed in place
  size_gb    = 100           # grows in place, cannot shrink
  spec_id    = data.damodel_cloud_disk_spec.block.spec_id
  mount_path = "/data/checkpoints"

  # For data that no plan may delete, not even one that replaces the disk.
  # deletion_protection = true

  lifecycle {
    # Another specification would replace the disk.
    ignore_changes = [spec_id]
  }
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

# An instance that mounts it. Destroying the instance does not change the disk.
resource "damodel_instance" "trainer" {
  name      = "trainer"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id    = damodel_cloud_disk.checkpoints.disk_id
    mount_path = damodel_cloud_disk.checkpoints.mount_path
  }]
}
