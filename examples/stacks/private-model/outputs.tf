output "login" {
  description = "How to log in, to copy the model to the disk."
  value       = "terraform-provider-damodel ssh ${damodel_instance.gpu.id}"
}

output "host_key" {
  description = "The SSH host key that was pinned."
  value       = one(damodel_llama_server.chat[*].host_key)
}
