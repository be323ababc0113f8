terraform {
  required_version = ">= 1.3" # for optional attributes of variables

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
