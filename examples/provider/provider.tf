terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# The address (DAMODEL_BASE_URL) and the token (DAMODEL_API_TOKEN) should come from the environment: values
# that are written here are stored in plan files. All arguments are optional; these are examples.
provider "damodel" {
  region                  = "cn-east-1"
  request_timeout         = "30s"
  max_retries             = 5
  max_concurrent_requests = 16

  # An instance that costs more is an error in the plan, and again before the purchase.
  max_hourly_price = 50
}
