//! Shared parts of the protocol tests: a provider under test, its values, and readers of answers.

use std::sync::Arc;

use terraform_plugin::{
    framework::{Resource as _, Schema, Type, Value},
    protocol::tfplugin6::{Diagnostic, DynamicValue, attribute_path::step::Selector},
    testing::{Core, object},
};

use crate::echo::{Echo, Signals, THING, ThingResource};

pub(crate) struct Fixture {
    pub(crate) core: Core,
    pub(crate) signals: Arc<Signals>,
}

impl Fixture {
    pub(crate) fn unconfigured() -> Self {
        let signals = Arc::<Signals>::default();
        let core = Core::new(Echo(Arc::clone(&signals)), THING);
        Self { core, signals }
    }

    pub(crate) async fn new() -> Self {
        let mut fixture = Self::unconfigured();
        let said = fixture.core.configure(&region("here")).await;
        assert!(said.is_empty());
        fixture
    }
}

pub(crate) fn schema() -> Schema {
    Schema { blocks: vec![ThingResource.timeouts().unwrap().block()], ..ThingResource.schema() }
}

pub(crate) fn provider_type() -> Type {
    Type::object([("region", Type::String)])
}

pub(crate) fn region(name: &str) -> Value {
    Value::object([("region", name.into())])
}

/// The configuration of an `echo_thing`: a name, and null for the rest.
pub(crate) fn thing(name: &str) -> Value {
    object(&schema().ty(), [("name", name.into())])
}

/// The planned value for a create with this name.
pub(crate) fn planned(name: &str) -> Value {
    let mut planned = thing(name);
    planned.set_attribute("id", Value::Unknown);
    planned.set_attribute("size", 20.into());
    planned
}

pub(crate) fn state(name: &str) -> Value {
    let mut state = planned(name);
    state.set_attribute("id", format!("id-{name}").into());
    state
}

pub(crate) fn only(diagnostics: &[Diagnostic]) -> &Diagnostic {
    let [diagnostic] = diagnostics else { panic!("{diagnostics:?}") };
    assert_ne!(diagnostic.severity, 0);
    diagnostic
}

pub(crate) fn path(diagnostic: &Diagnostic) -> Vec<Selector> {
    let steps = diagnostic.attribute.clone().unwrap().steps;
    steps.into_iter().map(|step| step.selector.unwrap()).collect()
}

/// A value that is cut in the middle of a text.
pub(crate) fn hostile() -> DynamicValue {
    DynamicValue { msgpack: vec![0xdf, 0xff, 0xff, 0xff, 0xff, 0xa4, b'p', b'l'], json: Vec::new() }
}
