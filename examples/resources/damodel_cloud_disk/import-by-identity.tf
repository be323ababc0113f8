import {
  to = damodel_cloud_disk.checkpoints
  identity = {
    id = "801"
  }
}
