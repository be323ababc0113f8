//! Faults of declarations: schemas that the core would refuse, and models that cannot read a value that their schema
//! allows. A test requires that a provider has none.

use super::{
    diagnostics::Path,
    identity::IdentitySchema,
    registry::{ModelReader, OfferKind, OfferedFunction, Offering, Provider, reader},
    schema::{Attribute, AttributeType, Nesting, Replacement, Requirement, Schema, Validator},
    server::Server,
    value::{Type, Value},
};

/// Names that the core reserves at the top of a configuration (plugin protocol, schema validity).
const RESERVED: [&str; 7] = ["connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"];
const RESERVED_IN_PROVIDERS: [&str; 2] = ["alias", "version"];

impl<P: Provider> Server<P> {
    /// The faults of the provider's declarations, for its tests: schemas that the core would refuse, and models that
    /// cannot read a value that their schema allows.
    pub fn unsound(&self) -> Vec<String> {
        let mut faults = schema_faults(self.schema());
        faults.extend(model_faults(self.schema(), reader::<P::Model>));
        faults.extend(reserved(self.schema(), &RESERVED_IN_PROVIDERS).chain(write_only(self.schema())));
        let entries: Vec<_> = self.registry().entries().collect();
        let twice = entries.windows(2).filter(|pair| (pair[0].kind, pair[0].name) == (pair[1].kind, pair[1].name));
        faults.extend(twice.map(|pair| format!("the {} {} is registered twice", pair[0].kind, pair[0].name)));
        for entry in entries {
            let found = match entry.kind {
                OfferKind::Function => {
                    self.registry().find_function(entry.name).map(function_faults).unwrap_or_default()
                }
                _ => self.entry_faults(entry),
            };
            faults.extend(found.into_iter().map(|fault| format!("the {} {}: {fault}", entry.kind, entry.name)));
        }
        faults
    }

    fn entry_faults(&self, entry: &Offering) -> Vec<String> {
        let schema = &entry.schema;
        let mut faults = schema_faults(schema);
        faults.extend(model_faults(schema, entry.readers[0]));
        match entry.kind {
            OfferKind::ListResource | OfferKind::Action => {
                let computed =
                    schema.attributes.iter().filter(|attribute| attribute.requirement == Requirement::Computed);
                faults
                    .extend(computed.map(|attribute| format!("{} is computed, in what is configured", attribute.name)));
            }
            _ => faults.extend(reserved(schema, &RESERVED)),
        }
        if entry.kind != OfferKind::Resource {
            faults.extend(write_only(schema));
        }
        faults.extend(entry.identity.iter().flat_map(|identity| identity_faults(identity, schema)));
        if entry.kind == OfferKind::ListResource {
            match self.registry().find(OfferKind::Resource, entry.name) {
                Ok(resource) if resource.identity.is_some() => {
                    faults.extend(model_faults(&resource.schema, entry.readers[1]));
                }
                _ => faults.push("no resource with an identity is listed".to_owned()),
            }
        }
        faults
    }
}

/// The core's rules that a schema breaks (plugin protocol, schema rules).
fn schema_faults(schema: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names: Vec<_> = names(schema).collect();
    names.sort_unstable();
    faults.extend(names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| format!("{} is used twice", pair[0])));
    attribute_faults(&schema.attributes, &Path::root(), &mut faults);
    nested_faults(&schema.attributes, &Path::root(), None, &mut faults);
    if !is_described(&schema.description) {
        faults.push("no description".to_owned());
    }
    for block in &schema.blocks {
        if !is_described(&block.description) {
            faults.push(format!("{}: no description", block.name));
        }
        attribute_faults(&block.attributes, &Path::to(&block.name), &mut faults);
        if !block
            .attributes
            .iter()
            .all(|attribute| !attribute.is_computed() && matches!(attribute.ty, AttributeType::Plain(_)))
        {
            faults.push(format!("{}: a block takes plain arguments only", block.name));
        }
    }
    let follows = schema.attributes.iter().flat_map(|attribute| &attribute.follows);
    let unknown = follows.filter(|name| schema.attribute(name).is_none());
    faults.extend(unknown.map(|name| format!("{name} is followed, and is no attribute")));
    if schema.version < 0 {
        faults.push("the version is negative".to_owned());
    }
    faults
}

