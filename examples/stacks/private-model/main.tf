provider "damodel" {
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = var.image
}

resource "damodel_cloud_disk" "models" {
  name                = "${var.name}-models"
  size_gb             = var.disk_size_gb
  spec_id             = var.disk_spec_id
  mount_path          = "/data/models"
  deletion_protection = var.deletion_protection
}

resource "damodel_instance" "gpu" {
  name      = var.name
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url

  exist_disks = [{
    disk_id    = damodel_cloud_disk.models.disk_id
    mount_path = damodel_cloud_disk.models.mount_path
  }]
}

resource "damodel_llama_server" "chat" {
  count       = var.serve ? 1 : 0
  instance_id = damodel_instance.gpu.id
  model       = var.model
  host        = "127.0.0.1" # no other computer reaches the port
  api_key     = var.chat_key

  probe = {
    prompt = "Reply with the word pong."
    expect = "(?i)pong"
  }
}
