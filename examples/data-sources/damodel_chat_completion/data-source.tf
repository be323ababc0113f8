terraform {
  required_version = ">= 1.5" # for the check block; the data source itself needs no more than the provider

  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

# The chat endpoint has its own key: DAMODEL_CHAT_API_KEY, or chat_api_key here.
provider "damodel" {}

variable "model" {
  description = "A model that the account has enabled."
  type        = string
  default     = "deepseek-r1"
}

# Sends a chat in every plan and apply. If the model does not answer, the check warns; the run continues.
# (Terraform shows the data source of a check as read during apply, every time, and `plan -detailed-exitcode` ends with 2.)
check "the_model_answers" {
  data "damodel_chat_completion" "ping" {
    model       = var.model
    temperature = 0
    max_tokens  = 1000

    messages = [
      { role = "system", content = "Answer in one word." },
      { role = "user", content = "Reply with the word pong." },
    ]
  }

  assert {
    condition     = strcontains(lower(data.damodel_chat_completion.ping.content), "pong")
    error_message = "${var.model} answered: ${data.damodel_chat_completion.ping.content}"
  }
}
