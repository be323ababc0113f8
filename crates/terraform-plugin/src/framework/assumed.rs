//! The arguments that an import cannot read.
//!
//! An argument that the service never reports is null after an import, or has its default, which is an assumption. A
//! configuration that differs must not replace a healthy object: it is an update in place without a request.

use super::{
    diagnostics::{Path, PathStep},
    private::Private,
    schema::{Replacement, Schema},
    value::Value,
};

const KEY: &str = ".assumed";

/// Records the arguments that an import could not read and whose change would otherwise replace the object.
pub(super) fn assume(schema: &Schema, imported: &Value, private: &mut Private) {
    let assumed: Vec<&str> = schema
        .attributes
        .iter()
        .filter(|attribute| attribute.replacement == Replacement::IfKnown)
        .filter(|attribute| imported.attribute(&attribute.name).is_null())
        .map(|attribute| &*attribute.name)
        .collect();
    if !assumed.is_empty() {
        private.insert(KEY, assumed);
    }
}

/// The replacements that are not due to an assumed value. A value that a refresh has read since is not assumed.
pub(super) fn without_assumed(replacements: Vec<Path>, schema: &Schema, prior: &Value, private: &Private) -> Vec<Path> {
    let assumed: Vec<String> = private.entry(KEY).unwrap_or_default();
    let others = replacements.into_iter().filter(|path| match path.steps() {
        [PathStep::Attribute(name)] if assumed.contains(name) => {
            let value = prior.attribute(name);
            let default = schema.attribute(name).and_then(|attribute| attribute.default.as_ref());
            !value.is_null() && Some(value) != default
        }
        _ => true,
    });
    others.collect()
}

/// Removes the assumptions about arguments that a change has set.
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

    fn schema() -> Schema {
        Schema::new(
            "A machine.",
            vec![
                Attribute::with_default("renew", Type::Bool, false, "Never reported.").replaces(Replacement::IfKnown),
                Attribute::optional("host", Type::String, "Never reported.").replaces(Replacement::IfKnown),
            ],
        )
    }

    fn imported(renew: Value, host: Value) -> Value {
        Value::object([("renew", renew), ("host", host)])
    }

    #[test]
    fn what_an_import_left_open_replaces_nothing_until_it_is_confirmed() {
        let both = || vec![Path::to("renew"), Path::to("host")];
        let mut private = Private::default();
        assume(&schema(), &imported(Value::Null, Value::Null), &mut private);
        let before = imported(false.into(), Value::Null);
        assert_eq!(without_assumed(both(), &schema(), &before, &private), vec![]);
        confirm(&before, &imported(true.into(), "h".into()), &mut private);
        assert_eq!(without_assumed(both(), &schema(), &before, &private), both());
    }

    #[test]
    fn what_a_refresh_found_out_is_no_assumption() {
        let mut private = Private::default();
        assume(&schema(), &imported(Value::Null, Value::Null), &mut private);
        let found = imported(false.into(), "h".into());
        assert_eq!(without_assumed(vec![Path::to("host")], &schema(), &found, &private), vec![Path::to("host")]);
    }
}
