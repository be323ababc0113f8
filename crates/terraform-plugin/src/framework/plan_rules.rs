//! The plan of one object, attribute by attribute (plugin protocol, the framework's plan algorithm): defaults, unknown
//! values, replacements, and the guard that keeps a plan acceptable for the core. It also checks the rules of a
//! configuration that the core leaves to the provider (plugin protocol, what core does not check).

use super::{
    diagnostics::{Diagnostics, Path},
    schema::{Attribute, AttributeType, Nesting, Replacement, Requirement, Schema},
    value::Value,
};

/// The planned state before any request to the service.
///
/// `prior` is null for a create. If the configuration does not set a computed attribute, it is unknown for a new
/// object. An existing object keeps the value in the state, unless the attribute follows one that changes.
///
/// The core's proposal is not used: it merges the same two values, but drops an object that the provider filled in.
pub(super) fn planned_state(schema: &Schema, config: &Value, prior: &Value) -> Value {
    let mut planned = with_blocks(schema, planned_attributes(&schema.attributes, config, prior), config);
    if !prior.is_null() {
        open_followers(&schema.attributes, config, &mut planned, prior);
    }
    planned
}

/// The attributes whose change needs a replacement, in order.
pub(super) fn replacements(schema: &Schema, planned: &Value, prior: &Value) -> Vec<Path> {
    let mut paths = Vec::new();
    collect_replacements(&schema.attributes, planned, prior, &Path::root(), &mut paths);
    paths
}

/// The refined plan, with the planned values restored that only the configuration may set (plugin protocol,
/// PlanResourceChange: rule for each attribute). A refinement may keep the prior value of a configured attribute, if
/// both values mean the same. Of one that is partly unknown, if that holds for whatever it becomes in the apply; one
/// that is unknown as a whole may become null.
pub(super) fn guarded(schema: &Schema, config: &Value, prior: &Value, refined: &Value, planned: &Value) -> Value {
    let mut guarded = guard_attributes(&schema.attributes, config, refined, planned);
    for attribute in schema.attributes.iter().filter(|attribute| !attribute.write_only) {
        let (configured, before) = (config.attribute(&attribute.name), prior.attribute(&attribute.name));
        let is_set = !configured.is_null() && !configured.is_unknown();
        if is_set && !before.is_null() && refined.attribute(&attribute.name) == before {
            guarded.set_attribute(&attribute.name, before.clone());
        }
    }
    with_blocks(schema, guarded, config)
}

/// Adds the blocks as they are configured: their attributes are neither computed nor have defaults.
fn with_blocks(schema: &Schema, mut planned: Value, config: &Value) -> Value {
    for block in &schema.blocks {
        planned.set_attribute(&block.name, config.attribute(&block.name).clone());
    }
    planned
}

fn planned_attributes(attributes: &[Attribute], config: &Value, prior: &Value) -> Value {
    let Value::Object(_) = config else {
        return config.clone();
    };
    Value::object(attributes.iter().map(|attribute| {
        let (configured, before) = (config.attribute(&attribute.name), prior.attribute(&attribute.name));
        let planned = match (&attribute.ty, configured, &attribute.default) {
            _ if attribute.write_only => Value::Null,
            (_, Value::Null, Some(default)) => default.clone(),
            (_, Value::Null, None) if !attribute.is_computed() => Value::Null,
            (_, Value::Null, None) if prior.is_null() => Value::Unknown,
            (_, Value::Null, None) => before.clone(),
            (AttributeType::Nested(_, children), configured, _) => {
                each_element(configured, before, &Value::Null, &|configured, before, _| {
                    planned_attributes(children, configured, before)
                })
            }
            (AttributeType::Plain(_), configured, _) => configured.clone(),
        };
        (attribute.name.clone(), planned)
    }))
}

/// Makes the top-level computed attributes unknown that follow a changed one, and repeats until no attribute changes.
fn open_followers(attributes: &[Attribute], config: &Value, planned: &mut Value, prior: &Value) {
    loop {
        let has_changed = |name: &String| planned.attribute(name) != prior.attribute(name);
        let followers: Vec<&Attribute> = attributes
            .iter()
            .filter(|attribute| attribute.follows.iter().any(has_changed))
            .filter(|attribute| is_open(attribute, config.attribute(&attribute.name)))
            .filter(|attribute| !planned.attribute(&attribute.name).is_unknown())
            .collect();
        if followers.is_empty() {
            return;
        }
        for attribute in followers {
            planned.set_attribute(&attribute.name, Value::Unknown);
        }
    }
}

/// Whether the provider decides this attribute.
fn is_open(attribute: &Attribute, configured: &Value) -> bool {
    attribute.is_computed() && attribute.default.is_none() && configured.is_null()
}

