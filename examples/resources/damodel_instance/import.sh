# An instance is imported by its UID, as the console shows it.
terraform import damodel_instance.trainer ins-0123456789ab