fn attribute_faults(attributes: &[Attribute], parent: &Path, faults: &mut Vec<String>) {
    for attribute in attributes {
        let path = parent.attribute(&attribute.name);
        let mut fault = |fault| faults.push(format!("{path}: {fault}"));
        if !is_name(&attribute.name) {
            fault("the name is not lower case letters, digits and underscores");
        }
        if !is_described(&attribute.description) {
            fault("no description");
        }
        if attribute.default.is_some() && attribute.requirement != Requirement::OptionalComputed {
            fault("a default needs optional and computed");
        }
        if attribute.write_only && attribute.is_computed() {
            fault("a write-only attribute cannot be computed");
        }
        match &attribute.ty {
            AttributeType::Plain(ty) if !is_planned(ty) => {
                fault("sets, tuples and dynamic values have no model");
            }
            AttributeType::Plain(_) => {}
            AttributeType::Nested(_, children) => attribute_faults(children, &path, faults),
        }
    }
}

/// What only has an effect on attributes at the top, or outside of lists (plugin protocol, the framework's plan
/// algorithm). `nesting` is a list if one of the levels above is.
fn nested_faults(attributes: &[Attribute], parent: &Path, nesting: Option<Nesting>, faults: &mut Vec<String>) {
    for attribute in attributes {
        let path = parent.attribute(&attribute.name);
        let fault = match (nesting, attribute.replacement) {
            (Some(_), _) if !attribute.follows.is_empty() => Some("only an attribute at the top follows others"),
            (Some(_), Replacement::IfKnown) => Some("only an attribute at the top replaces if it is known"),
            (Some(Nesting::List), Replacement::Always) => Some("the list replaces, not an attribute of its elements"),
            _ => None,
        };
        faults.extend(fault.map(|fault| format!("{path}: {fault}")));
        if let AttributeType::Nested(own, children) = &attribute.ty {
            let nesting = if nesting == Some(Nesting::List) { nesting } else { Some(*own) };
            nested_faults(children, &path, nesting, faults);
        }
    }
}

/// Whether a text describes something alone: a word ("Both.") needs its neighbours, which editors do not show.
fn is_described(description: &str) -> bool {
    let sentence = description.split(". ").next().unwrap_or_default();
    sentence.split_whitespace().nth(1).is_some()
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether the rules of plans and results cover the type. A set would need rules for matching its elements, which have
/// no paths.
fn is_planned(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Number | Type::String => true,
        Type::List(element) | Type::Map(element) => is_planned(element),
        Type::Object(attributes) => attributes.values().all(is_planned),
        Type::Dynamic | Type::Set(_) | Type::Tuple(_) => false,
    }
}

fn names(schema: &Schema) -> impl Iterator<Item = &str> {
    let blocks = schema.blocks.iter().map(|block| &*block.name);
    schema.attributes.iter().map(|attribute| &*attribute.name).chain(blocks)
}

fn reserved(schema: &Schema, reserved: &[&str]) -> impl Iterator<Item = String> {
    names(schema).filter(|name| reserved.contains(name)).map(|name| format!("the name {name} is reserved by Terraform"))
}

/// Only resources may have write-only attributes (plugin protocol, sensitive, write-only, deprecated).
fn write_only(schema: &Schema) -> impl Iterator<Item = String> {
    fn holds_one(attribute: &Attribute) -> bool {
        let children = if let AttributeType::Nested(_, children) = &attribute.ty { children.as_slice() } else { &[] };
        attribute.write_only || children.iter().any(holds_one)
    }
    let held = schema.attributes.iter().filter(|attribute| holds_one(attribute));
    held.map(|attribute| format!("{} is write-only, or holds what is", attribute.name))
}

