//! Arguments that an import could only assume.
//!
//! An import fills in defaults, so that the plan after it is empty. For an argument that the service never reports the default is
//! a guess, and a configuration that says otherwise must not replace a healthy machine: it is an update in place that sends nothing.
//! Which values are guesses is kept in the private data until an apply has confirmed them.

use super::{
    path::{Path, Step},
    private::Private,
    schema::{Replacement, Schema},
    value::Value,
};

const KEY: &str = ".assumed";

/// Notes which arguments of an imported state get a default that a change would otherwise have to replace the thing for.
pub(super) fn assume_defaults(schema: &Schema, imported: &Value, private: &mut Private) {
    let assumed: Vec<&str> = schema
        .attributes
        .iter()
        .filter(|attribute| attribute.default.is_some() && attribute.replacement == Replacement::IfKnown)
        .filter(|attribute| imported.attribute(&attribute.name).is_null())
        .map(|attribute| attribute.name.as_str())
        .collect();
    if !assumed.is_empty() {
        private.insert(KEY, assumed);
    }
}

/// The replacements that rest on more than an assumption.
pub(super) fn without_assumed(replacements: Vec<Path>, private: &Private) -> Vec<Path> {
    let assumed: Vec<String> = private.entry(KEY).unwrap_or_default();
    let is_assumed = |path: &Path| match path.steps() {
        [Step::Attribute(name)] => assumed.contains(name),
        _ => false,
    };
    replacements.into_iter().filter(|path| !is_assumed(path)).collect()
}

/// Forgets the assumptions that a change has replaced by what the operator says.
pub(super) fn confirm(prior: &Value, planned: &Value, private: &mut Private) {
    let Some(mut assumed) = private.entry::<Vec<String>>(KEY) else { return };
    assumed.retain(|name| planned.attribute(name) == prior.attribute(name));
    if assumed.is_empty() {
        private.remove(KEY);
    } else {
        private.insert(KEY, assumed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::{schema::Attribute, value::Type};

    #[test]
    fn an_assumed_default_replaces_nothing_until_it_is_confirmed() {
        let schema = Schema::new(
            "A machine.",
            vec![Attribute::with_default("renew", Type::Bool, false, "Never reported.").replaces(Replacement::IfKnown)],
        );
        let imported = Value::object([("renew", Value::Null)]);
        let (before, after) = (Value::object([("renew", false.into())]), Value::object([("renew", true.into())]));
        let mut private = Private::default();
        assume_defaults(&schema, &imported, &mut private);
        assert_eq!(without_assumed(vec![Path::to("renew")], &private), vec![]);
        confirm(&before, &after, &mut private);
        assert_eq!(without_assumed(vec![Path::to("renew")], &private), vec![Path::to("renew")]);
    }
}
