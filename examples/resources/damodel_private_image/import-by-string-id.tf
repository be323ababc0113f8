# By its number (image_id), as the data source damodel_private_images shows it.
import {
  to = damodel_private_image.base
  id = "951"
}
