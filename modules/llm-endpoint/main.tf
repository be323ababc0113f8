# The model is on its own disk: a replacement of the instance does not download it again.
resource "damodel_cloud_disk" "models" {
  name                = "${var.name}-models"
  size_gb             = var.disk_size_gb
  spec_id             = var.disk_spec_id
  mount_path          = "/data/models"
  deletion_protection = var.deletion_protection

  lifecycle {
    # Another specification would replace the disk.
    ignore_changes = [spec_id]
  }
}

resource "damodel_instance" "gpu" {
  name              = var.name
  candidates        = var.candidates
  image             = var.image
  external_ip       = var.external_ip
  max_age           = var.max_age
  wait_for_capacity = var.wait_for_capacity

  exist_disks = [{
    disk_id    = damodel_cloud_disk.models.disk_id
    mount_path = damodel_cloud_disk.models.mount_path
  }]

  lifecycle {
    # Another image would replace the instance.
    ignore_changes = [image]
  }
}

resource "damodel_llama_server" "chat" {
  instance_id        = damodel_instance.gpu.id
  model              = "${damodel_cloud_disk.models.mount_path}/${basename(var.model_url)}"
  host               = var.external_ip == null ? "127.0.0.1" : "0.0.0.0"
  context_size       = var.context_size
  parallel           = var.parallel
  api_key_wo         = var.chat_key
  api_key_wo_version = var.chat_key_version

  model_source = {
    url    = var.model_url
    sha256 = var.model_sha256
  }

  model_source_token_wo = var.model_token

  timeouts {
    create = "3h" # the download and a build from source included
    update = "3h"
  }
}
