output "model" {
  description = "The name of the model in requests."
  value       = damodel_llama_server.chat.model_name
}
