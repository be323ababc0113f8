terraform {
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

# An instance to look up. Another configuration may manage it.
resource "damodel_instance" "notebook" {
  name      = "notebook"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
}

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

# By its name, which must be unique, or by its id (ins-…).
data "damodel_instance" "notebook" {
  name       = "notebook"
  depends_on = [damodel_instance.notebook] # only because this configuration creates it
}

output "ssh_command" {
  value = "terraform-provider-damodel ssh ${data.damodel_instance.notebook.id}"
}
