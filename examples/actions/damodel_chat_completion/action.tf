terraform {
  required_version = ">= 1.14" # OpenTofu has no actions yet
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# The chat endpoint has its own key: DAMODEL_API_KEY, or api_key here.
provider "damodel" {}

# Shows the answer as it arrives. No answer is an error.
action "damodel_chat_completion" "smoke_test" {
  config {
    model      = "deepseek-r1"
    max_tokens = 1000
    messages = [
      { role = "user", content = "Reply with the word pong." },
    ]
  }
}

# Runs when this value changes. To run it by hand:
# terraform apply -invoke=action.damodel_chat_completion.smoke_test
resource "terraform_data" "release" {
  input = "1"

  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.damodel_chat_completion.smoke_test]
    }
  }
}
