# A disk that several instances mount

# A file system; block storage (RBD) is mounted in one instance at a time.
data "damodel_cloud_disk_spec" "shared" {
  spec_alias = "shared-files"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_cloud_disk" "datasets" {
  name       = "datasets"
  size_gb    = 100
  spec_id    = data.damodel_cloud_disk_spec.shared.spec_id
  mount_path = "/data/datasets"
}

resource "damodel_instance" "reader" {
  count     = 2
  max_age   = "24h"
  name      = "reader-${count.index}"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id    = damodel_cloud_disk.datasets.disk_id
    mount_path = damodel_cloud_disk.datasets.mount_path
  }]
}
