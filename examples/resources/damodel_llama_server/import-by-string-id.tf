# By its instance's UID, and its port if it is not 8000 (ins-…:8001).
import {
  to = damodel_llama_server.chat
  id = "ins-0123456789ab"
}
