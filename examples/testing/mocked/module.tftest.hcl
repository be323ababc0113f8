# The module without any service: Terraform invents what the provider would compute. Numbers are then 0 and texts random, so
# everything that the module passes on or checks has a value here. Needs Terraform 1.7 or OpenTofu 1.8.
mock_provider "damodel" {
  mock_data "damodel_spec" {
    defaults = { spec_id = 103 }
  }

  mock_data "damodel_public_image" {
    defaults = { image_url = "registry.example.com/model_library/pytorch:2.5" }
  }

  mock_data "damodel_cloud_disk_spec" {
    defaults = { spec_id = 31 }
  }

  mock_resource "damodel_cloud_disk" {
    defaults = { id = "7", disk_id = 7 }
  }

  mock_resource "damodel_instance" {
    defaults = {
      id             = "ins-1"
      status         = "Running"
      estimated_cost = { hourly_equivalent = 1.98 }
    }
  }
}

run "it_plans_and_applies_without_a_service" {
  assert {
    condition     = output.hourly_cost == 1.98
    error_message = "The module does not return the price of its instance."
  }

  assert {
    condition     = damodel_instance.workbench.exist_disks[0].disk_id == 7
    error_message = "The disk is not mounted in the instance."
  }
}
