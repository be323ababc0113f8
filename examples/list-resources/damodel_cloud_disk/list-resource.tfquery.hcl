# include_resource shows the whole disk instead of only its id and name.
list "damodel_cloud_disk" "mounted" {
  provider         = damodel
  include_resource = true
  limit            = 1000

  config {
    status          = "mounted"
    storage_classes = ["RBD"]
  }
}
