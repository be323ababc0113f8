# A private model: its file is on a cloud disk, its server has a key, and it is reached through an SSH tunnel only.
#
# terraform apply -target=damodel_instance.server    an instance with the disk: copy the model to it, once
# terraform apply                                    the server, and a chat with it
# terraform destroy -target=damodel_instance.server  the instance alone; the disk with the model stays, and is billed

terraform {
  required_version = ">= 1.5" # for the check block

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  max_hourly_price = var.hourly_budget
}

data "damodel_public_image" "this" {
  name = var.image
}

resource "damodel_cloud_disk" "models" {
  name                = "${var.name}-models"
  size_gb             = var.disk_size_gb
  spec_id             = var.disk_spec_id
  mount_path          = "/data/models"
  deletion_protection = var.protect_models
}

resource "damodel_instance" "server" {
  name       = var.name
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.this.image_id
  image_type = "public"

  exist_disks = [{
    disk_id    = damodel_cloud_disk.models.disk_id
    mount_path = damodel_cloud_disk.models.mount_path
  }]
}

resource "damodel_llama_server" "model" {
  instance_id = damodel_instance.server.id
  model       = var.model
  host        = "127.0.0.1" # no other computer reaches the port
  api_key     = var.chat_key
}

# Asks it a question through SSH in each plan. A tunnel for other programs: the ephemeral resource damodel_llama_tunnel.
check "it_answers" {
  data "damodel_chat_completion" "question" {
    target          = "llama_server"
    llama_server_id = damodel_llama_server.model.id
    host_key        = damodel_llama_server.model.host_key
    api_key         = var.chat_key
    model           = "any"
    max_tokens      = 50

    messages = [{ role = "user", content = "Reply with the word pong." }]
  }

  assert {
    condition     = length(data.damodel_chat_completion.question.content) > 0
    error_message = "The model gave an empty answer."
  }
}
