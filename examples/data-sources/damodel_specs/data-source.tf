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

# On-demand instances with at least 24 GB for each GPU and CUDA 12.4, in stock, cheapest first.
data "damodel_specs" "affordable" {
  capacity_type        = "ondemand"
  min_gpu_mem_mb       = 24000
  min_cuda             = "12.4"
  max_gpu_hourly_price = 15
  available_only       = true
  sort_by              = "price"
}

output "affordable" {
  value = {
    for spec in data.damodel_specs.affordable.specs : spec.spec_type => "${spec.gpu_name}, up to ${spec.max_gpu_count}, ${spec.hourly_price} an hour each"
  }
}
