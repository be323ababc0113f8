//! The provider in this process, whose list resources have the whole attributes of the account's objects, and which
//! generates and validates their configuration.

use tokio::sync::mpsc;

use super::{Arguments, draft::Draft, refused};
use crate::{
    api::ObjectKind,
    commands::Failure,
    framework::{
        Diagnostics, Ends, OfferKind, PathStep, Schema, Server, Value,
        schema::{Attribute, Requirement},
        server::{ConfigureRequest, ListRequest},
    },
    provider::{Damodel, Environment, words::type_name},
};

/// The number of objects that may wait between list and reader.
const ON_THEIR_WAY: usize = 16;

/// The configured provider.
#[derive(Debug)]
pub(super) struct ConfiguredProvider {
    server: Server<Damodel>,
    /// The provider's arguments, which later plans need too; the rest comes from the environment.
    pub(super) arguments: Vec<(String, Value)>,
}

/// An object of the account.
#[derive(Debug)]
pub(super) struct FoundObject {
    /// Its import id.
    pub(super) id: String,
    name: String,
    state: Value,
}

/// The result of a list.
#[derive(Debug, Default)]
pub(super) struct ListedObjects {
    pub(super) objects: Vec<FoundObject>,
    /// The number of objects skipped by the region filter because they have no region.
    pub(super) without_region: usize,
}

/// An object for which no configuration can be written.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) kind: ObjectKind,
    pub(super) id: String,
    pub(super) why: String,
}

impl ConfiguredProvider {
    /// Configures the provider from its environment.
    pub(super) async fn new(arguments: &Arguments, environment: Environment) -> Result<Self, Failure> {
        let file = arguments.ca_certificate_file.as_deref().map(|file| environment.path(file)).transpose()?;
        let server = Server::new(Damodel::new(environment), Ends::default());
        let mut told: Vec<(String, Value)> = Vec::new();
        if arguments.allow_http {
            told.push(("allow_http".to_owned(), true.into()));
        }
        if let Some(file) = file {
            told.push(("ca_certificate_file".to_owned(), file.to_string_lossy().into_owned().into()));
        }
        let mut config = nothing_said(server.schema());
        for (name, value) in &told {
            config.set_attribute(name, value.clone());
        }
        let mut diagnostics = server.validate_provider(&config);
        if !diagnostics.has_errors() {
            diagnostics.extend(server.configure(ConfigureRequest { config, core_version: String::new() }).await);
        }
        if diagnostics.has_errors() {
            return Err(refused(&errors(&diagnostics)));
        }
        Ok(Self { server, arguments: told })
    }

    /// The objects of a kind that the filters select, in the order of the list, or the errors.
    pub(super) async fn objects(&self, kind: ObjectKind, filters: &Arguments) -> Result<ListedObjects, String> {
        let type_name = type_name(kind);
        let Ok(list) = self.server.registry().find(OfferKind::ListResource, &type_name) else {
            return Ok(ListedObjects::default());
        };
        let request = ListRequest { config: nothing_said(&list.schema), wants_state: true, limit: usize::MAX };
        let (sender, mut events) = mpsc::channel(ON_THEIR_WAY);
        let mut found = ListedObjects::default();
        let listing = self.server.list(&type_name, request, sender);
        let taking = async {
            while let Some(event) = events.recv().await {
                let state = event.state.unwrap_or_default();
                let id = state.attribute("id").as_str().unwrap_or_default().to_owned();
                found.take(FoundObject { id, name: event.display_name, state }, filters);
            }
        };
        let (diagnostics, ()) = tokio::join!(listing, taking);
        if diagnostics.has_errors() {
            return Err(errors(&diagnostics));
        }
        Ok(found)
    }

    /// The configuration of an object whose plan has no changes, or the reason why there is none.
    ///
    /// An argument that the provider refuses, although the service reports its value, is omitted if the service can set
    /// it.
    pub(super) fn draft(&self, kind: ObjectKind, object: &FoundObject) -> Result<Draft, String> {
        let type_name = type_name(kind);
        let Ok(resource) = self.server.registry().find(OfferKind::Resource, &type_name) else {
            return Err(format!("the resource type {type_name} does not exist"));
        };
        let schema = &resource.schema;
        let status = object.state.attribute("status").as_str().unwrap_or_default();
        if status.eq_ignore_ascii_case("releasing") {
            return Err("it is being released".to_owned());
        }
        let (mut config, generated) = self.server.generate(&type_name, &object.state).map_err(|bug| errors(&bug))?;
        if generated.has_errors() {
            return Err(errors(&generated));
        }
        loop {
            let judged = self.server.validate_resource(&type_name, &config);
            if !judged.has_errors() {
                break;
            }
            let refused = omissible(schema, &config, &judged);
            if refused.is_empty() {
                return Err(errors(&judged));
            }
            for name in refused {
                config.set_attribute(&name, Value::Null);
            }
        }
        let said = schema.attributes.iter().filter(|attribute| !config.attribute(&attribute.name).is_null());
        // The core compares an argument that is not computed with the state: a difference would be an update.
        let (arguments, untold) = said.partition::<Vec<_>, _>(|attribute| {
            attribute.is_computed() || config.attribute(&attribute.name) == object.state.attribute(&attribute.name)
        });
        let values = |attributes: Vec<&Attribute>| {
            attributes.iter().map(|it| (it.name.to_string(), config.attribute(&it.name).clone())).collect()
        };
        Ok(Draft {
            kind,
            id: object.id.clone(),
            name: object.name.clone(),
            label: String::new(),
            arguments: values(arguments),
            untold: values(untold),
        })
    }
}