fn collect_replacements(
    attributes: &[Attribute],
    planned: &Value,
    prior: &Value,
    parent: &Path,
    paths: &mut Vec<Path>,
) {
    for attribute in attributes {
        let children = match (attribute.replacement, &attribute.ty) {
            (Replacement::Always | Replacement::IfKnown, _) => None,
            (Replacement::Never, AttributeType::Nested(Nesting::Single, children)) => Some(children),
            _ => continue,
        };
        // Each part of an unknown object may differ in the apply, and the core refuses a replacement that appears only
        // there.
        let (after, before) = (planned.attribute(&attribute.name), prior.attribute(&attribute.name));
        if after != before {
            let path = parent.attribute(&attribute.name);
            match children {
                Some(children) => collect_replacements(children, after, before, &path, paths),
                None => paths.push(path),
            }
        }
    }
}

fn guard_attributes(attributes: &[Attribute], config: &Value, refined: &Value, planned: &Value) -> Value {
    let (Value::Object(_), Value::Object(_)) = (config, planned) else {
        return planned.clone();
    };
    // An element that the refinement dropped is restored as planned.
    let refined = if let Value::Object(_) = refined { refined } else { planned };
    Value::object(attributes.iter().map(|attribute| {
        let name = &attribute.name;
        let (configured, refined, planned) = (config.attribute(name), refined.attribute(name), planned.attribute(name));
        let guarded = match &attribute.ty {
            _ if attribute.write_only => Value::Null,
            _ if attribute.is_computed() && configured.is_null() => refined.clone(),
            AttributeType::Nested(_, children) if !configured.is_null() => {
                each_element(configured, refined, planned, &|configured, refined, planned| {
                    guard_attributes(children, configured, refined, planned)
                })
            }
            _ => planned.clone(),
        };
        (name.clone(), guarded)
    }))
}

/// A nested value, built from each configured object and the objects at the same place in two other values (null if
/// missing). A configured null or unknown stays as it is.
fn each_element(
    configured: &Value,
    first: &Value,
    second: &Value,
    make: &dyn Fn(&Value, &Value, &Value) -> Value,
) -> Value {
    match configured {
        Value::Object(_) => make(configured, first, second),
        Value::List(elements) => {
            let elements = elements.iter().enumerate();
            Value::List(elements.map(|(index, element)| make(element, at(first, index), at(second, index))).collect())
        }
        other => other.clone(),
    }
}

fn at(list: &Value, index: usize) -> &Value {
    match list {
        Value::List(elements) => elements.get(index).unwrap_or(&Value::Null),
        _ => &Value::Null,
    }
}

/// Checks a configuration against its schema. `write_only_allowed`: the core keeps write-only values out of its plan.
pub(super) fn check(schema: &Schema, config: &Value, write_only_allowed: bool) -> Diagnostics {
    let mut checker = Checker { write_only_allowed, diagnostics: Diagnostics::new() };
    checker.attributes(&schema.attributes, config, &Path::root());
    for block in &schema.blocks {
        checker.attributes(&block.attributes, config.attribute(&block.name), &Path::to(&block.name));
    }
    if let Some(instead) = &schema.deprecated {
        checker.diagnostics.warning("Deprecated", instead);
    }
    checker.diagnostics
}

struct Checker {
    write_only_allowed: bool,
    diagnostics: Diagnostics,
}

impl Checker {
    fn attributes(&mut self, attributes: &[Attribute], object: &Value, parent: &Path) {
        let Value::Object(_) = object else { return };
        for attribute in attributes {
            let value = object.attribute(&attribute.name);
            if !value.is_null() || attribute.requirement == Requirement::Required {
                self.attribute(attribute, value, &parent.attribute(&attribute.name));
            }
        }
    }

    fn attribute(&mut self, attribute: &Attribute, value: &Value, path: &Path) {
        if value.is_null() {
            self.diagnostics.error_at(
                path.clone(),
                "Missing required argument",
                format!("{path} must be set to a value other than null."),
            );
            return;
        }
        if attribute.requirement == Requirement::Computed {
            self.diagnostics.error_at(
                path.clone(),
                "Read-only attribute",
                format!("{path} is set by the provider and cannot be configured. Remove it from the configuration."),
            );
            return;
        }
        if attribute.write_only && !self.write_only_allowed {
            self.diagnostics.error_at(
                path.clone(),
                "Write-only arguments need Terraform 1.11 or OpenTofu 1.11",
                format!("{path} is write-only. Older versions would store it in the plan."),
            );
        }
        if let Some(instead) = &attribute.deprecated {
            self.diagnostics.warning_at(path.clone(), "Deprecated argument", instead);
        }
        self.null_elements(value, path);
        self.rules(attribute, value, path);
        if let AttributeType::Nested(_, children) = &attribute.ty {
            for (element, path) in elements(value, path) {
                self.attributes(children, element, &path);
            }
        }
    }

