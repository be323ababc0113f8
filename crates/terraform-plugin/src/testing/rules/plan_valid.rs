//! Terraform's rules for a plan (plugin protocol, PlanResourceChange: rule for each attribute).

use crate::framework::{
    Path, Schema, Value,
    schema::{Attribute, AttributeType, Requirement},
};

/// All violations; empty for a valid plan.
pub fn plan_faults(schema: &Schema, prior: &Value, config: &Value, planned: &Value) -> Vec<String> {
    let mut faults = Faults(write_only_faults(schema, planned));
    let root = Path::root();
    if config.is_null() != planned.is_null() {
        faults.add(&root, "existence in plan and config disagree");
    } else if !planned.is_null() {
        faults.attributes(&schema.attributes, prior, config, planned, &root);
        for block in &schema.blocks {
            let (prior, config, planned) =
                (prior.attribute(&block.name), config.attribute(&block.name), planned.attribute(&block.name));
            let path = Path::to(&block.name);
            match (config, planned) {
                (Value::Object(_), Value::Object(_)) => {
                    faults.attributes(&block.attributes, prior, config, planned, &path);
                }
                _ if config == planned => {}
                _ => faults.add(&path, "a block differs from its config"),
            }
        }
    }
    faults.0
}

/// The write-only attributes that have a value, at any depth: Terraform checks them before anything else, even in
/// attributes that the provider alone computes.
pub fn write_only_faults(schema: &Schema, value: &Value) -> Vec<String> {
    let mut faults = Faults(Vec::new());
    faults.write_only(&schema.attributes, value, &Path::root());
    for block in &schema.blocks {
        faults.write_only(&block.attributes, value.attribute(&block.name), &Path::to(&block.name));
    }
    faults.0
}

struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, path: &Path, fault: &str) {
        self.0.push(format!("{path}: {fault}"));
    }

    fn write_only(&mut self, all: &[Attribute], value: &Value, path: &Path) {
        match value {
            Value::Object(_) => {
                for attribute in all {
                    let (value, path) = (value.attribute(&attribute.name), path.attribute(&attribute.name));
                    match &attribute.ty {
                        _ if attribute.write_only && !value.is_null() => self.add(&path, "a write-only value"),
                        AttributeType::Nested(_, children) => self.write_only(children, value, &path),
                        AttributeType::Plain(_) => {}
                    }
                }
            }
            Value::List(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.write_only(all, element, &path.index(index));
                }
            }
            _ => {}
        }
    }

    fn attributes(&mut self, all: &[Attribute], prior: &Value, config: &Value, planned: &Value, path: &Path) {
        // Each attribute of an unknown object is unknown.
        let (Value::Object(_) | Value::Unknown, Value::Object(_)) = (config, planned) else {
            if config != planned {
                self.add(path, "an element differs from its config");
            }
            return;
        };
        for attribute in all {
            let name = &attribute.name;
            self.value(
                attribute,
                prior.attribute(name),
                config.attribute(name),
                planned.attribute(name),
                &path.attribute(name),
            );
        }
    }

    fn value(&mut self, attribute: &Attribute, prior: &Value, config: &Value, planned: &Value, path: &Path) {
        if attribute.write_only
            || planned == config
            || planned == prior && !prior.is_null() && !config.is_null()
            || attribute.requirement == Requirement::Computed
            || attribute.is_computed() && config.is_null()
        {
            return;
        }
        match &attribute.ty {
            AttributeType::Nested(_, children) => {
                self.nested(children, prior, config, planned, path);
            }
            AttributeType::Plain(_) if attribute.is_computed() => {
                self.add(path, "planned value does not match config value nor prior value");
            }
            AttributeType::Plain(_) => {
                self.add(path, "planned value for a non-computed attribute");
            }
        }
    }

    fn nested(&mut self, children: &[Attribute], prior: &Value, config: &Value, planned: &Value, path: &Path) {
        match (config, planned) {
            (Value::Object(_) | Value::Unknown, Value::Object(_)) => {
                self.attributes(children, prior, config, planned, path);
            }
            (Value::List(config), Value::List(planned)) if config.len() == planned.len() => {
                for (index, (config, planned)) in config.iter().zip(planned).enumerate() {
                    let prior = match prior {
                        Value::List(prior) => prior.get(index).unwrap_or(&Value::Null),
                        _ => &Value::Null,
                    };
                    self.attributes(children, prior, config, planned, &path.index(index));
                }
            }
            _ => self.add(path, "count, keys or existence disagree with config"),
        }
    }
}
