terraform {
  required_version = ">= 1.8" # OpenTofu: >= 1.7
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

data "damodel_public_images" "all" {}

# The images of the marketplace by their repository: "model_library/pytorch" = ["2.5.1-cuda12.4", …].
output "tags" {
  value = {
    for address in [
      for image in data.damodel_public_images.all.images : provider::damodel::parse_image_address(image.image_url)
    ] : address.repository => address.tag...
  }
}
