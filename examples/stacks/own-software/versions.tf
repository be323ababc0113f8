terraform {
  required_version = ">= 1.10" # for ephemeral resources; OpenTofu 1.11

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}