fn identity_faults(identity: &IdentitySchema, schema: &Schema) -> Vec<String> {
    let mut faults = Vec::new();
    if identity.attributes.is_empty() {
        faults.push("an identity has at least one attribute".to_owned());
    }
    for attribute in &identity.attributes {
        let mut path = attribute.of.split('.');
        let first = path.next().and_then(|name| schema.attribute(name));
        let copied = path.fold(first, |object, name| match &object?.ty {
            AttributeType::Nested(Nesting::Single, children) => children.iter().find(|child| child.name == name),
            _ => None,
        });
        let is_copy = copied.is_some_and(|copied| {
            matches!(&copied.ty, AttributeType::Plain(ty) if *ty == attribute.ty)
                && !copied.sensitive
                && !copied.write_only
        });
        let element = if let Type::List(element) = &attribute.ty { element } else { &attribute.ty };
        let is_taken = matches!(element, Type::Bool | Type::Number | Type::String);
        if !is_copy || !is_taken || !is_described(&attribute.description) {
            let name = &attribute.name;
            faults.push(format!("the identity's {name} is no described copy of a plain attribute that is no secret"));
        }
    }
    faults
}

fn function_faults(entry: &OfferedFunction) -> Vec<String> {
    let signature = entry.signature();
    let mut faults = Vec::new();
    let parameters = &signature.parameters;
    let mut texts = parameters.iter().map(|it| &it.description).chain([&signature.summary, &signature.description]);
    if !texts.all(|text| is_described(text)) {
        faults.push("no description".to_owned());
    }
    for (position, name) in parameters.iter().map(|it| it.name.as_str()).chain([entry.name]).enumerate() {
        if !is_name(name) || name.starts_with('_') || parameters[..position].iter().any(|other| other.name == name) {
            faults.push(format!("{name} is used twice, or not lower case letters, digits and underscores"));
        }
    }
    // A wrong type deep in an argument is reported as an error of the argument when it is read.
    let sample = |ty: &Type, rules: &[Validator]| {
        let number = if *ty == Type::Number { number(rules) } else { 1.into() };
        sample(ty, &number, &[Value::Null])
    };
    let arguments = Value::object(parameters.iter().map(|it| (it.name.clone(), sample(&it.ty, &it.validators))));
    faults.extend(read(entry.readers[0], &arguments));
    // A function that reads its arguments by name reads any value.
    let is_read_by_name = entry.readers[0](&Value::Null).is_ok();
    for parameter in parameters.iter().filter(|_| !is_read_by_name) {
        let Value::Object(mut fewer) = arguments.clone() else { continue };
        fewer.remove(&*parameter.name);
        if entry.readers[0](&Value::Object(fewer)).is_ok() {
            faults.push(format!("the model of the arguments has no {}", parameter.name));
        }
    }
    faults.extend(read(entry.readers[1], &self::sample(&signature.returns, &1.into(), &[])));
    faults
}

/// Where a model and its schema differ, tried with three values: one filled in, one of nulls and one of unknowns.
fn model_faults(schema: &Schema, reader: ModelReader) -> Vec<String> {
    let all = |value: &Value| Value::object(names(schema).map(|name| (name.to_owned(), value.clone())));
    let mut full = object(&schema.attributes, true);
    for block in &schema.blocks {
        full.set_attribute(&block.name, object(&block.attributes, true));
    }
    [full, all(&Value::Null), all(&Value::Unknown)].iter().filter_map(|value| read(reader, value)).collect()
}

fn read(reader: ModelReader, value: &Value) -> Option<String> {
    match reader(value) {
        Err(error) => Some(format!("the model reads another type: {error}")),
        Ok(written) if written == *value => None,
        Ok(written) => {
            let Value::Object(attributes) = value else { return Some("the model is of another type".to_owned()) };
            let lost = attributes.iter().filter(|(name, value)| written.attribute(name) != *value);
            Some(format!("the model has no {:?}, or of another type", lost.map(|(name, _)| name).collect::<Vec<_>>()))
        }
    }
}

/// An object of all attributes. Configured collections may have null or unknown elements, and configured numbers
/// fractions unless a rule refuses them.
fn object(attributes: &[Attribute], is_configured: bool) -> Value {
    Value::object(attributes.iter().map(|attribute| {
        let is_configured = is_configured && attribute.requirement != Requirement::Computed;
        let odd: &[Value] = if is_configured { &[Value::Null, Value::Unknown] } else { &[] };
        let value = match &attribute.ty {
            AttributeType::Nested(Nesting::Single, children) => object(children, is_configured),
            AttributeType::Nested(Nesting::List, children) => list(object(children, is_configured), odd),
            AttributeType::Plain(ty) => {
                let number = if is_configured { number(&attribute.validators) } else { 1.into() };
                sample(ty, &number, odd)
            }
        };
        (attribute.name.clone(), value)
    }))
}

