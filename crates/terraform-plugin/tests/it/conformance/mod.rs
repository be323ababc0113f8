//! The framework's answers against Terraform's own rules, implemented here a second time: random schemas,
//! configurations and applies, through the whole service.

mod any_model;
mod anything;
mod ephemeral;
mod found;
mod random;
mod recorded;
pub(crate) mod vectors;
mod verdicts;

use proptest::{prelude::*, test_runner::RngSeed};
use terraform_plugin::{
    framework::{
        Value,
        schema::{Attribute, AttributeType, Requirement},
    },
    testing::{Answer, Core, compatibility_faults},
};

use self::{
    anything::{AnyResource, core_of},
    random::Choices,
};

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn every_answer_obeys_the_core(
        shape in tape(40),
        first in tape(30),
        second in tape(30),
        service in tape(60),
        meddles: bool,
    ) {
        let schema = random::schema(&mut Choices::new(shape));
        let resource = AnyResource::new(schema, Choices::new(service), meddles);
        runtime().block_on(life(resource, [first, second]));
    }
}

/// The same cases each time, so that a change does not fail for a case that was never run before.
/// `PROPTEST_CASES=100000` runs more.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => asked,
        None => ProptestConfig { cases: usual, rng_seed: RngSeed::Fixed(1), ..asked },
    }
}

fn tape(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..longest)
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: std::sync::OnceLock<tokio::runtime::Runtime> = std::sync::OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap())
}

/// The life cycle of one object: created with the first configuration, changed to the second, destroyed.
async fn life(resource: AnyResource, configs: [Vec<u8>; 2]) {
    let meddles = resource.meddles;
    let mut life = Life { core: core_of(resource).await, meddles, state: Value::Null, private: Vec::new() };
    for tape in configs {
        let mut choices = Choices::new(tape);
        let config = random::config(&mut choices, &life.core.schema);
        let masked = random::masked(&mut choices, &life.core.schema, &config);
        life.change(&masked, &config).await;
    }
    life.destroy().await;
}

struct Life {
    core: Core,
    /// Whether the resource's own plan sets attributes that the configuration leaves open.
    meddles: bool,
    state: Value,
    private: Vec<u8>,
}

impl Life {
    /// Applies a configuration, of which only `masked` is known while planning. An object of a failed create is
    /// tainted: the next plan creates a new one.
    async fn change(&mut self, masked: &Value, config: &Value) {
        for config in [masked, config] {
            let said = self.core.validate(config).await;
            assert!(said.is_empty(), "{said:?}");
        }
        let mut prior = self.state.clone();
        let mut first = self.plan(&prior, masked).await;
        if !first.replace.is_empty() {
            prior = Value::Null;
            first = self.plan(&prior, masked).await;
        }
        let last = self.plan(&prior, config).await;
        let faults = compatibility_faults(&first.value, &last.value);
        assert!(faults.is_empty(), "inconsistent final plan: {faults:?}");
        assert!(first.value != prior || last.value == prior, "a change out of nothing");
        if !prior.is_null() && !last.replace.is_empty() {
            assert!(first.replace.is_empty());
            panic!("the final plan wants a replacement that the first did not: {:?}", last.replace);
        }

        let applied = self.core.apply(config, &prior, &last.value, &last.private).await;
        self.state = applied.value.clone();
        self.private = applied.private.clone();
        if applied.has_errors() {
            if prior.is_null() {
                self.state = Value::Null;
            }
            return;
        }
        let read = self.core.read(&self.state, &self.private).await;
        assert!(read.value == self.state && read.private == self.private);
        self.generate().await;
        let again = self.plan(&self.state.clone(), config).await;
        assert!(again.value == self.state, "the plan is not empty:\n{}", difference(&self.state, &again.value));
        assert!(again.replace.is_empty());
    }

    /// A plan that is the same twice.
    async fn plan(&mut self, prior: &Value, config: &Value) -> Answer {
        let mut plan = self.core.plan(config, prior, &self.private).await;
        assert!(!plan.has_errors(), "{:?}", plan.diagnostics);
        // Like Terraform: unchanged attributes need no replacement, whatever the answer contains.
        plan.replace.retain(|name| plan.value.attribute(name) != prior.attribute(name));
        let same = self.core.plan(config, prior, &self.private).await;
        assert!(same.value == plan.value && same.private == plan.private);
        plan
    }

    /// A configuration that is generated from the state is valid, and changes nothing.
    async fn generate(&mut self) {
        let answer = self.core.generate(&self.state).await;
        assert!(answer.diagnostics.is_empty(), "{:?}", answer.diagnostics);
        // A plan that sets open attributes would change those that are left to their defaults.
        if self.meddles || must_write(&self.core.schema.attributes) {
            return;
        }
        let said = self.core.validate(&answer.value).await;
        assert!(said.is_empty(), "{said:?}\n{}", difference(&self.state, &answer.value));
        let plan = self.plan(&self.state.clone(), &answer.value).await;
        assert!(
            plan.value == self.state,
            "a generated configuration changes\n{}",
            difference(&self.state, &plan.value)
        );
        assert!(plan.replace.is_empty());
    }

    async fn destroy(mut self) {
        if self.state.is_null() {
            return;
        }
        let plan = self.core.plan(&Value::Null, &self.state, &self.private).await;
        assert!(plan.value.is_null() && plan.diagnostics.is_empty());
        let applied = self.core.apply(&Value::Null, &self.state, &Value::Null, &plan.private).await;
        assert!(applied.value.is_null() && applied.diagnostics.is_empty());
    }
}

/// Whether a configuration must have attributes that no state contains.
fn must_write(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.ty {
        AttributeType::Plain(_) => attribute.write_only && attribute.requirement == Requirement::Required,
        AttributeType::Nested(_, children) => must_write(children),
    })
}

/// The attributes that differ, with both values in clear: these are test values.
fn difference(before: &Value, after: &Value) -> String {
    let Value::Object(attributes) = before else {
        return "no object".to_owned();
    };
    attributes
        .iter()
        .filter(|(name, value)| after.attribute(name) != *value)
        .map(|(name, value)| format!("{name}: {value:?} became {:?}\n", after.attribute(name)))
        .collect()
}
