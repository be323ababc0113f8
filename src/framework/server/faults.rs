//! Finds answers of a resource that the core would refuse, and names the bug.

use std::{collections::BTreeSet, sync::Arc};

use super::Server;
use crate::framework::{
    Entry, Kind, ModelError, Path, Provider, Signature, Type, Value,
    model::{Shape, shape},
    schema::{Attribute, AttributeType, Nesting, Presence, Schema, Validator},
    value::Number,
};

/// Names at the top of a configuration that the core keeps for itself (plugin protocol, schema validity).
const RESERVED: [&str; 7] = ["connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"];
const RESERVED_IN_PROVIDERS: [&str; 2] = ["alias", "version"];

impl<P: Provider> Server<P> {
    /// Everything that is wrong with the declarations: schemas that the core would refuse, and models that do not have
    /// the attributes of their schema. A test holds every provider to none.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        compare("the provider", &self.schema, shape::<P::Model>(), &mut faults);
        reserve("the provider", &self.schema, &RESERVED_IN_PROVIDERS, &mut faults);
        refuse_write_only("the provider", &self.schema, &mut faults);
        for entry in self.registry.entries() {
            if let Some(signature) = &entry.signature {
                check_function(entry, signature, &mut faults);
                continue;
            }
            let (name, schema) = (format!("the {} {}", entry.kind, entry.name), &entry.schema);
            compare(&name, schema, read(entry, 0), &mut faults);
            match entry.kind {
                Kind::ListResource | Kind::Action => block_of_config(&name, schema, &mut faults),
                _ => reserve(&name, schema, &RESERVED, &mut faults),
            }
            if entry.kind != Kind::Resource {
                refuse_write_only(&name, schema, &mut faults);
            }
            let identity = entry.identity.as_ref().map(|identity| identity.faults(schema));
            faults.extend(identity.into_iter().flatten().map(|fault| format!("{name}: {fault}")));
            if entry.kind == Kind::ListResource {
                let resource = self.resource(entry.name).ok().filter(|resource| resource.identity.is_some());
                let item = read(entry, 1).ok();
                if resource.is_none_or(|resource| Some(&resource.ty) != item.as_ref().map(|item| &item.ty)) {
                    faults.push(format!("{name}: no resource with an identity has the model of what is listed"));
                }
            }
        }
        faults
    }
}

/// What one of the models of an entry reads.
fn read<C: Send + Sync>(entry: &Entry<C>, model: usize) -> Result<Shape, ModelError> {
    entry.shapes[model]()
}

fn compare(name: &str, schema: &Schema, shape: Result<Shape, ModelError>, faults: &mut Vec<String>) {
    faults.extend(schema.faults().iter().map(|fault| format!("{name}: {fault}")));
    match shape {
        Err(error) => faults.push(format!("{name}: the model cannot be probed: {error}")),
        Ok(shape) if shape.ty != schema.ty() => {
            faults.push(format!("{name}: the model is {:?}, the schema {:?}", shape.ty, schema.ty()));
        }
        Ok(shape) => {
            let mut found = Vec::new();
            find_unreadable(&schema.attributes, &Path::root(), &shape, &mut found);
            for block in &schema.blocks {
                find_unreadable(&block.attributes, &Path::to(&block.name), &shape, &mut found);
            }
            faults.extend(found.iter().map(|fault| format!("{name}: {fault}")));
        }
    }
}

/// What a configuration may say by its schema and the model could not read.
fn find_unreadable(attributes: &[Attribute], parent: &Path, shape: &Shape, faults: &mut Vec<String>) {
    for attribute in attributes.iter().filter(|attribute| attribute.presence != Presence::Computed) {
        let path = parent.attribute(&attribute.name);
        let (is_bare, is_fractional) = match &attribute.ty {
            AttributeType::Plain(_) => {
                (holds(&shape.bare, &path), holds(&shape.whole, &path) && !refuses_fractions(&attribute.validators))
            }
            AttributeType::Nested(nesting, children) => {
                let element = if *nesting == Nesting::Single { path.clone() } else { path.index(0) };
                find_unreadable(children, &element, shape, faults);
                (shape.bare.contains(&element), false)
            }
        };
        if is_bare {
            faults.push(format!(
                "{path} has elements that may be null or unknown, and the model reads none through Attr"
            ));
        }
        if is_fractional {
            faults.push(format!("{path} is a whole number in the model, and no rule says so"));
        }
    }
}

/// Whether one of the places is this one or lies within it.
fn holds(places: &BTreeSet<Path>, path: &Path) -> bool {
    places.iter().any(|place| place.steps().starts_with(path.steps()))
}

fn refuses_fractions(validators: &[Arc<dyn Validator>]) -> bool {
    "1.5".parse::<Number>().is_ok_and(|fraction| {
        let fraction = Value::Number(fraction);
        validators.iter().any(|validator| !validator.accepts(&fraction))
    })
}

fn reserve(name: &str, schema: &Schema, reserved: &[&str], faults: &mut Vec<String>) {
    let names = schema.attributes.iter().map(|a| &a.name).chain(schema.blocks.iter().map(|b| &b.name));
    let taken = names.filter(|taken| reserved.contains(&taken.as_str()));
    faults.extend(taken.map(|taken| format!("{name}: the core keeps the name {taken} for itself")));
}

