# Your own software in an instance, by a provisioner. Its files are on the instance's disks: a replacement of the instance deletes them, and
# the provisioner runs again on the new one. What has to stay is on the cloud disk.
#
# terraform apply                                           the instance, and the software in it
# terraform apply -replace=terraform_data.software          the commands again, on the same instance
# terraform apply -replace=damodel_instance.gpu             another instance: the system disk is deleted, the cloud disk stays
#
# A provisioner runs when its resource is created. Terraform does not look afterwards whether the software is still there. If a command
# fails, terraform_data.software is tainted, and the next apply runs all commands again: each must be safe to repeat. Software that takes
# long to install belongs in an image: see examples/stacks/image-factory.

terraform {
  required_version = ">= 1.10" # for ephemeral resources; OpenTofu 1.11

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  max_hourly_price = 5
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

resource "damodel_cloud_disk" "data" {
  name       = "${var.name}-data"
  size_gb    = 20
  spec_id    = var.disk_spec_id
  mount_path = "/data/own"
}

resource "damodel_instance" "gpu" {
  name       = var.name
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"

  exist_disks = [{
    disk_id    = damodel_cloud_disk.data.disk_id
    mount_path = damodel_cloud_disk.data.mount_path
  }]
}

# The password of the login is in no state.
ephemeral "damodel_instance_access" "gpu" {
  id = damodel_instance.gpu.id
}

resource "terraform_data" "software" {
  # Another instance, or other commands: the commands run again.
  triggers_replace = [damodel_instance.gpu.id, var.commands]

  connection {
    host     = ephemeral.damodel_instance_access.gpu.ssh_host
    port     = ephemeral.damodel_instance_access.gpu.ssh_port
    user     = ephemeral.damodel_instance_access.gpu.ssh_user
    password = ephemeral.damodel_instance_access.gpu.ssh_password
  }

  provisioner "remote-exec" {
    inline = concat(["set -e"], var.commands)
  }
}
