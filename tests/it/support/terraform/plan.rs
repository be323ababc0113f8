//! A plan from `show -json`.

use serde_json::Value;

/// A plan.
#[derive(Clone, Debug)]
pub(crate) struct Plan(Value);

/// The change of one resource in a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a>(&'a Value);

impl Plan {
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// The change of a resource; panics if the plan does not contain it.
    pub(crate) fn change(&self, address: &str) -> Change<'_> {
        self.find(address)
            .unwrap_or_else(|| panic!("the plan does not name {address}: {:#}", self.0["resource_changes"]))
    }

    pub(crate) fn find(&self, address: &str) -> Option<Change<'_>> {
        self.changes().find(|change| change.0["address"] == address)
    }

    pub(crate) fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        self.0["resource_changes"].as_array().into_iter().flatten().map(Change)
    }

    /// The addresses whose action is not `no-op`, with their actions.
    pub(crate) fn actions(&self) -> Vec<(String, String)> {
        let changing = self.changes().filter(|change| change.actions() != "no-op");
        changing.map(|change| (change.0["address"].as_str().unwrap().to_owned(), change.actions())).collect()
    }

    /// The actions on an output.
    pub(crate) fn output(&self, name: &str) -> String {
        join(&self.0["output_changes"][name]["actions"])
    }
}

impl Change<'_> {
    /// The actions joined with `, `: `create`, `delete, create`, …
    pub(crate) fn actions(&self) -> String {
        join(&self.0["change"]["actions"])
    }

    pub(crate) fn before(&self, attribute: &str) -> &Value {
        attribute.split('.').fold(&self.0["change"]["before"], |value, name| &value[name])
    }

    pub(crate) fn after(&self, attribute: &str) -> &Value {
        attribute.split('.').fold(&self.0["change"]["after"], |value, name| &value[name])
    }

    pub(crate) fn is_unknown(&self, attribute: &str) -> bool {
        *attribute.split('.').fold(&self.0["change"]["after_unknown"], |value, name| &value[name]) == true
    }

    /// The attributes that are unknown after the change, in order; those of an object that is known in part by dotted
    /// names.
    pub(crate) fn unknown(&self) -> Vec<String> {
        fn collect(value: &Value, parent: &str, names: &mut Vec<String>) {
            for (name, value) in value.as_object().into_iter().flatten() {
                let name = format!("{parent}{name}");
                collect(value, &format!("{name}."), names);
                names.extend((*value == true).then_some(name));
            }
        }
        let mut names = Vec::new();
        collect(&self.0["change"]["after_unknown"], "", &mut names);
        names
    }

    /// The attributes that force the replacement.
    pub(crate) fn replace_paths(&self) -> Vec<String> {
        let paths = self.0["change"]["replace_paths"].as_array().into_iter().flatten();
        paths.map(|path| path[0].as_str().unwrap().to_owned()).collect()
    }

    /// The reason, such as `replace_because_tainted`.
    pub(crate) fn reason(&self) -> &str {
        self.0["action_reason"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_import(&self) -> bool {
        self.importing().is_object()
    }

    /// What is imported, with its `id` or its `identity`.
    pub(crate) fn importing(&self) -> &Value {
        &self.0["change"]["importing"]
    }

    pub(crate) fn previous_address(&self) -> Option<&str> {
        self.0["previous_address"].as_str()
    }
}

/// The changes of resources in the JSON lines of a plan or an apply: addresses, actions and reasons.
pub(super) fn changes(lines: &str) -> impl Iterator<Item = (String, String, String)> {
    let changes = documents(lines).filter(|line| line["type"] == "planned_change");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    changes.map(move |line| {
        let change = &line["change"];
        (text(&change["resource"]["addr"]), text(&change["action"]), text(&change["reason"]))
    })
}

/// Whether the JSON lines of a plan have no other changes than data sources of checks, which are read again.
pub(super) fn only_reads_checks(lines: &str) -> bool {
    let is_changed = |line: Value| {
        line["outputs"].as_object().is_some_and(|outputs| outputs.values().any(|output| output["action"] != "noop"))
    };
    changes(lines).all(|(.., reason)| reason == "read_because_check_nested") && !documents(lines).any(is_changed)
}

fn documents(lines: &str) -> impl Iterator<Item = Value> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn join(actions: &Value) -> String {
    let actions: Vec<&str> = actions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    actions.join(", ")
}
