output "urls" {
  description = "The address of each notebook, without its token."
  value       = { for name, notebook in damodel_instance.notebook : name => notebook.jupyter_url }
}

output "tokens" {
  description = "The token of each notebook."
  value       = { for name, notebook in damodel_instance.notebook : name => notebook.jupyter_token }
  sensitive   = true
}
