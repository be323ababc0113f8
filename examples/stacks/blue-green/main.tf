provider "damodel" {
  max_hourly_price = var.max_hourly_price
  default_max_age  = "24h"
}

data "damodel_public_image" "gpu" {
  name = var.image
}

resource "damodel_instance" "member" {
  for_each  = var.colors
  name      = "${var.name}-${each.key}"
  spec_type = var.spec_type
  image     = data.damodel_public_image.gpu.image_url
}

# The apply fails if the model does not answer the canary question as expected. The live server then continues.
resource "damodel_llama_server" "member" {
  for_each    = var.colors
  instance_id = damodel_instance.member[each.key].id
  model       = var.models[each.key]
  host        = "127.0.0.1" # reachable through SSH only

  probe = {
    prompt     = var.canary.prompt
    max_tokens = 50
    expect     = var.canary.expect
  }

  lifecycle {
    precondition {
      condition     = contains(var.colors, var.live)
      error_message = "live must be one of colors."
    }
  }
}
