output "client" {
  description = "What a client needs besides the key."

  value = {
    base_url   = module.endpoint.base_url
    model_name = module.endpoint.model_name
    forward    = module.endpoint.forward
  }
}
