//! The target of a login in a state.

use serde_json::Value;

use crate::{commands::Failure, provider::login::USER};

/// The types whose addresses are targets.
const INSTANCE: &str = "damodel_instance";
const SERVER: &str = "damodel_llama_server";

/// An instance, and the host keys that the state has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SshTarget {
    pub(super) uid: String,
    /// Public keys or fingerprints, each once.
    pub(super) pins: Vec<String>,
}

/// The instances and servers of a state; deposed objects are left out.
#[derive(Debug, Default)]
pub(super) struct StateView(Vec<StateObject>);

#[derive(Debug)]
struct StateObject {
    /// With its key.
    address: String,
    /// Without its key.
    resource: String,
    kind: String,
    attributes: Value,
}

impl StateView {
    /// Reads what `state pull` prints.
    ///
    /// # Errors
    ///
    /// It is no state of format 4.
    pub(super) fn read(document: &str) -> Result<Self, Failure> {
        // Without the error's text: a state has secrets.
        let root: Value = serde_json::from_str(document).unwrap_or_default();
        if document.trim().is_empty() {
            return Ok(Self(Vec::new()));
        }
        if root["version"] != 4 {
            return Err(Failure::new("the state is not of format 4"));
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut objects = Vec::new();
        for resource in list(&root["resources"]) {
            let kind = text(&resource["type"]);
            if resource["mode"] != "managed" || ![INSTANCE, SERVER].contains(&kind.as_str()) {
                continue;
            }
            let module = resource["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
            let name = format!("{module}{kind}.{}", text(&resource["name"]));
            for object in list(&resource["instances"]).into_iter().filter(|object| object["deposed"].is_null()) {
                let key = &object["index_key"];
                let address = if key.is_null() { name.clone() } else { format!("{name}[{key}]") };
                let attributes = object["attributes"].clone();
                objects.push(StateObject { address, resource: name.clone(), kind: kind.clone(), attributes });
            }
        }
        Ok(Self(objects))
    }

    /// The instance of an address. One without its key stands for the only object of its resource.
    ///
    /// # Errors
    ///
    /// No object or several have the address; the server is not reached through the service.
    pub(super) fn find(&self, address: &str) -> Result<SshTarget, Failure> {
        let exact = self.0.iter().find(|object| object.address == address);
        let of_resource: Vec<_> = self.0.iter().filter(|object| object.resource == address).collect();
        let object = match (exact, of_resource.as_slice()) {
            (Some(object), _) => object,
            (None, [object]) => *object,
            (None, several) => return Err(self.no_such(address, !several.is_empty())),
        };
        let uid = object.uid().ok_or_else(|| object.not_by_the_service())?;
        let mut pins: Vec<String> = Vec::new();
        let servers = self.0.iter().filter(|server| server.kind == SERVER && server.uid().as_ref() == Some(&uid));
        for server in servers {
            let keys = [&server.attributes["host_key"], &server.attributes["ssh"]["host_key"]];
            let pin = keys.into_iter().find_map(Value::as_str).map(|key| key.trim().to_owned());
            pins.extend(pin.filter(|pin| !pins.contains(pin)));
        }
        Ok(SshTarget { uid, pins })
    }

    /// The addresses of the instance and of its servers.
    pub(super) fn addresses_of(&self, uid: &str) -> Vec<&str> {
        let of_it = self.0.iter().filter(|object| object.uid().as_deref() == Some(uid));
        of_it.map(|object| object.address.as_str()).collect()
    }

    fn no_such(&self, address: &str, is_ambiguous: bool) -> Failure {
        let mut addresses: Vec<&str> = self.0.iter().map(|object| object.address.as_str()).collect();
        addresses.sort_unstable();
        let there = if addresses.is_empty() { "none".to_owned() } else { format!("\n{}", addresses.join("\n")) };
        let what = if is_ambiguous { "has several instances" } else { "is not in the state" };
        Failure::new(format!("{address} {what}. Addresses that can be logged in to: {there}"))
    }
}

impl StateObject {
    /// The UID of the instance, if the service has the login.
    fn uid(&self) -> Option<String> {
        let uid = if self.kind == INSTANCE { &self.attributes["id"] } else { &self.attributes["instance_id"] };
        let through_a_bastion = self.kind == SERVER && !self.attributes["ssh"]["bastion"].is_null();
        uid.as_str().filter(|uid| !uid.is_empty() && !through_a_bastion).map(str::to_owned)
    }

    fn not_by_the_service(&self) -> Failure {
        let ssh = &self.attributes["ssh"];
        let login = |login: &Value, host: &str| {
            let port = login["port"].as_u64().unwrap_or(22);
            format!("{host}, port {port}, user {}", login["user"].as_str().unwrap_or(USER))
        };
        let host = |login: &Value| login["host"].as_str().unwrap_or("unknown").to_owned();
        let end = match self.attributes["instance_id"].as_str() {
            Some(uid) => format!("instance {uid}, user {}", ssh["user"].as_str().unwrap_or(USER)),
            None => format!("host {}", login(ssh, &host(ssh))),
        };
        let bastion = &ssh["bastion"];
        let through = if bastion.is_null() {
            String::new()
        } else {
            format!(", through the bastion {}", login(bastion, &host(bastion)))
        };
        Failure::new(format!(
            "{} is not reached through the service. Log in with your own ssh: {end}{through}",
            self.address
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state() -> StateView {
        let resource = |module: Option<&str>, kind: &str, name: &str, objects: Value| {
            let mut resource = json!({"module": module, "mode": "managed", "type": kind, "name": name});
            resource["instances"] = objects;
            resource
        };
        let instance = |uid: &str, key: Value| json!({"index_key": key, "attributes": {"id": uid}});
        let server = |instance_id: Value, key: &str, ssh: Value| {
            let attributes = json!({"instance_id": instance_id, "host_key": key, "ssh": ssh});
            json!({ "attributes": attributes })
        };
        let deposed = json!({"deposed": "0a", "attributes": {"id": "ins-old"}});
        let bastion = json!({"bastion": {"host": "b", "port": 2222, "user": "jump"}, "user": "me"});
        let resources = [
            resource(None, INSTANCE, "gpu", json!([deposed, instance("ins-1", Value::Null)])),
            resource(Some("module.x[0]"), INSTANCE, "gpu", json!([instance("ins-2", json!("a"))])),
            resource(None, INSTANCE, "many", json!([instance("ins-3", json!(0)), instance("ins-4", json!(1))])),
            resource(None, SERVER, "chat", json!([server(json!("ins-1"), "ssh-ed25519 A", Value::Null)])),
            resource(None, SERVER, "twin", json!([server(json!("ins-1"), "ssh-ed25519 B", Value::Null)])),
            resource(None, SERVER, "plain", json!([server(Value::Null, "ssh-ed25519 C", json!({"host": "h"}))])),
            resource(None, SERVER, "hop", json!([server(json!("ins-2"), "ssh-ed25519 D", bastion)])),
        ];
        StateView::read(&json!({"version": 4, "resources": resources}).to_string()).unwrap()
    }

    #[test]
    fn an_address_is_found_as_the_state_writes_it() {
        let found = |address: &str| state().find(address).map(|target| target.uid).map_err(|error| error.to_string());
        for (address, uid) in [
            ("damodel_instance.gpu", "ins-1"),
            ("module.x[0].damodel_instance.gpu[\"a\"]", "ins-2"),
            ("module.x[0].damodel_instance.gpu", "ins-2"),
            ("damodel_instance.many[1]", "ins-4"),
            ("damodel_llama_server.chat", "ins-1"),
        ] {
            assert_eq!(found(address), Ok(uid.to_owned()));
        }
        for (address, words) in [
            ("damodel_instance.many", "has several instances"),
            ("damodel_instance.gone", "damodel_instance.many[0]\ndamodel_instance.many[1]"),
            ("damodel_llama_server.plain", "host h, port 22, user root"),
            ("damodel_llama_server.hop", "instance ins-2, user me, through the bastion b, port 2222, user jump"),
        ] {
            assert!(found(address).unwrap_err().contains(words), "{address}: {:?}", found(address));
        }
    }

    #[test]
    fn every_server_on_the_instance_pins_its_host_key() {
        assert_eq!(state().find("damodel_instance.gpu").unwrap().pins, ["ssh-ed25519 A", "ssh-ed25519 B"]);
        assert_eq!(state().find("damodel_instance.many[0]").unwrap().pins, [""; 0]);
        for other in ["{}", "{\"format_version\": \"1.0\"}", "planted"] {
            let error = StateView::read(other).unwrap_err().to_string();
            assert!(!error.contains("planted"), "{error}");
        }
    }
}
