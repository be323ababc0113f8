import {
  to = damodel_instance.trainer
  identity = {
    instance_uid = "ins-0123456789ab"
  }
}
