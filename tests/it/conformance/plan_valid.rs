//! What the core demands of a plan (plugin protocol, PlanResourceChange: rule for each attribute).

use damodel::framework::{
    Path, Schema, Value,
    schema::{Attribute, AttributeType},
};

/// All violations; none for a valid plan.
pub(crate) fn plan_faults(schema: &Schema, prior: &Value, config: &Value, planned: &Value) -> Vec<String> {
    let mut faults = Faults(Vec::new());
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

struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, path: &Path, fault: &str) {
        self.0.push(format!("{path}: {fault}"));
    }

    fn attributes(&mut self, all: &[Attribute], prior: &Value, config: &Value, planned: &Value, path: &Path) {
        let (Value::Object(_), Value::Object(_)) = (config, planned) else {
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
        if attribute.write_only {
            if !planned.is_null() {
                self.add(path, "planned value for write-only attribute is not null");
            }
            return;
        }
        if planned == config
            || planned == prior && !prior.is_null() && !config.is_null()
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
            (Value::Object(_), Value::Object(_)) => {
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
            (Value::Map(config), Value::Map(planned)) if config.keys().eq(planned.keys()) => {
                for (key, planned) in planned {
                    let prior = match prior {
                        Value::Map(prior) => prior.get(key).unwrap_or(&Value::Null),
                        _ => &Value::Null,
                    };
                    self.attributes(children, prior, &config[key], planned, &path.key(key));
                }
            }
            (Value::Set(config), Value::Set(planned)) if config.len() == planned.len() => {
                // The core only counts here. That each element is made of a configured one is what it means.
                for planned in planned {
                    let made_of_one = config.iter().any(|config| {
                        let mut faults = Self(Vec::new());
                        faults.attributes(children, &Value::Null, config, planned, path);
                        faults.0.is_empty()
                    });
                    if !made_of_one {
                        self.add(path, "an element of the set is made of no configured one");
                    }
                }
            }
            _ => self.add(path, "count, keys or existence disagree with config"),
        }
    }
}
