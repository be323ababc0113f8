# A private endpoint: an application on this computer uses the model during the apply, through a tunnel. No other computer reaches the
# port, and the key is in no state and no plan.
#
# terraform apply                                                       the server, and one run of the application
# terraform apply -replace=terraform_data.application                   the application again
# terraform apply -replace=terraform_data.application -var command=…    another one, such as "python3 evaluate.py"

terraform {
  required_version = ">= 1.11" # for ephemeral resources and write-only arguments; OpenTofu 1.11

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  max_hourly_price = 5
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name       = var.name
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"
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
