terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

# All Running instances of the account. Their passwords and tokens are not among the attributes.
data "damodel_instances" "running" {
  status = "Running"
}

output "running" {
  value = {
    for instance in data.damodel_instances.running.instances : instance.instance_uid => "${instance.name}: ${instance.gpu_num} x ${instance.gpu_name}"
  }
}
