provider "damodel" {
  max_hourly_price = 5
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_cloud_disk" "data" {
  name       = "${var.name}-data"
  size_gb    = 20
  spec_id    = var.disk_spec_id
  mount_path = "/data/own"
}

resource "damodel_instance" "gpu" {
  name      = var.name
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id    = damodel_cloud_disk.data.disk_id
    mount_path = damodel_cloud_disk.data.mount_path
  }]
}

# The password is not stored in the state.
ephemeral "damodel_instance_access" "gpu" {
  id = damodel_instance.gpu.id
}

resource "terraform_data" "software" {
  # If the instance or the commands change, the commands run again.
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
