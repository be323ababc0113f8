//! Functions that need no service: addresses and sums.

mod estimate_cost;

use serde::{Deserialize, Serialize};

use super::images::Address;
use crate::framework::{Attr, Function, FunctionError, Parameter, Signature, Type};

pub(super) use self::estimate_cost::EstimateCost;

/// `parse_image_address(address)`.
#[derive(Debug)]
pub(super) struct ParseImageAddress;

/// Its arguments.
#[derive(Debug, Deserialize)]
pub(in crate::provider) struct Arguments {
    address: String,
}

/// Its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Parts {
    registry_host: Attr<String>,
    kind: Attr<String>,
    repository: Attr<String>,
    tag: Attr<String>,
}

impl Function for ParseImageAddress {
    type Arguments = Arguments;
    type Output = Parts;

    fn name(&self) -> &'static str {
        "parse_image_address"
    }

    fn signature(&self) -> Signature {
        Signature {
            summary: "The parts of an image's full address".to_owned(),
            description: "Splits the full address of an image, as in `image` of `damodel_instance`, `image_url` of a \
                          public image and `image_tag` of a private one, into `registry_host`, `kind` (`public` or \
                          `private`), `repository`, and `tag`, which is null if the address has none."
                .to_owned(),
            parameters: vec![Parameter::new(
                "address",
                Type::String,
                "The address: `host/repository[:tag]`. A public image has `model_library` in it, a private one \
                 `user_private`.",
            )],
            variadic: None,
            returns: Type::object(["registry_host", "kind", "repository", "tag"].map(|name| (name, Type::String))),
        }
    }

    fn call(&self, arguments: Arguments) -> Result<Parts, FunctionError> {
        let address =
            Address::parse(&arguments.address).map_err(|problem| FunctionError::on("address", problem.to_string()))?;
        Ok(Parts {
            registry_host: address.registry_host.into(),
            kind: if address.public { "public" } else { "private" }.into(),
            repository: address.repository.into(),
            tag: address.tag.map(str::to_owned).into(),
        })
    }
}
