# A server with a key, for its own trained context

variable "chat_key" {
  description = "The key that clients send."
  type        = string
  sensitive   = true
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name      = "chat"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"
}

resource "damodel_llama_server" "chat" {
  instance_id  = damodel_instance.gpu.id
  model        = "~/public-storage/model/tiny.gguf"
  api_key      = var.chat_key # stored in the state; api_key_wo is not
  context_size = 0            # the context that the model was trained with
  on_failure   = "stop"       # a server that does not answer is stopped

  # A change of these values restarts the server.
  triggers = {
    template = "2"
  }
}
