//! Schemas, and signatures of functions, as messages.

use crate::{
    framework::{
        IdentitySchema, Parameter, Signature,
        schema::{Attribute, AttributeType, Nesting, Requirement, Schema},
    },
    protocol::{
        codec::encode_type,
        tfplugin6::{
            Function, ResourceIdentitySchema, Schema as WireSchema, StringKind,
            function::{Parameter as WireParameter, Return},
            resource_identity_schema::IdentityAttribute,
            schema::{
                Attribute as WireAttribute, Block, NestedBlock, Object, nested_block::NestingMode as BlockNesting,
                object::NestingMode,
            },
        },
    },
};

/// A schema as a message. It always has an inner block, because the core crashes on a schema or block without one
/// (plugin protocol, missing-field crashes).
pub(in crate::protocol) fn schema(schema: &Schema) -> WireSchema {
    let mut block = block(&schema.attributes, &schema.description);
    (block.deprecated, block.deprecation_message) = deprecation(schema.deprecated.as_ref());
    block.block_types = schema
        .blocks
        .iter()
        .map(|inner| NestedBlock {
            type_name: inner.name.to_string(),
            block: Some(self::block(&inner.attributes, &inner.description)),
            nesting: BlockNesting::Single.into(),
            min_items: 0,
            max_items: 0,
        })
        .collect();
    WireSchema { version: schema.version, block: Some(block) }
}

fn block(attributes: &[Attribute], description: &str) -> Block {
    Block {
        attributes: attributes.iter().map(attribute).collect(),
        description: description.to_owned(),
        description_kind: StringKind::Markdown.into(),
        ..Block::default()
    }
}

/// Cores before 1.15 know only that something is deprecated.
fn deprecation(instead: Option<&String>) -> (bool, String) {
    (instead.is_some(), instead.cloned().unwrap_or_default())
}

fn attribute(attribute: &Attribute) -> WireAttribute {
    let (deprecated, deprecation_message) = deprecation(attribute.deprecated.as_ref());
    let (ty, nested_type) = match &attribute.ty {
        AttributeType::Plain(ty) => (encode_type(ty), None),
        AttributeType::Nested(nesting, attributes) => (Vec::new(), Some(object(*nesting, attributes))),
    };
    WireAttribute {
        name: attribute.name.to_string(),
        r#type: ty,
        nested_type,
        description: attribute.description.clone(),
        description_kind: StringKind::Markdown.into(),
        required: attribute.requirement == Requirement::Required,
        optional: matches!(attribute.requirement, Requirement::Optional | Requirement::OptionalComputed),
        computed: attribute.is_computed(),
        sensitive: attribute.sensitive,
        write_only: attribute.write_only,
        deprecated,
        deprecation_message,
    }
}

fn object(nesting: Nesting, attributes: &[Attribute]) -> Object {
    Object {
        attributes: attributes.iter().map(attribute).collect(),
        nesting: match nesting {
            Nesting::List => NestingMode::List,
            Nesting::Single => NestingMode::Single,
        }
        .into(),
        ..Object::default()
    }
}

/// The version of the layout of all identities, none of which has changed.
pub(in crate::protocol) const IDENTITY_VERSION: i64 = 0;

/// The schema of an identity as a message.
pub(in crate::protocol) fn identity_schema(schema: &IdentitySchema) -> ResourceIdentitySchema {
    ResourceIdentitySchema {
        version: IDENTITY_VERSION,
        identity_attributes: schema
            .attributes
            .iter()
            .map(|attribute| IdentityAttribute {
                name: attribute.name.clone(),
                r#type: encode_type(&attribute.ty),
                required_for_import: attribute.required,
                optional_for_import: !attribute.required,
                description: attribute.description.clone(),
            })
            .collect(),
    }
}

/// A signature as a message. The core crashes on a function without a return (plugin protocol, missing-field crashes).
pub(in crate::protocol) fn function(signature: &Signature) -> Function {
    Function {
        parameters: signature.parameters.iter().map(parameter).collect(),
        r#return: Some(Return { r#type: encode_type(&signature.returns) }),
        summary: signature.summary.clone(),
        description: signature.description.clone(),
        description_kind: StringKind::Markdown.into(),
        ..Function::default()
    }
}

fn parameter(parameter: &Parameter) -> WireParameter {
    WireParameter {
        name: parameter.name.clone(),
        r#type: encode_type(&parameter.ty),
        allow_null_value: parameter.takes_null,
        description: parameter.description.clone(),
        description_kind: StringKind::Markdown.into(),
        ..WireParameter::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::{schema::Block, value::Type};

    #[test]
    fn a_schema_says_what_the_core_needs() {
        let disk = vec![Attribute::required("size", Type::Number, "Size.")];
        let mut source = Schema::new(
            "A **thing**.",
            vec![
                Attribute::with_default("region", Type::String, "a", "Region.").deprecated("Use place."),
                Attribute::optional("password", Type::String, "Password.").sensitive().write_only(),
                Attribute::computed("disks", AttributeType::Nested(Nesting::List, disk), "Disks."),
            ],
        );
        source.blocks.push(Block { name: "timeouts".into(), description: "Timeouts.".to_owned(), attributes: vec![] });
        let block = schema(&source).block.unwrap();
        assert_eq!((block.description.as_str(), block.description_kind), ("A **thing**.", 1));
        let [region, password, disks] = block.attributes.as_slice() else { panic!("three attributes") };
        assert_eq!(region.r#type, b"\"string\"");
        assert!(region.optional && region.computed && !region.required);
        assert_eq!((region.deprecated, region.deprecation_message.as_str()), (true, "Use place."));
        assert_eq!((block.deprecated, block.deprecation_message.as_str()), (false, ""));
        assert!(password.optional && !password.computed && password.sensitive && password.write_only);
        let nested = disks.nested_type.as_ref().unwrap();
        assert_eq!((nested.nesting, disks.r#type.len()), (2, 0));
        assert!(nested.attributes[0].required);
        let timeouts = &block.block_types[0];
        assert_eq!((timeouts.nesting, timeouts.min_items, timeouts.max_items), (1, 0, 0));
        assert!(timeouts.block.is_some());
    }
}
