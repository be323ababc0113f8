# Both budgets are checked in the plan, and again before an instance is bought.
provider "damodel" {
  max_hourly_price         = var.max_hourly_price
  max_account_hourly_price = var.max_account_hourly_price
  default_max_age          = "720h"
}

data "damodel_public_image" "gpu" {
  name = var.image
}

# Work is kept on this disk: destroying or replacing the instance deletes its own disks.
resource "damodel_cloud_disk" "home" {
  for_each            = var.members
  name                = "${var.name}-${each.key}-home"
  size_gb             = var.disk_size_gb
  spec_id             = var.disk_spec_id
  mount_path          = "/root/work"
  deletion_protection = var.deletion_protection
}

resource "damodel_instance" "notebook" {
  for_each  = var.members
  name      = "${var.name}-${each.key}"
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id    = damodel_cloud_disk.home[each.key].id
    mount_path = damodel_cloud_disk.home[each.key].mount_path
  }]
}
