output "image" {
  description = "The address for `image` of an instance, here or in another configuration."
  value       = one(damodel_private_image.release[*].image_tag)
}

output "image_id" {
  description = "The image's number, for `image_id` with image_type = \"private\", and for an import."
  value       = one(damodel_private_image.release[*].image_id)
}
