import {
  to = damodel_llama_server.chat
  identity = {
    instance_id = "ins-0123456789ab" # for a server over plain SSH: host = "10.0.0.1" instead
    port        = 8000
  }
}
