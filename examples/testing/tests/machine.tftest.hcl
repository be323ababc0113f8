# Nothing is made here: plans are checked against the service as they are for a person.
run "a_plan_knows_the_price" {
  command = plan

  assert {
    condition     = output.hourly_cost > 0
    error_message = "The price is not in the plan."
  }
}

run "a_small_disk_is_refused" {
  command = plan

  variables {
    disk_size_gb = 20
  }

  expect_failures = [var.disk_size_gb]
}

# From here on there is an instance, which `terraform test` destroys in the end.
run "it_runs_without_a_password_in_the_state" {
  assert {
    condition     = damodel_instance.machine.status == "Running"
    error_message = "It is ${damodel_instance.machine.status}."
  }

  assert {
    condition     = damodel_instance.machine.ssh_password == null
    error_message = "The state holds the password."
  }
}

run "a_new_name_and_a_larger_disk_replace_nothing" {
  variables {
    name         = "renamed"
    disk_size_gb = 80
  }

  assert {
    condition     = output.machine_id == run.it_runs_without_a_password_in_the_state.machine_id
    error_message = "The instance was replaced."
  }

  assert {
    condition     = output.disk_id == run.it_runs_without_a_password_in_the_state.disk_id && damodel_cloud_disk.data.size_gb == 80
    error_message = "The disk was replaced, or has not grown."
  }
}
