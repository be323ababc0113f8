terraform {
  required_version = ">= 1.8" # for functions of providers; OpenTofu: >= 1.7

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
