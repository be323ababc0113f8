# A private image is imported by its number (image_id), as the data source damodel_private_images shows it.
terraform import damodel_private_image.base 951
