terraform {
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

# The instance of the server.
resource "damodel_instance" "gpu" {
  name      = "chat"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

# A server in this instance. Address and password come from the service. The first SSH host key is pinned in host_key.
resource "damodel_llama_server" "chat" {
  instance_id = damodel_instance.gpu.id
  model       = "~/public-storage/model/tiny.gguf"

  # Everything else has the defaults of the service's guide. Some of them:
  port         = 8000
  context_size = 32768
  build        = "auto" # compiled in the instance, in ten minutes or more, if the prebuilt server fails

  # Reachable through SSH only. To serve on all addresses remove this line and set a key: without one, anyone who reaches the
  # port may chat. With Terraform 1.11 or newer the key stays out of the state:
  host = "127.0.0.1"
  # api_key_wo         = var.chat_key
  # api_key_wo_version = 1

  # An instance with login_method = "ssh_key" needs a key. A change of the login does not restart the server.
  # ssh = { private_key_file = "~/.ssh/id_ed25519" }

  probe = {
    prompt     = "Reply with the word pong."
    max_tokens = 50
    expect     = "(?i)pong"
  }

  timeouts {
    create = "90m" # a build from source included
  }
}