    /// Refuses null in a list. In a map null may mean an omitted entry.
    fn null_elements(&mut self, value: &Value, path: &Path) {
        if let Value::Map(_) | Value::Null = value {
            return;
        }
        for (_, path) in elements(value, path).into_iter().filter(|(element, _)| element.is_null()) {
            self.diagnostics.error_at(
                path.clone(),
                "A list element is null",
                format!("{path} is null. Leave out null elements: [for element in … : element if element != null]."),
            );
        }
    }

    fn rules(&mut self, attribute: &Attribute, value: &Value, path: &Path) {
        let (whole, each): (Vec<_>, Vec<_>) = attribute.validators.iter().partition(|rule| rule.is_of_collection);
        let parts = if each.is_empty() { Vec::new() } else { elements(value, path) };
        let whole = whole.into_iter().map(|validator| (validator, value, path));
        let each = parts.iter().flat_map(|(element, path)| each.iter().map(move |rule| (*rule, *element, path)));
        for (validator, value, path) in whole.chain(each) {
            if !matches!(value, Value::Null | Value::Unknown) && !validator.accepts(value) {
                let shown = shown(attribute, value);
                self.diagnostics.error_at(
                    path.clone(),
                    "Invalid value",
                    format!("{path} must be {}{shown}.{}", validator.rule(), validator.advice(value)),
                );
            }
        }
    }
}

/// The value in the form for an error; empty if it is a secret or too long to help.
fn shown(attribute: &Attribute, value: &Value) -> String {
    const LONGEST: usize = 120;
    let text = match value {
        Value::String(text) if text.chars().count() <= LONGEST => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        _ => return String::new(),
    };
    if attribute.sensitive || attribute.write_only { String::new() } else { format!("; it is {text}") }
}

