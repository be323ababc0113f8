# Blue and green: the next model starts beside the one that serves, answers a canary question, and only then becomes the live one.
#
# terraform apply                                   blue serves
# terraform apply -var 'colors=["blue","green"]'    green starts beside it, with a model of its own, and is asked
# terraform apply -var 'colors=["blue","green"]' -var live=green    the output `endpoint` changes
# terraform apply -var 'colors=["green"]' -var live=green           blue ends

terraform {
  required_version = ">= 1.5" # for the check block

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  max_hourly_price = var.hourly_budget
}

data "damodel_public_image" "this" {
  name = var.image
}

resource "damodel_instance" "server" {
  for_each   = var.colors
  name       = "${var.name}-${each.key}"
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.this.image_id
  image_type = "public"
}

# Created when the model has answered the canary question as expected; otherwise the apply is an error and the live one
# continues.
resource "damodel_llama_server" "model" {
  for_each    = var.colors
  instance_id = damodel_instance.server[each.key].id
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
