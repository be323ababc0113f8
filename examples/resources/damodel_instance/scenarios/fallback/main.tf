# GPU fallback and budgets

terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {
  region           = "cn-east-1"
  max_hourly_price = 8 # an instance above it is an error in the plan, and again before the purchase
}

data "damodel_public_image" "pytorch" {
  name = "PyTorch 2.5.1"
}

# The first candidate that is in stock is bought, at or below its quote. The choice is kept when stock or prices change.
resource "damodel_instance" "trainer" {
  name       = "trainer"
  image_id   = data.damodel_public_image.pytorch.image_id
  image_type = "public"

  candidates = [
    { spec_type = "gpu.rtx4090.1" },
    { spec_type = "gpu.v100-32g.1" },
  ]

  wait_for_capacity = "30m" # if none is in stock
}

output "card" {
  value = "${damodel_instance.trainer.gpu_name}, at most ${damodel_instance.trainer.price_ceiling} an hour"
}
