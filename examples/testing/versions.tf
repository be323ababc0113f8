terraform {
  required_version = ">= 1.6" # for `terraform test`; the module itself needs no more than the provider

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
