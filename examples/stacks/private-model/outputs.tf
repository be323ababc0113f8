output "login" {
  description = "How to log in, to copy the model to the disk."
  value       = "ssh -p ${damodel_instance.gpu.ssh_port} root@${damodel_instance.gpu.ssh_host}"
}

output "host_key" {
  description = "The SSH host key that was pinned."
  value       = one(damodel_llama_server.chat[*].host_key)
}
