terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# Specifications that several instances can mount at the same time.
data "damodel_cloud_disk_specs" "shared" {
  storage_classes    = ["FS", "S3"]
  support_ib_network = false
}

output "shared" {
  value = {
    for spec in data.damodel_cloud_disk_specs.shared.specs : spec.id => "${spec.spec_alias} (${spec.storage_class}), at most ${spec.max_size_gib} GiB" if spec.multiple_mounting
  }
}
