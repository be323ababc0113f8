output "base_url" {
  description = "The base address for an OpenAI client: public with `external_ip`, otherwise on this computer while `forward` runs."
  value       = var.external_ip == null ? damodel_llama_server.chat.endpoint : damodel_llama_server.chat.base_url
}

output "model_name" {
  description = "The name of the model in requests."
  value       = damodel_llama_server.chat.model_name
}

output "forward" {
  description = "The command that forwards the server's port to this computer."
  value       = "terraform-provider-damodel ssh ${damodel_instance.gpu.id} -N -L ${damodel_llama_server.chat.port}:127.0.0.1:${damodel_llama_server.chat.port}"
}

output "host_key" {
  description = "The SSH host key that was pinned, for `damodel_llama_tunnel` and `damodel_chat_completion`."
  value       = damodel_llama_server.chat.host_key
}

output "server_id" {
  description = "The server's id, for `damodel_chat_completion`."
  value       = damodel_llama_server.chat.id
}

output "instance_id" {
  description = "The instance's UID, for `damodel_llama_tunnel` and `terraform-provider-damodel ssh`."
  value       = damodel_instance.gpu.id
}

output "price_ceiling" {
  description = "The maximum price of the instance per hour, known in the plan."
  value       = damodel_instance.gpu.price_ceiling
}
