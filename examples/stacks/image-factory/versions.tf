terraform {
  required_version = ">= 1.4" # for terraform_data

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