impl ListedObjects {
    fn take(&mut self, object: FoundObject, filters: &Arguments) {
        if filters.name.as_ref().is_some_and(|name| !name.is_match(&object.name)) {
            return;
        }
        if let Some(wanted) = &filters.region {
            match object.state.attribute("region").as_str() {
                Some(region) if region == wanted => {}
                Some(_) => return,
                None => {
                    self.without_region += 1;
                    return;
                }
            }
        }
        self.objects.push(object);
    }
}

/// The refused arguments that may be omitted because the service sets them.
fn omissible(schema: &Schema, config: &Value, judged: &Diagnostics) -> Vec<String> {
    let blamed = judged.iter().filter(|said| said.is_error()).filter_map(|said| said.path.as_ref()?.steps().first());
    let may_go = |name: &str| {
        let requirement = schema.attribute(name).map(|attribute| attribute.requirement);
        requirement == Some(Requirement::OptionalComputed) && !config.attribute(name).is_null()
    };
    blamed
        .filter_map(|step| match step {
            PathStep::Attribute(name) if may_go(name) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// A configuration without any argument.
fn nothing_said(schema: &Schema) -> Value {
    Value::object(schema.attributes.iter().map(|attribute| (attribute.name.clone(), Value::Null)))
}

fn errors(diagnostics: &Diagnostics) -> String {
    let errors = diagnostics.iter().filter(|said| said.is_error());
    errors.map(|said| format!("{}. {}", said.summary, said.detail)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn provider() -> ConfiguredProvider {
        let arguments = <Arguments as clap::Parser>::parse_from(["adopt"]);
        ConfiguredProvider::new(&arguments, Environment::default()).await.unwrap()
    }

    fn object(provider: &ConfiguredProvider, kind: ObjectKind, values: &[(&str, Value)]) -> FoundObject {
        let mut state =
            nothing_said(&provider.server.registry().find(OfferKind::Resource, &type_name(kind)).unwrap().schema);
        for (name, value) in values {
            state.set_attribute(name, value.clone());
        }
        FoundObject { id: "801".to_owned(), name: "x".to_owned(), state }
    }

    fn names(values: &[(String, Value)]) -> Vec<&str> {
        values.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[tokio::test]
    async fn what_the_provider_would_refuse_is_left_to_the_service() {
        let provider = provider().await;
        let disk = |path: &str, size: i64| {
            let values =
                [("name", " ".into()), ("size_gb", size.into()), ("spec_id", 31.into()), ("mount_path", path.into())];
            provider.draft(ObjectKind::CloudDisk, &object(&provider, ObjectKind::CloudDisk, &values))
        };
        assert_eq!(names(&disk("/data", 20).unwrap().arguments), ["size_gb", "spec_id", "mount_path"]);
        assert_eq!(names(&disk("/etc", 20).unwrap().arguments), ["size_gb", "spec_id"]);
        // A required argument cannot be omitted.
        assert!(disk("/data", 19).unwrap_err().contains("20"));
    }

    #[tokio::test]
    async fn what_is_about_to_go_is_left_out() {
        let provider = provider().await;
        let values = [("size_gb", 20.into()), ("spec_id", 31.into()), ("status", "releasing".into())];
        let refused =
            provider.draft(ObjectKind::CloudDisk, &object(&provider, ObjectKind::CloudDisk, &values)).unwrap_err();
        assert_eq!(refused, "it is being released");
    }

    #[tokio::test]
    async fn what_the_service_never_tells_is_passed_over_by_the_plan() {
        let provider = provider().await;
        let values = [("gpu_num", 1.into()), ("payment_type", "Monthly".into()), ("name", "x".into())];
        let draft = provider.draft(ObjectKind::Instance, &object(&provider, ObjectKind::Instance, &values)).unwrap();
        assert_eq!(names(&draft.arguments), ["name", "payment_type", "gpu_num"]);
        assert_eq!(names(&draft.untold), ["purchase_duration"]);
    }
}
