import {
  to = damodel_llama_server.chat
  identity = {
    instance_id = "ins-0123456789ab" # or the host of a server over plain SSH
    port        = 8000
  }
}
