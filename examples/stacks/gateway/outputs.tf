locals {
  forwards = {
    for name, server in damodel_llama_server.member : name => join(" ", [
      "ssh ${server.instance_id} -N -o ExitOnForwardFailure=yes -o ServerAliveInterval=15",
      "-L 127.0.0.1:${var.members[name]}:127.0.0.1:${server.port}",
    ])
  }
}

output "forwards" {
  description = "The command that makes each server a local port of the gateway."
  value       = { for name, forward in local.forwards : name => "terraform-provider-damodel ${forward}" }
}

output "units" {
  description = "The systemd unit that keeps each of these commands running."
  value = {
    for name, forward in local.forwards :
    name => templatefile("${path.module}/forward.service.tftpl", { name = name, command = "${var.program} ${forward}" })
  }
}

output "known_hosts" {
  description = "The host keys that were pinned, for ~/.ssh/known_hosts_damodel."
  value       = join("", [for server in damodel_llama_server.member : "${server.instance_id} ${server.host_key}\n"])
}

output "caddyfile" {
  description = "The configuration of Caddy."
  value = templatefile("${path.module}/Caddyfile.tftpl", {
    address         = var.address
    is_internal     = var.is_internal
    request_buffers = var.request_buffers
    upstreams       = [for port in values(var.members) : "127.0.0.1:${port}"]
  })
}

output "prometheus" {
  description = "The configuration of Prometheus. It reads the key from the file llama.key next to it."
  value = yamlencode({
    scrape_configs = [{
      job_name        = "llama"
      scrape_interval = "15s"
      authorization   = { type = "Bearer", credentials_file = "llama.key" }

      static_configs = [
        for name, port in var.members : { targets = ["127.0.0.1:${port}"], labels = { member = name } }
      ]
    }]
  })
}

output "models" {
  description = "The name of the model in requests, as each server reported it."
  value       = { for name, server in damodel_llama_server.member : name => server.model_name }
}
