//! A state, from its file or from `show -json`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A state.
#[derive(Clone, Debug)]
pub(crate) struct State(Value);

/// A resource of a state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource<'a>(&'a Value);

impl State {
    pub(crate) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// Reads a state file in the form of `show -json`, without what is sensitive; an empty file has no resources.
    pub(crate) fn of_file(text: &str) -> Self {
        if text.is_empty() {
            return Self(Value::Null);
        }
        let root: Value = serde_json::from_str(text).unwrap();
        let blocks = root["resources"].as_array().unwrap().iter().filter(|block| block["module"].is_null());
        let resources: Vec<Value> = blocks.flat_map(resources_of_block).collect();
        Self(json!({ "values": { "outputs": root["outputs"], "root_module": { "resources": resources } } }))
    }

    /// A resource or data source; panics if the state lacks it.
    pub(crate) fn resource(&self, address: &str) -> Resource<'_> {
        self.find(address).unwrap_or_else(|| panic!("{address} is not in the state: {:?}", self.addresses()))
    }

    pub(crate) fn find(&self, address: &str) -> Option<Resource<'_>> {
        self.resources().find(|resource| resource.address() == address)
    }

    /// The addresses of all managed resources.
    pub(crate) fn addresses(&self) -> Vec<&str> {
        self.resources().filter(|resource| resource.0["mode"] == "managed").map(|resource| resource.address()).collect()
    }

    pub(crate) fn output(&self, name: &str) -> &Value {
        &self.0["values"]["outputs"][name]["value"]
    }

    fn resources(&self) -> impl Iterator<Item = Resource<'_>> {
        self.0["values"]["root_module"]["resources"].as_array().into_iter().flatten().map(Resource)
    }
}

impl<'a> Resource<'a> {
    pub(crate) fn address(self) -> &'a str {
        self.0["address"].as_str().unwrap()
    }

    pub(crate) fn value(self, attribute: &str) -> &'a Value {
        attribute.split('.').fold(&self.0["values"], |value, name| &value[name])
    }

    pub(crate) fn id(self) -> String {
        self.value("id").as_str().unwrap().to_owned()
    }

    pub(crate) fn is_tainted(self) -> bool {
        self.0["tainted"] == true
    }

    /// The sensitive attributes in the state.
    pub(crate) fn sensitive(self) -> Vec<String> {
        let sensitive = self.0["sensitive_values"].as_object().into_iter().flatten();
        sensitive.filter(|(_, value)| **value == true).map(|(name, _)| name.clone()).collect()
    }

    /// All attributes by their flat names (`cloud_disks.0`), like in terraform-plugin-testing: without timeouts, nulls
    /// and empty collections.
    pub(crate) fn flat(self) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        flatten("", &self.0["values"], &mut flat);
        flat.retain(|name, _| !name.starts_with("timeouts"));
        flat
    }
}

/// The resources of a block of a state file, one for each key.
fn resources_of_block(block: &Value) -> impl Iterator<Item = Value> {
    let text = |name: &str| block[name].as_str().unwrap();
    let data = if text("mode") == "data" { "data." } else { "" };
    block["instances"].as_array().unwrap().iter().map(move |instance| {
        let key = instance.get("index_key").map(|key| format!("[{key}]")).unwrap_or_default();
        json!({
            "address": format!("{data}{}.{}{key}", text("type"), text("name")),
            "mode": text("mode"),
            "tainted": instance["status"] == "tainted",
            "values": instance["attributes"],
        })
    })
}

fn flatten(prefix: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    let inner = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&inner(name), value, flat)),
        Value::Array(elements) => {
            elements.iter().enumerate().for_each(|(index, value)| flatten(&inner(&index.to_string()), value, flat));
        }
        other => {
            flat.insert(prefix.to_owned(), other.to_string());
        }
    }
}
