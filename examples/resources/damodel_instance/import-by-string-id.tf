# By its UID, as the console shows it.
import {
  to = damodel_instance.trainer
  id = "ins-0123456789ab"
}
