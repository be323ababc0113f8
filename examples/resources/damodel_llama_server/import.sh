# The import id is the instance's UID, with the port if it is not 8000 (ins-…:8001); over plain SSH, port and host (:8000@10.0.0.1).
terraform import damodel_llama_server.chat ins-0123456789ab
