//! A provider for tests: it stores nothing, and its arguments control its behaviour.

mod function;
mod list;
pub(crate) mod loan;
pub(crate) mod shout;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use terraform_plugin::framework::{
    Attr, ConfigureContext, Create, DataSource, Diagnostic, Diagnostics, Identity, IdentityAttribute, IdentitySchema,
    Outcome, Private, Provider, Registry, Resource, Result, Schema, Secret, State, StepContext, Type, Update,
    schema::{Attribute, AttributeType, Nesting, Replacement},
    timeouts::{DefaultTimeouts, Timeouts},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::{
    function::Describe,
    list::ThingList,
    loan::{LoanResource, Loans},
    shout::Shout,
};

pub(crate) const THING: &str = "echo_thing";

#[derive(Debug, Default)]
pub(crate) struct Echo(pub(crate) Arc<Signals>);

/// How a test observes and controls a running create.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) started: Notify,
    pub(crate) go_on: Notify,
    pub(crate) finished: Notify,
    /// The open loans.
    pub(crate) loans: Loans,
    /// The callers that opened loans of the name "told".
    pub(crate) callers: Mutex<Vec<CancellationToken>>,
    /// The passwords of creates and updates.
    pub(crate) passwords: Mutex<Vec<Secret>>,
}

impl Signals {
    /// Records the write-only value of a configuration.
    fn told(&self, config: &Thing) {
        self.passwords.lock().unwrap().extend(config.password.known().cloned());
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    region: Attr<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Thing {
    id: Attr<String>,
    name: Attr<String>,
    size: Attr<i64>,
    tags: Attr<Vec<String>>,
    labels: Attr<BTreeMap<String, String>>,
    password: Attr<Secret>,
    disks: Attr<Vec<Disk>>,
    timeouts: Attr<Timeouts>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Disk {
    size: Attr<f64>,
    path: Attr<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Look {
    name: Attr<String>,
    length: Attr<i64>,
}

impl Provider for Echo {
    type Client = Signals;
    type Model = Config;

    fn schema(&self) -> Schema {
        let region = Attribute::optional("region", Type::String, "Where.");
        Schema::new("Echoes.", vec![region])
    }

    fn registry(&self) -> Registry<Signals> {
        Registry::new()
            .resource(ThingResource)
            .data_source(LookSource)
            .ephemeral_resource(LoanResource)
            .function(Describe)
            .list_resource(ThingList)
            .action(Shout)
    }

    fn validate(&self, config: &Config, diagnostics: &mut Diagnostics) {
        if config.region.as_str() == Some("nowhere") {
            diagnostics.error("No such region", "There is none.");
        }
    }

    async fn configure(
        &self,
        config: Config,
        context: ConfigureContext<'_>,
    ) -> Result<(Arc<Signals>, Diagnostics), Diagnostics> {
        if config.region.as_str() == Some("refused") {
            return Err(Diagnostic::error("Refused", context.core_version).into());
        }
        Ok((Arc::clone(&self.0), Diagnostics::new()))
    }
}

#[derive(Debug)]
pub(crate) struct ThingResource;

impl Resource for ThingResource {
    type Client = Signals;
    type Model = Thing;

    fn type_name(&self) -> &'static str {
        THING
    }

    fn schema(&self) -> Schema {
        let disk = vec![
            Attribute::required("size", Type::Number, "Size."),
            Attribute::computed("path", Type::String, "Path."),
        ];
        let mut schema = Schema::new(
            "A thing.",
            vec![
                Attribute::computed("id", Type::String, "Id."),
                Attribute::required("name", Type::String, "Name.").replaces(Replacement::Always),
                Attribute::with_default("size", Type::Number, 20, "Size."),
                Attribute::optional("tags", Type::list(Type::String), "Tags."),
                Attribute::optional("labels", Type::map(Type::String), "Labels."),
                Attribute::optional("password", Type::String, "Password.").sensitive().write_only(),
                Attribute::optional("disks", AttributeType::Nested(Nesting::List, disk), "Disks."),
            ],
        );
        schema.version = 1;
        schema
    }

    fn timeouts(&self) -> Option<DefaultTimeouts> {
        let minute = Duration::from_secs(60);
        Some(DefaultTimeouts { create: minute, read: minute, update: minute, delete: minute })
    }

    fn validate(&self, config: &Thing, diagnostics: &mut Diagnostics) {
        if config.name.as_str() == Some("panic-early") {
            panic!("planted");
        }
        if config.name.as_str() == Some("") {
            diagnostics.error("No name", "Give one.");
        }
    }

    fn upgrade(&self, version: i64, mut state: serde_json::Value) -> Result<serde_json::Value> {
        if version != 0 {
            return Err(Diagnostic::error("Too old", "").into());
        }
        if let Some(title) = state.get("title").cloned() {
            state["name"] = title;
        }
        Ok(state)
    }

    fn identity(&self) -> Option<IdentitySchema> {
        Some(identity())
    }

    fn import_id(&self, identity: &Identity) -> Result<String> {
        match identity.text("thing") {
            Some(thing) if thing == "refused" => Err(Diagnostic::error("Refused", "Not by this identity.").into()),
            thing => Ok(thing.unwrap()),
        }
    }

    async fn create(&self, change: Create<Thing>, context: StepContext<Signals>) -> Result<Outcome<Thing>> {
        context.client.told(&change.config);
        let name = change.planned.name.as_str().unwrap().to_owned();
        match name.as_str() {
            "panic" => panic!("planted"),
            "wait" => {
                context.client.started.notify_one();
                context.client.go_on.notified().await;
                context.client.finished.notify_one();
            }
            "until-stopped" => {
                context.client.started.notify_one();
                context.stopping.cancelled().await;
            }
            _ => {}
        }
        let mut private = change.private;
        private.insert("made", &name);
        let outcome = Outcome::present(settled(change.planned), private);
        if name == "half" {
            return Ok(outcome.with(Diagnostic::error("Half done", "The rest failed.")));
        }
        Ok(outcome)
    }

    async fn read(&self, current: State<Thing>, _: StepContext<Signals>) -> Result<Outcome<Thing>> {
        match current.state.id.as_str() {
            Some("gone") => Ok(Outcome::absent()),
            Some("panic") => panic!("planted"),
            _ => Ok(current.unchanged(Diagnostics::new())),
        }
    }

    async fn update(&self, change: Update<Thing>, context: StepContext<Signals>) -> Result<Outcome<Thing>> {
        context.client.told(&change.config);
        if change.planned.name.as_str() == Some("stubborn") {
            let mut private = change.private;
            if change.planned.size != Attr::Known(30) {
                private.insert("tried", change.planned.size);
            }
            return Ok(Outcome::present(change.prior, private).with(Diagnostic::error("Stubborn", "It refuses.")));
        }
        Ok(Outcome::present(settled(change.planned), change.private))
    }

    async fn delete(&self, current: State<Thing>, _: StepContext<Signals>) -> Result<Outcome<Thing>> {
        if current.state.name.as_str() == Some("sticky") {
            return Err(Diagnostic::error("Sticky", "It stays.").into());
        }
        Ok(Outcome::absent())
    }

    async fn import(&self, id: &str, _: StepContext<Signals>) -> Result<Outcome<Thing>> {
        if id == "missing" {
            return Ok(Outcome::absent());
        }
        let state = Thing { id: id.into(), ..nothing() };
        Ok(Outcome::present(state, Private::default()))
    }
}

pub(crate) fn identity() -> IdentitySchema {
    IdentitySchema::new(vec![
        IdentityAttribute::required("thing", "id", Type::String, "Its id."),
        IdentityAttribute::optional("size", "size", Type::Number, "Its size."),
    ])
}

fn nothing() -> Thing {
    Thing {
        id: Attr::Null,
        name: Attr::Null,
        size: Attr::Null,
        tags: Attr::Null,
        labels: Attr::Null,
        password: Attr::Null,
        disks: Attr::Null,
        timeouts: Attr::Null,
    }
}

fn settled(mut thing: Thing) -> Thing {
    if thing.id.is_unknown() {
        thing.id = format!("id-{}", thing.name.as_str().unwrap()).into();
    }
    if let Attr::Known(disks) = &mut thing.disks {
        for (index, disk) in disks.iter_mut().enumerate() {
            if disk.path.is_unknown() {
                disk.path = format!("/dev/{index}").into();
            }
        }
    }
    thing
}

#[derive(Debug)]
struct LookSource;

impl DataSource for LookSource {
    type Client = Signals;
    type Model = Look;

    fn type_name(&self) -> &'static str {
        "echo_look"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "Looks.",
            vec![
                Attribute::required("name", Type::String, "Name."),
                Attribute::computed("length", Type::Number, "Length."),
            ],
        )
    }

    async fn read(&self, mut config: Look, _: StepContext<Signals>) -> Result<Outcome<Look>> {
        let length = config.name.as_str().unwrap().len();
        if length == 0 {
            return Ok(Outcome::absent());
        }
        config.length = i64::try_from(length).unwrap().into();
        Ok(Outcome::present(config, Private::default()))
    }
}
