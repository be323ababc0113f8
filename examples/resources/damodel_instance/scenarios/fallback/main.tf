# GPU fallback

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

# The first candidate that is in stock is bought, at or below its quote. The choice is kept when stock or prices change.
resource "damodel_instance" "trainer" {
  name    = "trainer"
  image   = data.damodel_public_image.gpu.image_url
  max_age = "24h"

  candidates = [
    { spec_type = "gpu.rtx4090.1" },
    { spec_type = "gpu.v100-32g.1" },
  ]

  wait_for_capacity = "30m" # if none is in stock
}
