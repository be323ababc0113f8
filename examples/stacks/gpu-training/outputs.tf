output "instance" {
  description = "The specification that was bought, and its price per hour."
  value       = "${damodel_instance.trainer.gpu_num} x ${damodel_instance.trainer.gpu_name}, ${coalesce(damodel_instance.trainer.estimated_cost.hourly_equivalent, 0)} an hour"
}

output "ssh_command" {
  description = "How to log in."
  value       = "ssh -p ${damodel_instance.trainer.ssh_port} root@${damodel_instance.trainer.ssh_host}"
}

output "checkpoints" {
  description = "The import id of the disk, which remains when the instance is destroyed."
  value       = damodel_cloud_disk.checkpoints.id
}
