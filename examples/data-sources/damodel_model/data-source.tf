terraform {
  required_providers {
    damodel = {
      source  = "damodel/damodel"
      version = "~> 0.1"
    }
  }
}

provider "damodel" {}

variable "model" {
  description = "A GGUF file on the computer that runs Terraform."
  type        = string
  default     = "model.gguf"
}

data "damodel_model" "this" {
  path = var.model
}

output "model" {
  description = "The model in the file."
  value = {
    name           = data.damodel_model.this.name
    architecture   = data.damodel_model.this.architecture
    quantization   = data.damodel_model.this.quantization
    parameters     = data.damodel_model.this.parameters
    context_length = data.damodel_model.this.context_length
    file_bytes     = data.damodel_model.this.file_bytes
  }
}
