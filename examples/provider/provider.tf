terraform {
  required_providers {
    damodel = {
      source = "damodel/damodel"
    }
  }
}

# The address (DAMODEL_BASE_URL) and the token (DAMODEL_API_TOKEN) are best left to the environment: what is written here
# ends up in plan files. Everything is optional; these are arguments that a configuration may want to fix.
provider "damodel" {
  region                  = "cn-east-1"
  request_timeout         = "30s"
  max_retries             = 5
  max_concurrent_requests = 16

  # No instance that costs more is bought: an error of the plan, and again before the create.
  max_hourly_price = 50
}
