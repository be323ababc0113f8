output "ssh_host" {
  description = "The address to log in to."
  value       = damodel_instance.gpu.ssh_host
}

output "ssh_port" {
  description = "The port to log in to."
  value       = damodel_instance.gpu.ssh_port
}
