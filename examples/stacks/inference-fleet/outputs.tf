output "members" {
  description = "How to reach each member: the command that forwards its port, and the local address."
  value = {
    for name, server in damodel_llama_server.member : name => {
      forward  = "terraform-provider-damodel ssh ${server.instance_id} -N -L ${server.port}:127.0.0.1:${server.port}"
      endpoint = server.endpoint
      built    = server.build_used
      hourly   = damodel_instance.member[name].estimated_cost.hourly_equivalent
    }
  }
}
