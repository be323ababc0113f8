# An unattended server

data "damodel_public_image" "gpu" {
  name = "PyTorch 2.5.1"
}

resource "damodel_instance" "gpu" {
  name      = "chat"
  spec_type = "gpu.rtx4090.1"
  image     = data.damodel_public_image.gpu.image_url
  max_age   = "24h"
}

resource "damodel_llama_server" "chat" {
  instance_id    = damodel_instance.gpu.id
  model          = "~/public-storage/model/tiny.gguf"
  host           = "127.0.0.1"  # reached through damodel_llama_tunnel
  restart_policy = "on_failure" # started again after a crash, with growing pauses
  on_failure     = "rollback"   # a failed update starts the earlier server again
  on_unreachable = "abandon"    # a destroy continues without a login, and releases the instance

  timeouts {
    create = "45m" # long enough to compile the server
    delete = "10m"
  }
}
