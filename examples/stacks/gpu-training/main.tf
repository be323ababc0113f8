# The budget is checked in the plan, and again before an instance is bought.
provider "damodel" {
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
}

# The cheapest specification in stock with enough memory. Every plan looks it up; an instance keeps its own (see below).
data "damodel_spec" "gpu" {
  capacity_type  = var.spot ? "spot" : "ondemand"
  min_gpu_num    = var.gpu_num
  min_gpu_mem_mb = var.min_gpu_mem_gb * 1000
  min_cuda       = "12.4"
  available_only = true
  sort_by        = "price"
  first          = true
}

data "damodel_public_image" "gpu" {
  name_regex  = "^PyTorch"
  label       = "cuda12.4"
  most_recent = true
}

data "damodel_cloud_disk_spec" "block" {
  storage_class = "RBD"
}

# Checkpoints are kept on a separate disk: a spot instance can be released at any time, and most changes replace an instance.
resource "damodel_cloud_disk" "checkpoints" {
  name                = "${var.name}-checkpoints"
  size_gb             = var.disk_size_gb
  spec_id             = data.damodel_cloud_disk_spec.block.spec_id
  mount_path          = "/data/checkpoints"
  deletion_protection = var.deletion_protection

  lifecycle {
    ignore_changes = [spec_id]
  }
}

resource "damodel_instance" "trainer" {
  count   = var.running ? 1 : 0
  name    = var.name
  spec_id = data.damodel_spec.gpu.spec_id
  gpu_num = var.gpu_num
  image   = data.damodel_public_image.gpu.image_url

  # The data set is copied here, and deleted with the instance.
  data_disk_expand_size_gb = var.dataset_size_gb
  data_disk_mount_path     = "/root/datasets"

  exist_disks = [{
    disk_id    = damodel_cloud_disk.checkpoints.disk_id
    mount_path = damodel_cloud_disk.checkpoints.mount_path
  }]

  # If no instance is in stock, wait for one.
  wait_for_capacity = "30m"

  timeouts {
    create = "1h"
  }

  lifecycle {
    # Keep this instance when another specification becomes the cheapest, or another image the newest.
    ignore_changes = [spec_id, image]
  }
}

check "the_run_stays_in_its_budget" {
  assert {
    condition     = coalesce(one(damodel_instance.trainer[*].estimated_cost.hourly_equivalent), 0) * var.hours <= var.run_budget
    error_message = "${var.hours} hours cost more than ${var.run_budget}."
  }
}