/// The elements of a collection with their paths, or a single value with its own.
fn elements<'a>(value: &'a Value, path: &Path) -> Vec<(&'a Value, Path)> {
    match value {
        Value::List(elements) => {
            elements.iter().enumerate().map(|(index, element)| (element, path.index(index))).collect()
        }
        Value::Map(elements) => elements.iter().map(|(key, element)| (element, path.key(key))).collect(),
        single => vec![(single, path.clone())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::{schema::Validator, value::Type};

    /// An instance with a name that changes in place, a size that does not, a pair that either side may set, and disks.
    fn schema() -> Schema {
        let disks = vec![
            Attribute::required("id", Type::Number, "The disk."),
            Attribute::optional_computed("uid", Type::String, "Its uid."),
            Attribute::with_default("keep", Type::Bool, true, "Whether it stays."),
        ];
        Schema::new(
            "A machine.",
            vec![
                Attribute::optional_computed("name", Type::String, "The name."),
                Attribute::required("size", Type::Number, "The size.").replaces(Replacement::Always),
                Attribute::optional_computed("image", Type::String, "By address.")
                    .replaces(Replacement::Always)
                    .follows(&["image_id"]),
                Attribute::optional_computed("image_id", Type::Number, "By number.")
                    .replaces(Replacement::Always)
                    .follows(&["image"]),
                Attribute::optional("hostname", Type::String, "Never reported.").replaces(Replacement::IfKnown),
                Attribute::with_default("flag", Type::Bool, false, "A flag."),
                Attribute::optional("disks", AttributeType::Nested(Nesting::List, disks), "The disks.")
                    .replaces(Replacement::Always),
                Attribute::computed("id", Type::String, "The id."),
                Attribute::computed("label", Type::String, "Made from the name.").follows(&["name"]),
            ],
        )
    }

    fn config(set: &[(&str, Value)]) -> Value {
        let mut config = Value::object(schema().attributes.iter().map(|a| (a.name.clone(), Value::Null)));
        config.set_attribute("size", Value::from(1));
        for (name, value) in set {
            config.set_attribute(name, value.clone());
        }
        config
    }

    fn prior() -> Value {
        config(&[
            ("name", "a".into()),
            ("image", "reg/a".into()),
            ("image_id", 7.into()),
            ("flag", false.into()),
            ("id", "m-1".into()),
            ("label", "a!".into()),
        ])
    }

    fn plan(config: &Value, prior: &Value) -> Value {
        planned_state(&schema(), config, prior)
    }

    #[test]
    fn a_create_opens_what_is_computed_and_fills_defaults() {
        let disk = Value::object([("id", 1.into()), ("uid", Value::Null), ("keep", Value::Null)]);
        let planned = plan(&config(&[("disks", Value::List(vec![disk]))]), &Value::Null);
        assert!(planned.attribute("id").is_unknown());
        assert!(planned.attribute("name").is_unknown());
        assert_eq!(*planned.attribute("flag"), Value::from(false));
        let Value::List(disks) = planned.attribute("disks") else { panic!("no disks") };
        assert!(disks[0].attribute("uid").is_unknown());
        assert_eq!(*disks[0].attribute("keep"), Value::from(true));
    }

    #[test]
    fn a_rename_keeps_what_does_not_follow_the_name() {
        let planned = plan(&config(&[("name", "b".into())]), &prior());
        assert_eq!(*planned.attribute("id"), Value::from("m-1"));
        assert_eq!(*planned.attribute("image"), Value::from("reg/a"));
        assert!(planned.attribute("label").is_unknown());
        assert_eq!(replacements(&schema(), &planned, &prior()), vec![]);
    }

    #[test]
    fn one_side_of_a_pair_opens_the_other() {
        let planned = plan(&config(&[("image", "reg/b".into())]), &prior());
        assert!(planned.attribute("image_id").is_unknown());
        let paths = replacements(&schema(), &planned, &prior());
        assert_eq!(paths, vec![Path::to("image"), Path::to("image_id")]);
    }

    #[test]
    fn an_argument_of_the_create_alone_replaces() {
        let planned = plan(&config(&[("hostname", "h".into())]), &prior());
        assert_eq!(replacements(&schema(), &planned, &prior()), vec![Path::to("hostname")]);
        let mut with_hostname = prior();
        with_hostname.set_attribute("hostname", "g".into());
        let planned = plan(&config(&[("hostname", "h".into())]), &with_hostname);
        assert_eq!(replacements(&schema(), &planned, &with_hostname), vec![Path::to("hostname")]);
    }

    #[test]
    fn a_refinement_cannot_change_what_is_configured() {
        let config = config(&[("name", "a".into())]);
        let planned = plan(&config, &Value::Null);
        let mut refined = planned.clone();
        refined.set_attribute("name", "other".into());
        refined.set_attribute("hostname", "other".into());
        refined.set_attribute("label", "known early".into());
        let guarded = guarded(&schema(), &config, &Value::Null, &refined, &planned);
        assert_eq!(*guarded.attribute("name"), Value::from("a"));
        assert!(guarded.attribute("hostname").is_null());
        assert_eq!(*guarded.attribute("label"), Value::from("known early"));
    }

    #[test]
    fn a_refinement_may_keep_what_means_the_same() {
        let config = config(&[("name", "a".into()), ("hostname", "H".into())]);
        let mut prior = prior();
        prior.set_attribute("hostname", "h".into());
        let planned = plan(&config, &prior);
        let mut refined = planned.clone();
        refined.set_attribute("hostname", "h".into());
        assert_eq!(guarded(&schema(), &config, &prior, &refined, &planned), refined);
        // An unknown value may become any value, null as well.
        let mut unknown = config.clone();
        unknown.set_attribute("hostname", Value::Unknown);
        let open = plan(&unknown, &prior);
        assert!(*guarded(&schema(), &unknown, &prior, &refined, &open).attribute("hostname") == Value::Unknown);
        // A refinement can neither add a value that only the configuration may set nor drop a configured one.
        refined.set_attribute("hostname", Value::Null);
        assert_eq!(guarded(&schema(), &config, &prior, &refined, &planned), planned);
    }

    #[test]
    fn sizes_are_errors_and_deprecations_warnings_where_something_is_set() {
        let sizes = Attribute::optional("sizes", Type::list(Type::Number), "Sizes.");
        let sizes = sizes.validate(Validator::size(1..=3)).validate(Validator::between(1..=9));
        let old = Attribute::optional("old", Type::String, "Old.").deprecated("Use sizes.");
        let schema = Schema::new("A machine.", vec![sizes, old]).deprecated("Use acme_other.");
        let said = |sizes: &[i64], old: Value| {
            let sizes = Value::List(sizes.iter().map(|&size| size.into()).collect());
            let said = check(&schema, &Value::object([("sizes", sizes), ("old", old)]), true).into_iter();
            said.map(|it| format!("{:?} {}: {}", it.severity, it.path.unwrap_or_default(), it.detail))
                .collect::<Vec<_>>()
        };
        let whole = "Warning : Use acme_other.";
        assert_eq!(said(&[1], Value::Null), [whole]);
        assert_eq!(said(&[1], "x".into()), ["Warning old: Use sizes.", whole]);
        assert_eq!(said(&[], Value::Null), ["Error sizes: sizes must be a collection of 1 to 3 elements.", whole]);
        let wrong = said(&[1, 10], Value::Null);
        assert_eq!(wrong, ["Error sizes[1]: sizes[1] must be a whole number from 1 to 9; it is 10.", whole]);
    }
}
