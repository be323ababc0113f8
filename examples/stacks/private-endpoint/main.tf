provider "damodel" {
  max_hourly_price = 5
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name      = var.name
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url
}

resource "damodel_llama_server" "chat" {
  instance_id        = damodel_instance.gpu.id
  model              = var.model
  host               = "127.0.0.1" # reachable through SSH only
  api_key_wo         = var.chat_key
  api_key_wo_version = 1 # change this number with the key
}

ephemeral "damodel_llama_tunnel" "chat" {
  instance_id = damodel_llama_server.chat.instance_id
  port        = damodel_llama_server.chat.port
  host_key    = damodel_llama_server.chat.host_key
}

# The clients of OpenAI read OPENAI_BASE_URL and OPENAI_API_KEY by themselves. The name of the model is an argument of each request.
resource "terraform_data" "application" {
  provisioner "local-exec" {
    command = var.command

    environment = {
      OPENAI_BASE_URL = ephemeral.damodel_llama_tunnel.chat.base_url
      OPENAI_API_KEY  = var.chat_key
      MODEL           = damodel_llama_server.chat.model_name
    }
  }
}
