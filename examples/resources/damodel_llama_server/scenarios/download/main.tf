# A model that the instance downloads

terraform {
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

variable "model_url" {
  description = "The address of a GGUF file, such as https://huggingface.co/OWNER/NAME/resolve/COMMIT/FILE.gguf"
  type        = string
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name       = "chat"
  spec_type  = "gpu.rtx4090.1"
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"
}

resource "damodel_llama_server" "chat" {
  instance_id = damodel_instance.gpu.id
  model       = "~/damodel-tmp/models/${basename(var.model_url)}" # on the data disk
  host        = "127.0.0.1"

  model_source = {
    url = var.model_url
  }

  # The download counts.
  timeouts {
    create = "3h"
  }
}
