terraform {
  required_version = ">= 1.10" # OpenTofu: >= 1.11
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region          = "cn-east-1"
  default_max_age = "24h"
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "trainer" {
  name      = "trainer"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

ephemeral "damodel_instance_access" "trainer" {
  id = damodel_instance.trainer.id
}

# Ephemeral values may be used in provider blocks, in write-only arguments, in other ephemeral resources, and in the connection of a
# provisioner.
locals {
  connection = {
    host     = ephemeral.damodel_instance_access.trainer.ssh_host
    port     = ephemeral.damodel_instance_access.trainer.ssh_port
    user     = ephemeral.damodel_instance_access.trainer.ssh_user
    password = ephemeral.damodel_instance_access.trainer.ssh_password
  }
}
