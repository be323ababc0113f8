//! A core without Terraform: it calls a provider in process, through the whole protobuf and msgpack round trip.

use tonic::service::Routes;

use super::rules::{compatibility_faults, plan_faults, proposed_new, write_only_faults};
use crate::{
    framework::{Ends, IdentitySchema, Provider, Schema, Type, Value},
    protocol::{
        codec::{decode, encode},
        service,
        tfplugin6::{
            ClientCapabilities, Diagnostic, DynamicValue, RawState, ResourceIdentityData, apply_resource_change,
            attribute_path::step::Selector, configure_provider, generate_resource_config, import_resource_state,
            plan_resource_change, provider_client::ProviderClient, read_resource, upgrade_resource_state,
            validate_resource_config,
        },
    },
};

/// The core's side of one type of a provider. It panics at an answer with which the core would fail.
#[derive(Clone, Debug)]
pub struct Core {
    /// The provider, for calls that have no method here.
    pub client: ProviderClient<Routes>,
    /// The type of the provider's configuration.
    pub provider_ty: Type,
    type_name: &'static str,
    /// The schema of the type, with its `timeouts` block.
    pub schema: Schema,
    /// The type of a whole value.
    pub ty: Type,
    identity: Option<Type>,
}

/// An answer that contains a value.
#[derive(Debug)]
pub struct Answer {
    /// The state, planned state or configuration.
    pub value: Value,
    /// The private data, for the next call.
    pub private: Vec<u8>,
    /// Messages for the operator.
    pub diagnostics: Vec<Diagnostic>,
    /// Top-level names of the attributes that force a replacement.
    pub replace: Vec<String>,
    /// The identity, if the type has one.
    pub identity: Option<Value>,
}

impl Core {
    /// Calls a provider about its type of this name: the resource, or else another kind.
    pub fn new(provider: impl Provider, type_name: &'static str) -> Self {
        let (provider_ty, registry) = (provider.schema().ty(), provider.registry());
        let offering = registry.entries().find(|offering| offering.name == type_name).unwrap();
        let (schema, identity) = (offering.schema.clone(), offering.identity.as_ref().map(IdentitySchema::ty));
        Self {
            client: ProviderClient::new(service(provider, Ends::default()))
                .max_decoding_message_size(256 << 20)
                .max_encoding_message_size(256 << 20),
            provider_ty,
            type_name,
            ty: schema.ty(),
            schema,
            identity,
        }
    }

    /// Configures the provider.
    pub async fn configure(&mut self, config: &Value) -> Vec<Diagnostic> {
        let request = configure_provider::Request {
            terraform_version: "1.13.0".to_owned(),
            config: Some(dynamic(&self.provider_ty, config)),
            client_capabilities: Some(capabilities()),
        };
        let response = self.client.configure_provider(request).await.unwrap();
        response.into_inner().diagnostics
    }

    /// Checks a configuration.
    pub async fn validate(&mut self, config: &Value) -> Vec<Diagnostic> {
        let request = validate_resource_config::Request {
            type_name: self.type_name.to_owned(),
            config: Some(self.dynamic(config)),
            client_capabilities: Some(capabilities()),
        };
        let response = self.client.validate_resource_config(request).await.unwrap();
        response.into_inner().diagnostics
    }

    /// Plans a change: the prior state is null for a create, the configuration for a destroy.
    pub async fn plan(&mut self, config: &Value, prior: &Value, private: &[u8]) -> Answer {
        let request = plan_resource_change::Request {
            type_name: self.type_name.to_owned(),
            prior_state: Some(self.dynamic(prior)),
            proposed_new_state: Some(self.dynamic(&proposed_new(&self.schema, prior, config))),
            config: Some(self.dynamic(config)),
            prior_private: private.to_vec(),
            client_capabilities: Some(capabilities()),
            ..plan_resource_change::Request::default()
        };
        let response = self.client.plan_resource_change(request).await.unwrap();
        let response = response.into_inner();
        assert!(!response.legacy_type_system);
        let identity = self.judged(response.planned_identity);
        // The protocol allows unknown values for a create; Terraform's own `show -json` does not.
        assert!(identity.as_ref().is_none_or(Value::is_wholly_known), "an identity with unknown values");
        let answer = self.answer(response.planned_state.as_ref(), response.planned_private, response.diagnostics);
        if !answer.has_errors() {
            let faults = plan_faults(&self.schema, prior, config, &answer.value);
            assert!(faults.is_empty(), "an invalid plan: {faults:?}");
        }
        Answer {
            identity,
            replace: response
                .requires_replace
                .into_iter()
                .map(|path| match path.steps.into_iter().next() {
                    Some(step) => match step.selector {
                        Some(Selector::AttributeName(name)) => name,
                        other => panic!("a path begins with {other:?}"),
                    },
                    None => panic!("an empty path"),
                })
                .collect(),
            ..answer
        }
    }

    /// Applies a planned change.
    pub async fn apply(&mut self, config: &Value, prior: &Value, planned: &Value, private: &[u8]) -> Answer {
        let request = apply_resource_change::Request {
            type_name: self.type_name.to_owned(),
            prior_state: Some(self.dynamic(prior)),
            planned_state: Some(self.dynamic(planned)),
            config: Some(self.dynamic(config)),
            planned_private: private.to_vec(),
            ..apply_resource_change::Request::default()
        };
        let response = self.client.apply_resource_change(request).await.unwrap();
        let response = response.into_inner();
        assert!(!response.legacy_type_system);
        let answer = self.answer(response.new_state.as_ref(), response.private, response.diagnostics);
        let faults = if answer.has_errors() { Vec::new() } else { compatibility_faults(planned, &answer.value) };
        assert!(faults.is_empty(), "an inconsistent result after apply: {faults:?}");
        self.known(answer, response.new_identity)
    }

