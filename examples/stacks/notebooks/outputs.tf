output "urls" {
  description = "The address of each notebook, without its token."
  value       = { for name, notebook in damodel_instance.notebook : name => notebook.jupyter_url }
}

output "commands" {
  description = "The command that prints the address of each notebook with its token; terraform-provider-damodel must be on PATH."
  value       = { for name, notebook in damodel_instance.notebook : name => "terraform-provider-damodel ssh --jupyter ${notebook.id}" }
}
