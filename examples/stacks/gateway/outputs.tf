output "forwards" {
  description = "The SSH command of each server that makes it a local port of the gateway."
  value = {
    for name, port in var.members : name => join(" ", [
      "ssh -N -o ExitOnForwardFailure=yes -o ServerAliveInterval=15 -o UserKnownHostsFile=known_hosts",
      "-L 127.0.0.1:${port}:127.0.0.1:${damodel_llama_server.member[name].port}",
      "-p ${damodel_instance.member[name].ssh_port} root@${damodel_instance.member[name].ssh_host}",
    ])
  }
}

output "known_hosts" {
  description = "The host keys that were pinned, for ssh."
  value = join("", [
    for name, server in damodel_llama_server.member :
    "[${damodel_instance.member[name].ssh_host}]:${damodel_instance.member[name].ssh_port} ${server.host_key}\n"
  ])
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
