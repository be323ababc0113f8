output "id" {
  description = "The instance's UID, by which it can be imported."
  value       = damodel_instance.first.id
}

output "name" {
  description = "What the instance is called."
  value       = damodel_instance.first.name
}

output "status" {
  description = "The instance's status when the state was last refreshed."
  value       = damodel_instance.first.status
}

output "gpu" {
  description = "What the instance computes with."
  value       = "${damodel_instance.first.gpu_num} x ${damodel_instance.first.gpu_name}"
}

output "hourly_cost" {
  description = "What it costs an hour, as the plan quoted it."
  value       = try(damodel_instance.first.estimated_cost.hourly_equivalent, null)
}

output "ssh_command" {
  description = "How to log in."
  value       = "ssh -p ${damodel_instance.first.ssh_port} root@${damodel_instance.first.ssh_host}"
}

output "ssh_password" {
  description = "The password for it: terraform output -raw ssh_password"
  value       = damodel_instance.first.ssh_password
  sensitive   = true
}

output "answer" {
  description = "What the model in the instance answers."
  value       = one(data.damodel_chat_completion.hello[*].content)
}
