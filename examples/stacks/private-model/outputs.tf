output "login" {
  description = "How to log in, to copy the model to the disk."
  value       = "ssh -p ${damodel_instance.server.ssh_port} root@${damodel_instance.server.ssh_host}"
}

output "host_key" {
  description = "The SSH host key that was pinned."
  value       = damodel_llama_server.model.host_key
}
