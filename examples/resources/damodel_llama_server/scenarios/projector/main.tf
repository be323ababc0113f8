# A model for images, with its projector

variable "model_url" {
  description = "The address of a GGUF file, such as https://huggingface.co/OWNER/NAME/resolve/COMMIT/FILE.gguf"
  type        = string
}

variable "projector_url" {
  description = "The address of the model's projector, often mmproj-….gguf beside the model"
  type        = string
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name      = "images"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"
}

resource "damodel_llama_server" "images" {
  instance_id = damodel_instance.gpu.id
  model       = "~/damodel-tmp/models/${basename(var.model_url)}"
  host        = "127.0.0.1"
  workspace   = "~/damodel-tmp/workspace"
  extra_args  = ["--mmproj", "projector.gguf"] # relative paths begin in workspace

  model_source = {
    url = var.model_url
  }

  additional_files = [{
    path = "~/damodel-tmp/workspace/projector.gguf"
    url  = var.projector_url
  }]

  # The downloads are included.
  timeouts {
    create = "3h"
  }
}
