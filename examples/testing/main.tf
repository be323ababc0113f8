provider "damodel" {
  default_max_age = "24h"
}

data "damodel_spec" "gpu" {
  capacity_type  = "ondemand"
  min_gpu_num    = var.gpu_num
  available_only = true
  sort_by        = "price"
  first          = true
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

resource "damodel_cloud_disk" "data" {
  name       = var.name
  size_gb    = var.disk_size_gb
  spec_id    = data.damodel_cloud_disk_spec.block.spec_id
  mount_path = "/data"

  lifecycle {
    ignore_changes = [spec_id]
  }
}

resource "damodel_instance" "workbench" {
  name    = var.name
  spec_id = data.damodel_spec.gpu.spec_id
  gpu_num = var.gpu_num
  image   = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id = damodel_cloud_disk.data.disk_id
  }]

  lifecycle {
    ignore_changes = [spec_id]
  }
}
