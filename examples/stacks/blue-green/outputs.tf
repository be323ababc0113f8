output "endpoint" {
  description = "The live server: its SSH address, its host key, and its address inside the instance."

  value = {
    ssh      = "${damodel_instance.server[var.live].ssh_host}:${damodel_instance.server[var.live].ssh_port}"
    host_key = damodel_llama_server.model[var.live].host_key
    endpoint = damodel_llama_server.model[var.live].endpoint
  }
}
