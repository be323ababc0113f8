import {
  to = damodel_private_image.base
  identity = {
    image_id = 951
  }
}
