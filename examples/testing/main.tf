# An example of a team's module: an instance and a separate disk. Its tests are in tests/, and test.sh runs them.

terraform {
  required_version = ">= 1.6" # for `terraform test`; the module itself needs no more than the provider

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

variable "name" {
  description = "The name of the instance and its disk."
  type        = string
  default     = "workbench"
}

variable "gpu_num" {
  description = "How many GPUs the instance has."
  type        = number
  default     = 1
}

variable "disk_size_gb" {
  description = "The disk's capacity, which can grow but not shrink."
  type        = number
  default     = 50

  validation {
    condition     = var.disk_size_gb >= 50
    error_message = "The disk must have at least 50 GB."
  }
}

# OpenTofu takes values of an earlier run only in the variables of a run.
variable "earlier" {
  description = "For the tests: the ids of an earlier run."
  type        = map(string)
  default     = {}
}

data "damodel_spec" "cheapest" {
  capacity_type  = "ondemand"
  min_gpu_num    = var.gpu_num
  available_only = true
  sort_by        = "price"
  first          = true
}

data "damodel_public_image" "pytorch" {
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
  name       = var.name
  spec_id    = data.damodel_spec.cheapest.spec_id
  gpu_num    = var.gpu_num
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"

  exist_disks = [{
    disk_id = damodel_cloud_disk.data.disk_id
  }]

  lifecycle {
    ignore_changes = [spec_id]
  }
}

output "instance_id" {
  value = damodel_instance.workbench.id
}

output "disk_id" {
  value = damodel_cloud_disk.data.id
}

output "hourly_cost" {
  value = damodel_instance.workbench.estimated_cost.hourly_equivalent
}
