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

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "trainer" {
  name         = "trainer"
  payment_type = "Hourly"

  # A change of these arguments replaces the instance.
  spec_type                = "gpu.rtx4090.1"
  gpu_num                  = 2
  image                    = data.damodel_public_image.gpu.image_url
  hostname                 = "trainer"
  data_disk_expand_size_gb = 100
  data_disk_mount_path     = "/root/datasets"

  # If the specification is out of stock, repeat the request for this long.
  wait_for_capacity = "10m"

  timeouts {
    create = "45m"
  }
}
