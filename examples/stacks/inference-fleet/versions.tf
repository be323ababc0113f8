terraform {
  required_version = ">= 1.5" # for check blocks

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
