# Notebooks for a team: an instance with Jupyter and a disk for each member, within a budget for the whole account.
#
# terraform apply                                     a notebook for each name in var.members
# terraform output urls                               the addresses; the tokens: terraform output -json tokens
# terraform apply -var 'members=["ada"]'              releases the others' instances; their disks are kept by deletion_protection

terraform {
  required_version = ">= 1.3"

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# Both are errors of the plan, and are checked again before each purchase.
provider "damodel" {
  max_hourly_price         = var.instance_budget
  max_account_hourly_price = var.account_budget
}

data "damodel_public_image" "this" {
  name = var.image
}

# Work is kept here: destroying or replacing the instance deletes its own disks.
resource "damodel_cloud_disk" "home" {
  for_each            = var.members
  name                = "${var.name}-${each.key}-home"
  size_gb             = var.home_size_gb
  spec_id             = var.disk_spec_id
  mount_path          = "/root/work"
  deletion_protection = var.protect_homes
}

resource "damodel_instance" "notebook" {
  for_each   = var.members
  name       = "${var.name}-${each.key}"
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.this.image_id
  image_type = "public"

  exist_disks = [{
    disk_id    = damodel_cloud_disk.home[each.key].id
    mount_path = damodel_cloud_disk.home[each.key].mount_path
  }]
}
