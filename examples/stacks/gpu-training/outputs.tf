output "instance" {
  description = "The specification that was bought."
  value       = one([for it in damodel_instance.trainer : "${it.gpu_num} x ${it.gpu_name}"])
}

output "hourly_cost" {
  description = "The price per hour, as quoted by the plan."
  value       = one(damodel_instance.trainer[*].estimated_cost.hourly_equivalent)
}

output "ssh_command" {
  description = "How to log in."
  value       = one([for it in damodel_instance.trainer : "terraform-provider-damodel ssh ${it.id}"])
}
