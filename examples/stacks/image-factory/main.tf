provider "damodel" {
  default_max_age = "24h"
}

data "damodel_spec" "gpu" {
  capacity_type  = "ondemand"
  min_gpu_num    = 1
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

# The builder: an instance of the public image, on which the software is installed.
resource "damodel_instance" "builder" {
  count   = var.keep_builder ? 1 : 0
  name    = "${var.name}-builder"
  spec_id = data.damodel_spec.gpu.spec_id
  image   = data.damodel_public_image.gpu.image_url

  lifecycle {
    ignore_changes = [spec_id, image]
  }
}

resource "terraform_data" "release" {
  input = var.release
}

# The builder's system disk, saved. The apply waits until it is ready.
resource "damodel_private_image" "release" {
  count       = min(var.release, 1)
  name        = "${var.name}-${var.release}" # unique in the account
  instance_id = one(damodel_instance.builder[*].id)

  lifecycle {
    # A new release is another image, created before the old one is deleted.
    create_before_destroy = true
    replace_triggered_by  = [terraform_data.release]

    # Keep the image when the builder is released or replaced.
    ignore_changes = [instance_id]
  }

  timeouts {
    create = "3h"
  }
}

# Workers: instances of the image.
resource "damodel_instance" "worker" {
  count   = var.release == 0 ? 0 : var.workers
  name    = "${var.name}-worker-${count.index}"
  spec_id = data.damodel_spec.gpu.spec_id
  image   = one(damodel_private_image.release[*].image_tag)

  lifecycle {
    ignore_changes        = [spec_id] # but not image: workers follow the image
    create_before_destroy = true      # a worker is released when the next one is Running; until then both are billed
  }
}
