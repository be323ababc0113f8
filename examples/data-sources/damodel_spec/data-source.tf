terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region = "cn-east-1"
}

# The cheapest on-demand specification with a GPU of this model in stock. Exactly one must match, unless sort_by and first
# select one. No match is an error that lists the available ones.
data "damodel_spec" "cheapest" {
  capacity_type  = "ondemand"
  gpu_name_regex = "RTX-?4090"
  min_gpu_num    = 1
  available_only = true
  sort_by        = "price"
  first          = true
}

output "cheapest" {
  value = "${data.damodel_spec.cheapest.spec_type}: ${data.damodel_spec.cheapest.gpu_name}, ${data.damodel_spec.cheapest.hourly_price} an hour each"
}
