output "members" {
  description = "How to reach each member: the SSH command that forwards its port, and the local address."
  value = {
    for name, server in damodel_llama_server.member : name => {
      forward  = "ssh -N -L ${server.port}:127.0.0.1:${server.port} -p ${damodel_instance.member[name].ssh_port} root@${damodel_instance.member[name].ssh_host}"
      endpoint = server.endpoint
      built    = server.build_used
      hourly   = damodel_instance.member[name].estimated_cost.hourly_equivalent
    }
  }
}
