output "instance_id" {
  value = damodel_instance.workbench.id
}

output "disk_id" {
  value = damodel_cloud_disk.data.id
}

output "hourly_cost" {
  value = damodel_instance.workbench.estimated_cost.hourly_equivalent
}
