terraform {
  required_version = ">= 1.14" # OpenTofu has no actions yet
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

resource "damodel_instance" "gpu" {
  name      = "chat"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

resource "damodel_llama_server" "chat" {
  instance_id = damodel_instance.gpu.id
  model       = "~/public-storage/model/tiny.gguf"
  host        = "127.0.0.1" # reachable through SSH only
}

# Restarts the server with its current options, and shows the progress. To run it by hand:
# terraform apply -invoke=action.damodel_llama_server_restart.chat
action "damodel_llama_server_restart" "chat" {
  config {
    instance_id = damodel_llama_server.chat.instance_id
    port        = damodel_llama_server.chat.port
    host_key    = damodel_llama_server.chat.host_key
  }
}
