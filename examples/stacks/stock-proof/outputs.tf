output "workers" {
  description = "The specification of each worker."
  value = {
    for worker in damodel_instance.worker :
    worker.name => "${worker.spec_type} in ${worker.region}"
  }
}

output "price_ceiling" {
  description = "The maximum price of the workers per hour, known in the plan."
  value       = sum([for worker in damodel_instance.worker : coalesce(worker.price_ceiling, 0)])
}
