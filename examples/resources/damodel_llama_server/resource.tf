terraform {
  required_version = ">= 1.5" # for the check block; the resource itself needs no more than the provider

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region = "cn-east-1"
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

# The instance of the server.
resource "damodel_instance" "gpu" {
  name       = "chat"
  spec_type  = "gpu.rtx4090.1"
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"
}

variable "model" {
  description = "A GGUF file in the instance."
  type        = string
  default     = "~/public-storage/model/tiny.gguf"
}

# The server in it. Address and password come from the service; the first SSH host key that is seen is pinned in host_key.
resource "damodel_llama_server" "chat" {
  instance_id = damodel_instance.gpu.id
  model       = var.model

  # Everything else has the defaults of the service's guide. Some of them:
  port         = 8000
  context_size = 32768
  build        = "auto" # compiled in the instance if the prebuilt server does not serve, which takes ten minutes or more

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

# Checks in every plan and apply that it answers.
check "it_answers" {
  data "damodel_chat_completion" "ping" {
    target          = "llama_server"
    llama_server_id = damodel_llama_server.chat.id
    host_key        = damodel_llama_server.chat.host_key
    model           = "any"
    max_tokens      = 50

    messages = [{ role = "user", content = "Reply with the word pong." }]
  }

  assert {
    condition     = strcontains(lower(data.damodel_chat_completion.ping.content), "pong")
    error_message = "It answered: ${data.damodel_chat_completion.ping.content}"
  }
}

output "endpoint" {
  description = "The address of the server inside the instance."
  value       = damodel_llama_server.chat.endpoint
}
