# terraform query -generate-config-out=generated.tf writes import blocks and configurations for the results.
list "damodel_instance" "trainers" {
  provider = damodel

  config {
    query  = "trainer" # a part of the UID or name
    status = "Running"
  }
}
