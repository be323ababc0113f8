# Several model servers behind one address with TLS and a key, and their metrics. The gateway is a computer with Caddy and Prometheus: this
# one, or another. It reaches the servers through SSH, so that the key is never sent unencrypted.
#
# terraform apply
# terraform output -raw known_hosts > known_hosts
# terraform output -raw caddyfile   > Caddyfile
# terraform output -raw prometheus  > prometheus.yml     and the key in llama.key beside it
# terraform output -json forwards                        one ssh command for each server: let a service manager run them
# caddy run --config Caddyfile
#
# After a change of var.members, and after a replacement of an instance, the files are written and Caddy is started again.

terraform {
  required_version = ">= 1.5"

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

resource "damodel_instance" "member" {
  for_each   = var.members
  name       = "${var.name}-${each.key}"
  spec_type  = var.spec_type
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"
}

resource "damodel_llama_server" "member" {
  for_each    = var.members
  instance_id = damodel_instance.member[each.key].id
  model       = var.model
  host        = "127.0.0.1" # reachable through SSH only
  api_key     = var.chat_key
  extra_args  = ["--alias", var.alias] # one name in requests, whichever server answers
}
