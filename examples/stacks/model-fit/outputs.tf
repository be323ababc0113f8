output "memory" {
  description = "The GPU memory that the model needs, in MiB by part."
  value = {
    for part in ["weights", "cache", "compute", "overhead", "total"] :
    part => local.memory[part] == null ? null : ceil(local.memory[part] / 1048576)
  }
}

output "spec_type" {
  description = "The specification of the instance."
  value       = damodel_instance.gpu.spec_type
}

output "server" {
  description = "The server's id, for damodel_chat_completion and damodel_llama_tunnel."
  value       = damodel_llama_server.chat.id
}