fn list(element: Value, odd: &[Value]) -> Value {
    Value::List([element].into_iter().chain(odd.iter().cloned()).collect())
}

/// A value of a type in which each collection has one element, followed by `odd`.
fn sample(ty: &Type, number: &Value, odd: &[Value]) -> Value {
    match ty {
        Type::Bool => true.into(),
        Type::Number => number.clone(),
        Type::List(element) => list(sample(element, number, odd), odd),
        Type::Map(element) => {
            let Value::List(elements) = list(sample(element, number, odd), odd) else { return Value::Null };
            Value::Map(
                elements.into_iter().enumerate().map(|(key, element)| (key.to_string().into(), element)).collect(),
            )
        }
        Type::Object(types) => Value::object(types.iter().map(|(name, ty)| (name.clone(), sample(ty, number, odd)))),
        Type::String | Type::Dynamic | Type::Set(_) | Type::Tuple(_) => "text".into(),
    }
}

/// A fraction, unless a rule refuses it.
fn number(rules: &[Validator]) -> Value {
    let fraction = "1.5".parse().map(Value::Number).unwrap_or_default();
    if rules.iter().all(|rule| rule.accepts(&fraction)) { fraction } else { 1.into() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::framework::{
        Attr, ConfigureContext, Diagnostics, Ends, Function, FunctionError, IdentityAttribute, Registry, Signature,
        schema::{Block, Validator},
    };

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
            if whole { number.validate(Validator::whole()) } else { number.validate(Validator::positive()) }
        };
        let objects = AttributeType::Nested(Nesting::List, vec![number("size")]);
        Schema::new("A thing.", vec![words, Attribute::required("objects", objects, "Objects."), number("count")])
    }

    #[test]
    fn what_a_configuration_may_say_every_model_reads() {
        let configured = || schema(Attribute::optional("words", Type::list(Type::String), "Words."), true);
        assert_eq!(model_faults(&configured(), reader::<Model<Attr<String>>>), Vec::<String>::new());
        let found = model_faults(&configured(), reader::<Model<String>>);
        assert!(found.len() == 1 && found[0].contains("words[1]: must not be null"), "{found:?}");
        let fractions = schema(Attribute::optional("words", Type::list(Type::String), "Words."), false);
        let found = model_faults(&fractions, reader::<Model<Attr<String>>>);
        assert!(found.len() == 1 && found[0].contains("must be a whole number"), "{found:?}");
        // Elements of an attribute that only the provider sets are never null or unknown.
        let computed = schema(Attribute::computed("words", Type::list(Type::String), "Words."), true);
        assert_eq!(model_faults(&computed, reader::<Model<String>>), Vec::<String>::new());
        let mut more = configured();
        more.attributes.push(Attribute::optional("more", Type::Bool, "No field."));
        assert_eq!(model_faults(&more, reader::<Model<Attr<String>>>).len(), 3);
        more.attributes.drain(..2);
        assert_eq!(model_faults(&more, reader::<Model<Attr<String>>>).len(), 3);
    }

    #[test]
    fn each_fault_of_a_schema_is_found() {
        let sound = Attribute::with_default("size", Type::Number, 20, "The size.");
        assert_eq!(schema_faults(&Schema::new("A thing.", vec![sound])), Vec::<String>::new());
        let mut defaulted = Attribute::optional("defaulted", Type::Bool, "A default without computed.");
        defaulted.default = Some(Value::Bool(true));
        let schema = Schema::new(
            "Some faults.",
            vec![
                Attribute::optional("Upper", Type::String, "Upper case."),
                Attribute::optional("silent", Type::String, ""),
                defaulted,
                Attribute::computed("secret", Type::String, "Computed and write-only.").write_only(),
                Attribute::optional("mixed", Type::list(Type::Dynamic), "Dynamic in a list."),
                Attribute::optional("set", Type::set(Type::String), "A set."),
                Attribute::optional("silent", Type::String, "The name again.").follows(&["nothing"]),
                Attribute::optional("brief", Type::String, "Both."),
            ],
        );
        assert_eq!(schema_faults(&schema).len(), 9);
        let mut timed = Schema::new("", vec![]);
        timed.blocks.push(Block { name: "timeouts".into(), description: String::new(), attributes: vec![] });
        assert_eq!(schema_faults(&timed).len(), 2);
    }

    /// A function, and a provider that offers it twice.
    struct Twice;

    #[derive(Clone, Serialize, Deserialize)]
    struct Nothing {}

    impl Function for Twice {
        type Arguments = Nothing;
        type Output = bool;

        fn name(&self) -> &'static str {
            "twice"
        }

        fn signature(&self) -> Signature {
            let (summary, description) = ("Says yes".to_owned(), "Always says yes.".to_owned());
            Signature { summary, description, parameters: vec![], returns: Type::Bool }
        }

        fn call(&self, _: Nothing) -> Result<bool, FunctionError> {
            Ok(true)
        }
    }

    impl Provider for Twice {
        type Client = ();
        type Model = Nothing;

        fn schema(&self) -> Schema {
            Schema::new("Offers a function twice.", vec![])
        }

        fn registry(&self) -> Registry<()> {
            Registry::new().function(Self).function(Self)
        }

        async fn configure(&self, _: Nothing, _: ConfigureContext<'_>) -> Result<(Arc<()>, Diagnostics), Diagnostics> {
            Ok((Arc::new(()), Diagnostics::new()))
        }
    }

    #[test]
    fn what_is_offered_twice_is_a_fault() {
        let faults = Server::new(Twice, Ends::default()).unsound();
        assert_eq!(faults, ["the function twice is registered twice"]);
    }

    #[test]
    fn what_has_no_effect_where_it_stands_is_a_fault() {
        let size = || Attribute::optional("size", Type::Number, "The size.");
        let found = |nesting, child: Attribute| {
            let disks = Attribute::optional("disks", AttributeType::Nested(nesting, vec![child]), "The disks.");
            schema_faults(&Schema::new("A thing.", vec![disks, Attribute::optional("name", Type::String, "A name.")]))
        };
        for nesting in [Nesting::List, Nesting::Single] {
            assert_eq!(found(nesting, size()), Vec::<String>::new());
            assert_eq!(found(nesting, size().follows(&["name"])).len(), 1);
            assert_eq!(found(nesting, size().replaces(Replacement::IfKnown)).len(), 1);
        }
        assert_eq!(found(Nesting::Single, size().replaces(Replacement::Always)), Vec::<String>::new());
        let found = found(Nesting::List, size().replaces(Replacement::Always));
        assert_eq!(found, ["disks.size: the list replaces, not an attribute of its elements"]);
    }

    #[test]
    fn an_identity_copies_plain_attributes_that_are_no_secrets() {
        let id = || Attribute::computed("id", Type::Number, "Id.");
        let host = || Attribute::optional("host", Type::String, "Where.");
        let ssh = |host| Attribute::optional("ssh", AttributeType::Nested(Nesting::Single, vec![host]), "How.");
        let faults = |of: &str, ty, attribute| {
            let copy = IdentityAttribute::optional("copy", of, ty, "A copy.");
            identity_faults(&IdentitySchema::new(vec![copy]), &Schema::new("Any.", vec![attribute])).len()
        };
        assert_eq!(faults("id", Type::Number, id()), 0);
        assert_eq!(faults("ssh.host", Type::String, ssh(host())), 0);
        assert_eq!(faults("id", Type::String, id()), 1);
        assert_eq!(faults("other", Type::Number, id()), 1);
        assert_eq!(faults("id", Type::Number, id().sensitive()), 1);
        assert_eq!(faults("ssh", Type::String, ssh(host())), 1);
        assert_eq!(faults("ssh.port", Type::String, ssh(host())), 1);
        assert_eq!(identity_faults(&IdentitySchema::new(vec![]), &Schema::new("Any.", vec![])).len(), 1);
    }
}
