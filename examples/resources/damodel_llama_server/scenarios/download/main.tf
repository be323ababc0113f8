# A model that the instance downloads

variable "model_url" {
  description = "The address of a GGUF file, such as https://huggingface.co/OWNER/NAME/resolve/COMMIT/FILE.gguf"
  type        = string
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
  instance_id = damodel_instance.gpu.id
  model       = "~/damodel-tmp/models/${basename(var.model_url)}" # on the data disk
  host        = "127.0.0.1"

  model_source = {
    url = var.model_url
  }

  # The download is included.
  timeouts {
    create = "3h"
  }
}
