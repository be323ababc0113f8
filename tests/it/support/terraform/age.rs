//! States whose resources were created long ago.

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::Workspace;

impl Workspace<'_> {
    /// Makes the resources in the state an hour older: the absence of a new one proves nothing. One whose provider was
    /// killed may have no private data.
    pub(crate) fn made_long_ago(&self) {
        self.change_private(|instance| {
            let Some(private) = instance["private"].as_str() else { return };
            let private = STANDARD.decode(private).unwrap();
            let mut private: Value = serde_json::from_slice(&private).unwrap();
            let aged = age(&mut private);
            assert_eq!(aged, 1, "{private}");
            instance["private"] = STANDARD.encode(private.to_string()).into();
        });
    }

    /// Removes the private data of all resources in the state.
    pub(crate) fn lose_private_data(&self) {
        self.change_private(|instance| drop(instance.as_object_mut().unwrap().remove("private")));
    }

    fn change_private(&self, change: impl Fn(&mut Value)) {
        let file = self.directory().join("terraform.tfstate");
        let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let resources = state["resources"].as_array_mut().unwrap();
        let managed = resources.iter_mut().filter(|resource| resource["mode"] == "managed");
        managed.flat_map(|resource| resource["instances"].as_array_mut().unwrap()).for_each(change);
        state["serial"] = (state["serial"].as_u64().unwrap() + 1).into();
        fs::write(file, state.to_string()).unwrap();
    }
}

/// Subtracts an hour from each `created_at`, and returns their number.
fn age(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter_mut()
            .map(|(name, value)| match value.as_i64() {
                Some(moment) if name == "created_at" => {
                    *value = (moment - 3600).into();
                    1
                }
                _ => age(value),
            })
            .sum(),
        _ => 0,
    }
}