/// Only what is managed may have write-only attributes (plugin protocol, sensitive, write-only, deprecated).
fn refuse_write_only(name: &str, schema: &Schema, faults: &mut Vec<String>) {
    fn holds_one(attribute: &Attribute) -> bool {
        match &attribute.ty {
            AttributeType::Nested(_, children) => attribute.write_only || children.iter().any(holds_one),
            AttributeType::Plain(_) => attribute.write_only,
        }
    }
    let held = schema.attributes.iter().filter(|attribute| holds_one(attribute));
    faults.extend(held.map(|attribute| format!("{name}: {} is write-only, or holds what is", attribute.name)));
}

/// What is only configured has nothing that the provider would set.
fn block_of_config(name: &str, schema: &Schema, faults: &mut Vec<String>) {
    let computed = schema.attributes.iter().filter(|attribute| attribute.presence == Presence::Computed);
    faults.extend(computed.map(|attribute| format!("{name}: {} is computed", attribute.name)));
}

fn check_function<C: Send + Sync>(entry: &Entry<C>, signature: &Signature, faults: &mut Vec<String>) {
    let name = entry.name;
    let mut fault = |text: &str| faults.push(format!("function {name}: {text}"));
    if signature.summary.is_empty() || signature.description.is_empty() {
        fault("there is no description");
    }
    let parameters: Vec<_> = signature.parameters.iter().chain(&signature.variadic).collect();
    for (position, parameter) in parameters.iter().enumerate() {
        if parameter.description.is_empty() {
            fault("a parameter has no description");
        }
        if parameters.iter().skip(position + 1).any(|other| other.name == parameter.name) {
            fault("two parameters have the same name");
        }
    }
    for name in parameters.iter().map(|parameter| parameter.name.as_str()).chain([name]) {
        if !name.starts_with(|c: char| c.is_ascii_lowercase())
            || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            fault("a name is not lower case letters, digits and underscores, beginning with a letter");
        }
    }
    match (read(entry, 0), read(entry, 1)) {
        (Err(error), _) | (_, Err(error)) => fault(&format!("a model cannot be probed: {error}")),
        (Ok(arguments), Ok(output)) => {
            if arguments.ty != arguments_type(signature) {
                fault("the model of the arguments is not the parameters");
            }
            for parameter in &signature.parameters {
                let path = Path::to(&parameter.name);
                if holds(&arguments.bare, &path) {
                    fault(&format!("{path} has elements that may be null, and the model reads none through Attr"));
                }
                if arguments.whole.contains(&path) && !refuses_fractions(&parameter.validators) {
                    fault(&format!("{path} is a whole number in the model, and no rule says so"));
                }
            }
            if output.ty != signature.returns {
                fault("the model of the result is not its type");
            }
        }
    }
}

fn arguments_type(signature: &Signature) -> Type {
    let single = signature.parameters.iter().map(|parameter| (parameter.name.clone(), parameter.ty.clone()));
    let rest = signature.variadic.iter().map(|parameter| (parameter.name.clone(), Type::list(parameter.ty.clone())));
    Type::object(single.chain(rest))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::framework::{Attr, schema::validator};

    #[derive(Serialize, Deserialize)]
    struct Model<T> {
        words: Attr<Vec<T>>,
        objects: Attr<Vec<Attr<Object>>>,
        count: Attr<i64>,
    }

    #[derive(Serialize, Deserialize)]
    struct Object {
        size: Attr<i64>,
    }

    fn schema(words: Attribute, whole: bool) -> Schema {
        let number = |name| {
            let number = Attribute::optional(name, Type::Number, "A number.");
            if whole { number.validate(validator::whole()) } else { number.validate(validator::positive()) }
        };
        let objects = AttributeType::Nested(Nesting::List, vec![number("size")]);
        Schema::new("A thing.", vec![words, Attribute::required("objects", objects, "Objects."), number("count")])
    }

    fn faults<T: serde::de::DeserializeOwned>(words: Attribute, whole: bool) -> Vec<String> {
        let mut faults = Vec::new();
        compare("it", &schema(words, whole), shape::<Model<T>>(), &mut faults);
        faults
    }

    #[test]
    fn what_a_configuration_may_say_every_model_reads() {
        let configured = || Attribute::optional("words", Type::list(Type::String), "Words.");
        assert_eq!(faults::<Attr<String>>(configured(), true), Vec::<String>::new());
        let found = faults::<String>(configured(), true);
        assert!(found.len() == 1 && found[0].contains("it: words has elements"), "{found:?}");
        let found = faults::<Attr<String>>(configured(), false);
        assert!(found.len() == 2 && found[0].contains("objects[0].size is a whole number"), "{found:?}");

        // What the provider alone sets is never null or unknown inside.
        let computed = Attribute::computed("words", Type::list(Type::String), "Words.");
        assert_eq!(faults::<String>(computed, true), Vec::<String>::new());
    }
}
