# By its database number, or by its UID (disk-…), as the console shows them.
import {
  to = damodel_cloud_disk.checkpoints
  id = "801"
}
