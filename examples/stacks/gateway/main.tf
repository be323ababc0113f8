provider "damodel" {
  max_hourly_price = 5
  default_max_age  = "720h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "member" {
  for_each  = var.members
  name      = "${var.name}-${each.key}"
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url
}

resource "damodel_llama_server" "member" {
  for_each    = var.members
  instance_id = damodel_instance.member[each.key].id
  model       = var.model
  host        = "127.0.0.1" # reachable through SSH only
  api_key     = var.chat_key
  extra_args  = ["--alias", var.alias] # one name in requests, whichever server answers
}
