list "damodel_private_image" "bases" {
  provider = damodel

  config {
    name_regex = "-base$"
    status     = "ready"
  }
}
