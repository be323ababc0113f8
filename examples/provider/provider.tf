terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# Set the address (DAMODEL_BASE_URL) and the token (DAMODEL_API_TOKEN) in the environment: values
# that are written here are stored in plan files. All arguments are optional; these are examples.
provider "damodel" {
  region = "cn-east-1"

  # Checked in the plan, and again before an instance is bought.
  max_hourly_price = 50
}
