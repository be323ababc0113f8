terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

variable "disk" {
  description = "The name of a disk that exists."
  type        = string
  default     = "datasets"
}

# By name, id or uid. No match, or several disks with this name, is an error that lists the disks.
data "damodel_cloud_disk" "datasets" {
  name = var.disk
}

output "datasets" {
  value = "${data.damodel_cloud_disk.datasets.uid}: ${data.damodel_cloud_disk.datasets.size_gb} GB, ${data.damodel_cloud_disk.datasets.status}"
}
