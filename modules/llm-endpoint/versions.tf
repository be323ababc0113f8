terraform {
  required_version = ">= 1.11" # for write-only arguments; OpenTofu 1.11

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
