# No object is created: the plan is checked against the service.
run "a_plan_has_the_price" {
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

# The runs below use a real instance of the sandbox, which `terraform test` destroys at the end.
run "it_runs_without_a_password_in_the_state" {
  assert {
    condition     = damodel_instance.workbench.status == "Running"
    error_message = "Its status is ${damodel_instance.workbench.status}."
  }

  assert {
    condition     = damodel_instance.workbench.ssh_password == null
    error_message = "The password is in the state."
  }
}

run "a_new_name_and_a_larger_disk_replace_nothing" {
  variables {
    name         = "renamed"
    disk_size_gb = 80

    earlier = {
      instance_id = run.it_runs_without_a_password_in_the_state.instance_id
      disk_id     = run.it_runs_without_a_password_in_the_state.disk_id
    }
  }

  assert {
    condition     = output.instance_id == var.earlier.instance_id
    error_message = "The instance was replaced."
  }

  assert {
    condition     = output.disk_id == var.earlier.disk_id && damodel_cloud_disk.data.size_gb == 80
    error_message = "The disk was replaced, or did not grow."
  }
}