    /// Refreshes a state.
    pub async fn read(&mut self, state: &Value, private: &[u8]) -> Answer {
        let request = read_resource::Request {
            type_name: self.type_name.to_owned(),
            current_state: Some(self.dynamic(state)),
            private: private.to_vec(),
            client_capabilities: Some(capabilities()),
            ..read_resource::Request::default()
        };
        let response = self.client.read_resource(request).await.unwrap();
        let response = response.into_inner();
        let answer = self.answer(response.new_state.as_ref(), response.private, response.diagnostics);
        self.known(answer, response.new_identity)
    }

    /// Imports by id.
    pub async fn import(&mut self, id: &str) -> Answer {
        let id = id.to_owned();
        self.imported(import_resource_state::Request { id, ..import_resource_state::Request::default() }).await
    }

    /// Imports by identity.
    pub async fn import_by_identity(&mut self, identity: &Value) -> Answer {
        let data = ResourceIdentityData { identity_data: Some(dynamic(self.identity.as_ref().unwrap(), identity)) };
        let request =
            import_resource_state::Request { identity: Some(data), ..import_resource_state::Request::default() };
        self.imported(request).await
    }

    async fn imported(&mut self, request: import_resource_state::Request) -> Answer {
        let request = import_resource_state::Request { type_name: self.type_name.to_owned(), ..request };
        let response = self.client.import_resource_state(request).await.unwrap();
        let mut response = response.into_inner();
        match response.imported_resources.pop() {
            Some(imported) => {
                assert_eq!(imported.type_name, self.type_name);
                let answer = self.answer(imported.state.as_ref(), imported.private, response.diagnostics);
                assert_eq!(imported.identity.is_some(), self.identity.is_some(), "an import has an identity");
                self.known(answer, imported.identity)
            }
            None => self.answer(None, Vec::new(), response.diagnostics),
        }
    }

    /// Generates a configuration from a state.
    pub async fn generate(&mut self, state: &Value) -> Answer {
        let request = generate_resource_config::Request {
            type_name: self.type_name.to_owned(),
            state: Some(self.dynamic(state)),
        };
        let response = self.client.generate_resource_config(request).await.unwrap().into_inner();
        self.answer(response.config.as_ref(), Vec::new(), response.diagnostics)
    }

    /// Upgrades a stored state of an older version.
    pub async fn upgrade(&mut self, version: i64, raw: RawState) -> Answer {
        let request =
            upgrade_resource_state::Request { type_name: self.type_name.to_owned(), version, raw_state: Some(raw) };
        let response = self.client.upgrade_resource_state(request).await.unwrap();
        let response = response.into_inner();
        self.answer(response.upgraded_state.as_ref(), Vec::new(), response.diagnostics)
    }

    /// A value of the resource's type as a message.
    pub fn dynamic(&self, value: &Value) -> DynamicValue {
        dynamic(&self.ty, value)
    }

    fn value(&self, value: Option<&DynamicValue>) -> Value {
        value.map_or(Value::Null, |value| decode(&self.ty, &value.msgpack).unwrap())
    }

    fn answer(&self, value: Option<&DynamicValue>, private: Vec<u8>, diagnostics: Vec<Diagnostic>) -> Answer {
        Answer { value: self.value(value), private, diagnostics, replace: Vec::new(), identity: None }
    }

    /// The answer with its identity. Both must be known, and nothing write-only is in a state.
    fn known(&self, answer: Answer, identity: Option<ResourceIdentityData>) -> Answer {
        assert!(answer.value.is_wholly_known(), "a state with unknown values");
        let leaks = write_only_faults(&self.schema, &answer.value);
        assert!(leaks.is_empty(), "{leaks:?}");
        let identity = self.judged(identity);
        assert!(identity.as_ref().is_none_or(Value::is_wholly_known), "an identity with unknown values");
        Answer { identity, ..answer }
    }

    /// The identity, decoded by its type. An identity without a schema would crash Terraform.
    fn judged(&self, identity: Option<ResourceIdentityData>) -> Option<Value> {
        let data = identity?.identity_data.expect("an identity has data");
        Some(decode(self.identity.as_ref().expect("an identity schema"), &data.msgpack).unwrap())
    }
}

impl Answer {
    /// Whether any of its messages is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == 1)
    }
}

/// An object of a type with these attributes, and null for the others.
pub fn object<'a>(ty: &Type, set: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let Type::Object(types) = ty else { panic!("no object: {ty:?}") };
    let mut object = Value::object(types.keys().map(|name| (name.clone(), Value::Null)));
    for (name, value) in set {
        object.set_attribute(name, value);
    }
    object
}

/// A value as a message.
pub fn dynamic(ty: &Type, value: &Value) -> DynamicValue {
    DynamicValue { msgpack: encode(ty, value).unwrap(), json: Vec::new() }
}

fn capabilities() -> ClientCapabilities {
    ClientCapabilities { write_only_attributes_allowed: true, ..ClientCapabilities::default() }
}
