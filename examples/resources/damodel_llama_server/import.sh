# A server is imported by its instance's UID, and its port where that is not 8000 (ins-…:8001).
terraform import damodel_llama_server.chat ins-0123456789ab
