provider "damodel" {
  max_hourly_price = var.max_hourly_price # of each instance
  default_max_age  = "720h"
}

data "damodel_public_image" "gpu" {
  name_regex  = "^PyTorch"
  label       = "cuda12.4"
  most_recent = true
}

# The specifications for each member, cheapest first.
data "damodel_spec" "member" {
  for_each       = var.fleet
  capacity_type  = "ondemand"
  gpu_name_regex = each.value.gpu
  min_gpu_num    = each.value.gpu_num
  available_only = true
  sort_by        = "price"
  first          = true
}

resource "damodel_instance" "member" {
  for_each = var.fleet
  name     = "${var.name}-${each.key}"
  spec_id  = data.damodel_spec.member[each.key].spec_id
  gpu_num  = each.value.gpu_num
  image    = data.damodel_public_image.gpu.image_url

  lifecycle {
    ignore_changes = [spec_id, image] # keep a member when another specification is cheaper or another image newer
  }
}

# The apply of a member ends when its model answers: with the prebuilt server, or one that is compiled in the instance.
resource "damodel_llama_server" "member" {
  for_each     = var.fleet
  instance_id  = damodel_instance.member[each.key].id
  model        = each.value.model
  context_size = each.value.context_size
  parallel     = each.value.parallel
  api_key      = var.chat_key
  host         = "127.0.0.1" # reachable through SSH only

  probe = {
    prompt     = "Reply with the word pong."
    max_tokens = 50
    expect     = "(?i)pong"
  }

  timeouts {
    create = "90m" # a build from source included
  }
}

# Warns in every plan if a server is not ready. The next apply repairs it.
check "the_fleet_serves" {
  assert {
    condition     = alltrue([for member in damodel_llama_server.member : member.status == "ready"])
    error_message = "Not all servers are ready: ${jsonencode({ for name, member in damodel_llama_server.member : name => member.status })}"
  }
}

# A chat with one member, end to end. It is outside of a check: a data source inside one is read in each apply, so
# `plan -detailed-exitcode` would end with 2 every time, and drift alarms could not use the exit code. If the server does
# not answer at all, the plan fails: -var ask_canary=false plans the repair.
data "damodel_chat_completion" "canary" {
  count           = var.ask_canary ? 1 : 0
  target          = "llama_server"
  llama_server_id = damodel_llama_server.member[local.canary].id
  host_key        = damodel_llama_server.member[local.canary].host_key
  api_key         = var.chat_key
  model           = "any"
  max_tokens      = 50

  messages = [{ role = "user", content = "Reply with the word pong." }]
}

check "the_canary_answers" {
  assert {
    condition     = alltrue([for chat in data.damodel_chat_completion.canary : strcontains(lower(chat.content), "pong")])
    error_message = "${local.canary} answered: ${join(", ", data.damodel_chat_completion.canary[*].content)}"
  }
}

locals {
  canary = sort(keys(var.fleet))[0]
}
