terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# The images of one region from which instances can be created.
data "damodel_private_images" "ready" {
  status = "ready"
  region = "cn-east-1"
}

output "ready" {
  value = { for image in data.damodel_private_images.ready.images : image.name => image.image_tag }
}
