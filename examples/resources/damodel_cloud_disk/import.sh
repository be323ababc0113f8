# A disk is imported by its database number, or by its UID (disk-…), as the console shows them.
terraform import damodel_cloud_disk.checkpoints 801
