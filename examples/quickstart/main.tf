# Address, token and region come from the environment, so that no secret is in this folder.
provider "damodel" {
  default_max_age = "24h" # the command expire releases an older instance
}

data "damodel_public_image" "gpu" {
  name = var.image
}

# The instance is billed by the hour until `terraform destroy`. Specification and image are fixed: a lookup of the cheapest or newest one
# may change between two runs, and a change replaces the instance.
resource "damodel_instance" "first" {
  name      = var.name # changed in place: the instance keeps running
  gpu_num   = var.gpu_num
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url
}

# Optional: a model that the instance downloads and serves, started over SSH.
# terraform apply -var model_url=https://huggingface.co/OWNER/NAME/resolve/COMMIT/FILE.gguf
resource "damodel_llama_server" "chat" {
  count = var.model_url == null ? 0 : 1

  instance_id = damodel_instance.first.id
  model       = "~/damodel-tmp/models/${basename(var.model_url)}" # on the data disk
  host        = "127.0.0.1"                                       # reachable through SSH only

  model_source = {
    url = var.model_url
  }

  timeouts {
    create = "3h"
  }
}

# A chat with the server, through SSH.
data "damodel_chat_completion" "hello" {
  count = var.model_url == null ? 0 : 1

  target          = "llama_server"
  llama_server_id = damodel_llama_server.chat[0].id
  host_key        = damodel_llama_server.chat[0].host_key
  model           = "any" # the server has one
  messages        = [{ role = "user", content = var.prompt }]
  temperature     = 0 # the same answer each time, so that a plan without changes is empty
  max_tokens      = 64

  # If the server must be restarted, the chat comes after the apply.
  depends_on = [damodel_llama_server.chat]
}
