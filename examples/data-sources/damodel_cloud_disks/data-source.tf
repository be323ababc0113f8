terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# Block disks that are not mounted but still billed.
data "damodel_cloud_disks" "idle" {
  status          = "available"
  storage_classes = ["RBD"]
}

output "idle" {
  value = { for disk in data.damodel_cloud_disks.idle.cloud_disks : disk.id => "${disk.name}, ${disk.size_gb} GB" }
}
