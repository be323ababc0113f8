//! What a plan does to each object, and what its refresh found out about it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    super::{
        address::Address,
        plan::{
            CLOUD_DISK, Change, ChangeAction, Configured, INSTANCE, Importing, Invocation, PRIVATE_IMAGE, Plan, Trigger,
        },
        values::{PathPart, ShownValue, Values, shown, written},
    },
    cost::is_prepaid,
    losses::{Disks, Loss},
};

/// What a plan does to one managed object.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Object {
    /// Its address.
    #[serde(flatten)]
    pub address: Address,
    /// Its address before, if it is moved.
    #[serde(serialize_with = "Address::serialize_text")]
    pub previous_address: Option<Address>,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The action.
    pub action: ChangeAction,
    /// The core's code of the reason, if the plan has one.
    pub reason: Option<String>,
    /// The import into the state.
    pub import: Option<Importing>,
    /// The arguments that were set, or the changed ones.
    pub arguments: Vec<Argument>,
    /// What the plan creates or enlarges without a price.
    pub unpriced: Option<Unpriced>,
    /// Whether it is billed by the hour, and the plan leaves it without a known `max_age`.
    pub is_endless: bool,
    /// What is lost with a destroyed object.
    pub loss: Option<Loss>,
    /// The change outside of plans that the refresh found.
    pub drift: Option<Drift>,
    /// The types of the provisioners that run with it.
    pub provisioners: Vec<String>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// Its name, as written in HCL.
    pub name: String,
    /// Its value before as JSON; `None` if only one value is of interest.
    pub before: Option<String>,
    /// Its value, or the reason why it is not shown; `None` if it is null.
    pub after: Option<String>,
    /// Whether it forces the replacement.
    pub forces: bool,
}

/// Disks or an image without a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unpriced {
    /// `create`, `grow`, or `new-disks` of an instance.
    pub kind: &'static str,
    /// The sizes in GB: of each new disk, or before and after a growth.
    pub sizes_gb: Vec<Option<i64>>,
}

/// A change outside of plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Whether the object no longer exists.
    pub gone: bool,
    /// The changed attributes.
    pub attributes: Vec<Argument>,
}

/// An action that the apply invokes.
#[derive(Clone, Debug, Serialize)]
pub struct Invoked {
    /// Its address.
    #[serde(flatten)]
    pub address: Address,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What sets it off.
    pub trigger: Trigger,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

impl Object {
    /// All managed objects among the changes and the drift of a plan, each once.
    pub(super) fn all(plan: &Plan, arguments: &Arguments) -> Vec<Self> {
        let mut drift: BTreeMap<&Address, &Change> = BTreeMap::new();
        for change in plan.drift.iter().filter(|change| change.managed) {
            drift.entry(&change.address).or_insert(change);
        }
        let disks = Disks::read(plan);
        let changes = plan.changes.iter().filter(|change| change.managed);
        let mut objects: Vec<Self> = changes
            .map(|change| Self {
                drift: drift.remove(&change.address).and_then(Drift::of),
                ..Self::of(change, plan.configured.get(&change.address.names().join(".")), &disks, arguments)
            })
            .collect();
        objects.extend(drift.into_values().map(|change| {
            let (address, kind) = (change.address.clone(), change.kind.clone());
            Self { address, kind, drift: Drift::of(change), ..Self::default() }
        }));
        objects
    }

    /// Whether the plan changes, moves or imports it.
    pub(crate) fn is_touched(&self) -> bool {
        self.action.changes() || self.import.is_some() || self.previous_address.is_some()
    }

