terraform {
  required_version = ">= 1.8" # OpenTofu: >= 1.7
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

data "damodel_specs" "available" {
  available_only = true
  capacity_type  = "ondemand"
}

# What an instance with one GPU and 100 GB of extra data disk costs for three months, by specification. If a specification has no
# monthly price, or none for the disk, period_total is null.
output "three_months" {
  value = {
    for spec in data.damodel_specs.available.specs :
    spec.spec_type => provider::damodel::estimate_cost(spec, 1, 100, "Monthly", 3).period_total
  }
}

# Hourly does not need the last two arguments.
output "an_hour" {
  value = {
    for spec in data.damodel_specs.available.specs :
    spec.spec_type => provider::damodel::estimate_cost(spec, 1, 0, null, null).hourly_equivalent
  }
}
