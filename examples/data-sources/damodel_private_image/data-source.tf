terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

variable "image" {
  description = "How the name of an image that exists begins."
  type        = string
  default     = "trained-"
}

# The most recent image of a series, as a pipeline saves them. Without most_recent exactly one must match.
data "damodel_private_image" "latest" {
  name_regex  = "^${var.image}"
  status      = "ready"
  most_recent = true
}

output "latest" {
  value = {
    id    = data.damodel_private_image.latest.image_id
    name  = data.damodel_private_image.latest.name
    image = data.damodel_private_image.latest.image_tag
  }
}