    fn of(change: &Change, configured: Option<&Configured>, disks: &Disks<'_>, arguments: &Arguments) -> Self {
        let action = change.action;
        let runs = configured.filter(|_| action.makes() || action.destroys());
        Self {
            address: change.address.clone(),
            previous_address: change.moved_from.clone(),
            kind: change.kind.clone(),
            action,
            reason: change.reason.clone(),
            import: change.importing.clone(),
            arguments: arguments.of(change, configured),
            unpriced: Unpriced::of(change),
            is_endless: is_endless(change),
            loss: action.destroys().then(|| Loss::of(change, disks)),
            provisioners: runs.map(|configured| configured.provisioners.clone()).unwrap_or_default(),
            drift: None,
        }
    }
}

/// The arguments of each resource of the provider, with their defaults as JSON.
#[derive(Clone, Debug, Default)]
pub struct Arguments(pub BTreeMap<&'static str, BTreeMap<String, Option<String>>>);

impl Arguments {
    /// The arguments that were set for a new object, and the changed ones of an object that is kept or replaced.
    fn of(&self, change: &Change, configured: Option<&Configured>) -> Vec<Argument> {
        let (before, after) = (&change.before, &change.after);
        match change.action {
            ChangeAction::Create => after
                .names()
                .filter(|name| match configured {
                    Some(configured) => configured.arguments.contains(*name),
                    None => self.is_set(&change.kind, name, after.at(&[name])),
                })
                .map(|name| Argument::at(after, name))
                .collect(),
            ChangeAction::Unknown | ChangeAction::Update => Argument::differences(before, after, |_| true),
            action if action.replaces() => {
                let mut arguments: Vec<Argument> = Vec::new();
                for path in &change.replace_paths {
                    let argument = Argument::difference(before, after, after.shown_path(before, path));
                    let argument = Argument { forces: true, ..argument };
                    arguments.extend((!arguments.contains(&argument)).then_some(argument));
                }
                arguments.extend(Argument::differences(before, after, |path| {
                    let is_forced = |forced: &Vec<_>| forced.starts_with(path) || path.starts_with(forced);
                    let is_known = after.at_steps(path) != ShownValue::Unknown;
                    is_known && self.has(&change.kind, path) && !change.replace_paths.iter().any(is_forced)
                }));
                arguments
            }
            _ => Vec::new(),
        }
    }

    /// Whether an argument may have been set: an attribute of another provider, or one that is not its default.
    fn is_set(&self, kind: &str, name: &str, value: ShownValue<'_>) -> bool {
        let known = self.0.get(kind).map(|known| known.get(name));
        let is_default = match known {
            Some(Some(default)) => default.as_deref() == Some(&shown(value)),
            Some(None) => true,
            None => false,
        };
        !is_default && !matches!(value, ShownValue::Null | ShownValue::Unknown)
    }

    /// Whether a path is in an argument, or in an attribute of another provider.
    fn has(&self, kind: &str, path: &[PathPart]) -> bool {
        match (self.0.get(kind), path.first()) {
            (Some(known), Some(PathPart::Key(name))) => known.contains_key(name),
            (None, _) => true,
            (Some(_), Some(PathPart::Index(_)) | None) => false,
        }
    }
}

impl Argument {
    fn at(values: &Values, name: &str) -> Self {
        Self { name: name.to_owned(), before: None, after: Some(shown(values.at(&[name]))), forces: false }
    }

    /// The differences between two sides. A size comes first, so that a report that is cut still has it.
    fn differences(before: &Values, after: &Values, is_meant: impl Fn(&[PathPart]) -> bool) -> Vec<Self> {
        let mut paths = after.differences(before);
        paths.retain(|path| is_meant(path));
        paths.sort_by_key(|path| !matches!(path.last(), Some(PathPart::Key(name)) if name == "size_gb"));
        paths.iter().map(|path| Self::difference(before, after, path)).collect()
    }

    /// The values on both sides. What is the same text on both, as two hidden ones, is written once or not at all.
    fn difference(before: &Values, after: &Values, path: &[PathPart]) -> Self {
        let (old, new) = (before.at_steps(path), after.at_steps(path));
        let (before, after) = match (old, new) {
            (ShownValue::Null, ShownValue::Null) => (None, None),
            (ShownValue::Sensitive, ShownValue::Sensitive) => (None, Some(shown(new))),
            _ => (Some(shown(old)), Some(shown(new))),
        };
        Self { name: written(path), before, after, forces: false }
    }
}

impl Unpriced {
    fn of(change: &Change) -> Option<Self> {
        let (before, after, makes) = (&change.before, &change.after, change.action.makes());
        let (kind, sizes_gb) = match change.kind.as_str() {
            CLOUD_DISK if makes => ("create", vec![size(after)]),
            CLOUD_DISK if grows(change) => ("grow", vec![size(before), size(after)]),
            PRIVATE_IMAGE if makes => ("create", Vec::new()),
            INSTANCE if makes && !after.is_empty_list("new_disks") => {
                ("new-disks", after.elements("new_disks").iter().map(size).collect())
            }
            _ => return None,
        };
        Some(Self { kind, sizes_gb })
    }
}

fn size(disk: &Values) -> Option<i64> {
    disk.number(&["size_gb"]).and_then(serde_json::Number::as_i64)
}

/// Whether a cloud disk grows or may grow. Hidden sizes are compared too.
fn grows(change: &Change) -> bool {
    let size = |side: &Values| side.raw(&["size_gb"]).and_then(Value::as_f64);
    let (before, after) = (size(&change.before), size(&change.after));
    change.action == ChangeAction::Update && !matches!((before, after), (Some(before), Some(after)) if after <= before)
}

/// Whether the plan creates, replaces, imports or changes an instance that is billed by the hour, and leaves it without
/// a known `max_age`.
fn is_endless(change: &Change) -> bool {
    let is_touched = change.action.makes() || change.action == ChangeAction::Update || change.importing.is_some();
    let is_hourly = !is_prepaid(&change.after) || change.after.text(&["payment_type"]).is_none();
    change.is(INSTANCE) && is_touched && change.action.keeps() && is_hourly && change.after.text(&["max_age"]).is_none()
}

impl Drift {
    /// The drift of an object; `None` if it only moved.
    fn of(change: &Change) -> Option<Self> {
        let gone = change.action == ChangeAction::Destroy;
        let attributes = if gone { Vec::new() } else { Argument::differences(&change.before, &change.after, |_| true) };
        (gone || !attributes.is_empty()).then_some(Self { gone, attributes })
    }
}

impl Invoked {
    pub(super) fn of(invocation: &Invocation) -> Self {
        let arguments = &invocation.arguments;
        let set = arguments.names().filter(|name| arguments.at(&[name]) != ShownValue::Null);
        Self {
            address: invocation.address.clone(),
            kind: invocation.kind.clone(),
            trigger: invocation.trigger.clone(),
            arguments: set.map(|name| Argument::at(arguments, name)).collect(),
        }
    }
}

impl Trigger {
    /// The trigger in words, and the address of its resource.
    pub(crate) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Invoked { resource: None } => ("invoked directly (-invoke)", None),
            Self::Invoked { resource } => ("invoked directly (-invoke) for", resource.as_deref()),
            Self::Lifecycle { resource, event, .. } => (event_words(event), Some(resource)),
        }
    }

    /// The effect of an error of the action, if it does not end the apply.
    pub(crate) fn on_error(&self) -> Option<&'static str> {
        match self {
            Self::Lifecycle { on_failure: Some(word), .. } if word == "continue" => Some("an error is a warning"),
            Self::Lifecycle { on_failure: Some(word), .. } if word == "taint" => Some("an error taints the resource"),
            Self::Invoked { .. } | Self::Lifecycle { .. } => None,
        }
    }
}

fn event_words(event: &str) -> &'static str {
    match event {
        "after_create" => "after the creation of",
        "after_destroy" => "after the deletion of",
        "after_update" => "after the update of",
        "before_create" => "before the creation of",
        "before_destroy" => "before the deletion of",
        "before_update" => "before the update of",
        _ => "with a change of",
    }
}
