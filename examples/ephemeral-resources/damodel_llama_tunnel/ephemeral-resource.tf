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
  region          = "cn-east-1"
  default_max_age = "24h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name      = "tunnelled"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

resource "damodel_llama_server" "chat" {
  instance_id = damodel_instance.gpu.id
  model       = "~/public-storage/model/tiny.gguf"
  host        = "127.0.0.1" # reachable through SSH only
}

# While a plan or an apply runs, the server is reached at local_url: a listener on 127.0.0.1 that forwards through SSH.
ephemeral "damodel_llama_tunnel" "chat" {
  instance_id = damodel_llama_server.chat.instance_id
  port        = damodel_llama_server.chat.port
  host_key    = damodel_llama_server.chat.host_key
}

# For example in another provider that needs an address:
#
# provider "restapi" {
#   uri = ephemeral.damodel_llama_tunnel.chat.local_url
# }
