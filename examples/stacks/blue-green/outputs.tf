output "endpoint" {
  description = "The live server: its SSH address, its host key, and its address inside the instance."

  value = {
    ssh      = "${damodel_instance.member[var.live].ssh_host}:${damodel_instance.member[var.live].ssh_port}"
    host_key = damodel_llama_server.member[var.live].host_key
    endpoint = damodel_llama_server.member[var.live].endpoint
  }
}
