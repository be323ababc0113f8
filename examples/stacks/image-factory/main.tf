# An image that a team's instances are made of, released again and again.
#
# terraform apply -target=damodel_instance.builder    the builder; log in and install what the image shall hold
# terraform apply                                     the image, and an instance made of it
# terraform apply -var keep_builder=false             the builder goes, and is billed no more; the image stays
# terraform apply -var release=2                      with a builder again: a new image, then new instances, then the old image goes

terraform {
  required_version = ">= 1.4" # for terraform_data

  required_providers {
    damodel = {
      source = "damodel/damodel"
    }
  }
}

provider "damodel" {}

data "damodel_spec" "cheapest" {
  capacity_type  = "ondemand"
  min_gpu_num    = 1
  min_cuda       = "12.4"
  available_only = true
  sort_by        = "price"
  first          = true
}

data "damodel_public_image" "base" {
  name_regex  = "^PyTorch"
  label       = "cuda12.4"
  most_recent = true
}

# Where the image is made: an instance of the public image, on which the rest is installed.
resource "damodel_instance" "builder" {
  count      = var.keep_builder ? 1 : 0
  name       = "${var.name}-builder"
  spec_id    = data.damodel_spec.cheapest.spec_id
  gpu_num    = 1
  image_id   = data.damodel_public_image.base.id
  image_type = "public"

  lifecycle {
    ignore_changes = [spec_id, image_id]
  }
}

resource "terraform_data" "release" {
  input = var.release
}

# The builder's system disk, saved. The apply waits until it is ready.
resource "damodel_private_image" "release" {
  name        = "${var.name}-${var.release}" # unique in the account
  instance_id = one(damodel_instance.builder[*].id)

  lifecycle {
    # A new release is another image, made before the old one goes.
    create_before_destroy = true
    replace_triggered_by  = [terraform_data.release]

    # The builder may go, or be another one: the image stays what it is.
    ignore_changes = [instance_id]
  }

  timeouts {
    create = "3h"
  }
}

# The proof that instances can be made of it.
resource "damodel_instance" "worker" {
  count      = var.workers
  name       = "${var.name}-worker-${count.index}"
  spec_id    = data.damodel_spec.cheapest.spec_id
  gpu_num    = 1
  image_id   = damodel_private_image.release.image_id
  image_type = "private"

  lifecycle {
    ignore_changes        = [spec_id] # but not image_id: workers follow the image
    create_before_destroy = true      # a worker goes when the next one runs, and both are billed for that while
  }
}
