terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# The arguments must match exactly one specification. No match, or several, is an error that lists the specifications.
data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

output "block" {
  value = "${data.damodel_cloud_disk_spec.block.spec_id}: ${data.damodel_cloud_disk_spec.block.spec_alias}, at most ${data.damodel_cloud_disk_spec.block.max_size_gib} GiB"
}
