output "workers" {
  description = "What each worker was bought as."
  value = {
    for worker in damodel_instance.worker :
    worker.name => "${worker.spec_type} in ${worker.region}"
  }
}

output "price_ceiling" {
  description = "The most that the workers may cost an hour, known before they are bought."
  value       = sum([for worker in damodel_instance.worker : coalesce(worker.price_ceiling, 0)])
}
