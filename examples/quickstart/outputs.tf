output "id" {
  description = "The instance's UID, which is also its import id."
  value       = damodel_instance.first.id
}

output "name" {
  description = "The name of the instance."
  value       = damodel_instance.first.name
}

output "status" {
  description = "The instance's status when the state was last refreshed."
  value       = damodel_instance.first.status
}

output "gpu" {
  description = "The GPU of the instance."
  value       = "${damodel_instance.first.gpu_num} x ${damodel_instance.first.gpu_name}"
}

output "hourly_cost" {
  description = "The price per hour, as quoted by the plan."
  value       = try(damodel_instance.first.estimated_cost.hourly_equivalent, null)
}

output "ssh_command" {
  description = "How to log in; terraform-provider-damodel must be on PATH."
  value       = "terraform-provider-damodel ssh ${damodel_instance.first.id}"
}

output "answer" {
  description = "The answer of the model in the instance."
  value       = one(data.damodel_chat_completion.hello[*].content)
}
