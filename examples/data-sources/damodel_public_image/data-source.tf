terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# Of all images with PyTorch and CUDA 12.4 the one that was updated last. Without most_recent exactly one must match.
data "damodel_public_image" "pytorch" {
  label       = "cuda12.4"
  name_regex  = "^PyTorch"
  most_recent = true
}

output "pytorch" {
  value = {
    id    = data.damodel_public_image.pytorch.id
    name  = data.damodel_public_image.pytorch.name
    image = data.damodel_public_image.pytorch.image_url
  }
}
