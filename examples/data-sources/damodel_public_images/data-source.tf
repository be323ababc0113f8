terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# Images with CUDA 12.4 whose name begins with PyTorch.
data "damodel_public_images" "pytorch" {
  label      = "cuda12.4"
  name_regex = "^PyTorch"
}

output "pytorch" {
  value = { for image in data.damodel_public_images.pytorch.images : image.name => image.image_url }
}
