//! The changes of a plan by kind: create, import, move, update, replace, invoke; and the drift that its refresh found.

use serde::Serialize;
use serde_json::Value;

use super::{
    cost::INSTANCE,
    plan::{Change, Invocation, ReviewedPlan, Side, Trigger},
    values::{ChangeSide, PathPart, ShownValue, told, written},
};

/// The planned action for one object (JSON output format of plans, actions of a change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    /// Creates it.
    Create,
    /// Creates its replacement, then destroys it.
    CreateThenDestroy,
    /// Creates its replacement, then removes it from the state without destroying it.
    CreateThenForget,
    /// Destroys it.
    Destroy,
    /// Destroys it, then creates its replacement.
    DestroyThenCreate,
    /// Removes it from the state without destroying it.
    Forget,
    /// Removes it from the state without destroying it, then creates its replacement (OpenTofu 1.12).
    ForgetThenCreate,
    /// Leaves it unchanged.
    NoOp,
    /// Reads a data source during the apply.
    Read,
    /// Changes it in place.
    Update,
}

impl ChangeAction {
    /// Reads the list of actions; `None` for an unknown one.
    pub(super) fn read(actions: &Value) -> Option<Self> {
        let words: Option<Vec<&str>> = actions.as_array()?.iter().map(Value::as_str).collect();
        Some(match words?.as_slice() {
            ["create"] => Self::Create,
            ["create", "delete"] => Self::CreateThenDestroy,
            ["create", "forget"] => Self::CreateThenForget,
            ["delete"] => Self::Destroy,
            ["delete", "create"] => Self::DestroyThenCreate,
            ["forget"] => Self::Forget,
            ["forget", "create"] => Self::ForgetThenCreate,
            ["no-op"] => Self::NoOp,
            ["read"] => Self::Read,
            ["update"] => Self::Update,
            _ => return None,
        })
    }

    /// Whether it creates an object.
    #[must_use]
    pub fn makes(self) -> bool {
        self == Self::Create || self.replaces()
    }

    /// Whether it destroys the existing object. Removing from the state does not.
    #[must_use]
    pub fn destroys(self) -> bool {
        matches!(self, Self::CreateThenDestroy | Self::Destroy | Self::DestroyThenCreate)
    }

    /// Whether it removes the existing object from the state without destroying it.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(self, Self::CreateThenForget | Self::Forget | Self::ForgetThenCreate)
    }

    /// Whether it replaces the existing object.
    #[must_use]
    pub fn replaces(self) -> bool {
        matches!(
            self,
            Self::CreateThenDestroy | Self::CreateThenForget | Self::DestroyThenCreate | Self::ForgetThenCreate
        )
    }

    /// The words for reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::CreateThenDestroy => "replace (create first)",
            Self::CreateThenForget | Self::ForgetThenCreate => "replace (the old one is forgotten)",
            Self::Destroy => "destroy",
            Self::DestroyThenCreate => "replace (destroy first)",
            Self::Forget => "forget",
            Self::NoOp => "no change",
            Self::Read => "read",
            Self::Update => "update in place",
        }
    }
}

/// An object that a plan replaces.
#[derive(Clone, Debug, Serialize)]
pub struct ReplacedObject {
    /// Its address.
    pub address: String,
    /// The replacement and its order.
    pub action: ChangeAction,
    /// The core's code of the reason.
    pub reason: Option<String>,
    /// The arguments that force it.
    pub forced_by: Vec<Forced>,
    /// The other known changes.
    pub changes: Vec<Forced>,
}

/// An object that a plan changes in place.
#[derive(Clone, Debug, Serialize)]
pub struct Updated {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The changed attributes.
    pub attributes: Vec<Forced>,
}

/// An argument with its value before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Forced {
    /// The argument, as written in HCL.
    pub argument: String,
    /// Its value before as JSON, or the reason why it is not shown.
    pub before: String,
    /// Its value after.
    pub after: String,
}

impl ReplacedObject {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        plan.changes.iter().filter(|change| change.managed && change.action.replaces()).map(Self::of).collect()
    }

    fn of(change: &Change) -> Self {
        let mut others = change.side.after.differences(&change.side.before);
        let forces = |path: &Vec<PathPart>| {
            change.replace_paths.iter().any(|forced| forced.starts_with(path) || path.starts_with(forced))
        };
        others.retain(|path| change.side.after.at_steps(path) != ShownValue::Unknown && !forces(path));
        Self {
            address: change.title(),
            action: change.action,
            reason: change.reason.clone(),
            forced_by: change.replace_paths.iter().map(|path| Forced::at(&change.side, path)).collect(),
            changes: others.iter().map(|path| Forced::at(&change.side, path)).collect(),
        }
    }
}

impl Updated {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let updated = plan.changes.iter().filter(|change| change.managed && change.action == ChangeAction::Update);
        let updated = updated.map(|change| Self {
            address: change.title(),
            kind: change.kind.clone(),
            attributes: Forced::differences(&change.side),
        });
        updated.collect()
    }
}

impl Forced {
    /// All differences between the sides of a change.
    pub(super) fn differences(side: &Side) -> Vec<Self> {
        side.after.differences(&side.before).iter().map(|path| Self::at(side, path)).collect()
    }

    fn at(side: &Side, path: &[PathPart]) -> Self {
        let told = |values: &ChangeSide| told(values.at_steps(path));
        Self { argument: written(path), before: told(&side.before), after: told(&side.after) }
    }
}

/// The arguments that describe a created object of this provider to reviewers, by type.
const TELLING: [(&str, &[&str]); 4] = [
    (
        INSTANCE,
        &[
            "name",
            "region",
            "spec_type",
            "spec_id",
            "gpu_num",
            "image",
            "image_id",
            "payment_type",
            "purchase_duration",
            "auto_renew",
            "data_disk_expand_size_gb",
        ],
    ),
    ("damodel_cloud_disk", &["name", "size_gb", "spec_id", "mount_path", "purchase_duration"]),
    ("damodel_private_image", &["name", "instance_id"]),
    ("damodel_llama_server", &["instance_id", "model", "host", "port"]),
];

/// An object that a plan creates.
#[derive(Clone, Debug, Serialize)]
pub struct Created {
    /// Its address.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its descriptive arguments, for types of this provider.
    pub arguments: Vec<Argument>,
    /// The cloud disks that are created with it.
    pub disks: Vec<PlannedDisk>,
}

/// An argument with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Argument {
    /// The argument, as written in HCL.
    pub name: String,
    /// Its value as JSON, or the reason why it is not shown.
    pub value: String,
}

/// A cloud disk that is created with an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedDisk {
    /// Its size in GB.
    pub size_gb: Option<i64>,
    /// The mount path.
    pub mount_path: Option<String>,
    /// Whether it is released with the instance.
    pub release_with_instance: bool,
}

/// An object that a plan imports into the state.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// Its address.
    pub address: String,
    /// Its import id, or its identity as JSON; `None` while it is unknown.
    pub id: Option<String>,
    /// The further action for it.
    pub action: ChangeAction,
}

/// An object that gets another address.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Its address.
    pub address: String,
    /// Its address before.
    pub previous_address: String,
    /// The further action for it.
    pub action: ChangeAction,
}

impl Created {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let created = plan.changes.iter().filter(|change| change.managed && change.action == ChangeAction::Create);
        created.map(Self::of).collect()
    }

    fn of(change: &Change) -> Self {
        let after = &change.side.after;
        let telling = TELLING.iter().find(|(kind, _)| *kind == change.kind).map(|(_, names)| *names);
        Self {
            address: change.title(),
            kind: change.kind.clone(),
            arguments: telling.unwrap_or_default().iter().filter_map(|name| Argument::of(after, name)).collect(),
            disks: after.elements("new_disks").iter().map(PlannedDisk::of).collect(),
        }
    }
}

impl Argument {
    fn of(values: &ChangeSide, name: &str) -> Option<Self> {
        let seen = values.at(&[name]);
        let is_set = !matches!(seen, ShownValue::Null | ShownValue::Unknown);
        is_set.then(|| Self { name: name.to_owned(), value: told(seen) })
    }
}

impl PlannedDisk {
    fn of(disk: &ChangeSide) -> Self {
        Self {
            size_gb: disk.number(&["size_gb"]).and_then(serde_json::Number::as_i64),
            mount_path: disk.text(&["mount_path"]).map(str::to_owned),
            release_with_instance: disk.at(&["release_with_instance"]) != ShownValue::Known(&Value::Bool(false)),
        }
    }
}

impl Imported {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let imported = plan.changes.iter().filter(|change| change.managed);
        let imported = imported.filter_map(|change| {
            let id = change.importing.as_ref()?.id.clone();
            Some(Self { address: change.title(), id, action: change.action })
        });
        imported.collect()
    }
}

impl Moved {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let moved = plan.changes.iter().filter(|change| change.managed && change.is_moved());
        let moved = moved.filter_map(|change| {
            let previous_address = change.previous_address.clone()?;
            Some(Self { address: change.title(), previous_address, action: change.action })
        });
        moved.collect()
    }
}

/// An action that an apply invokes.
#[derive(Clone, Debug, Serialize)]
pub struct Invoked {
    /// The action's address.
    pub address: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The trigger.
    pub trigger: Trigger,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

impl Invoked {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        plan.invocations.iter().map(Self::of).collect()
    }

    fn of(invocation: &Invocation) -> Self {
        let seen = |name: &String| invocation.arguments.at(&[name]);
        let set = invocation.arguments.names().filter(|name| seen(name) != ShownValue::Null);
        Self {
            address: invocation.address.clone(),
            kind: invocation.kind.clone(),
            trigger: invocation.trigger.clone(),
            arguments: set.map(|name| Argument { name: name.clone(), value: told(seen(name)) }).collect(),
        }
    }
}

impl Trigger {
    /// The trigger in words, and the address of its resource.
    #[must_use]
    pub(super) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Invoked { resource: None } => ("invoked directly (-invoke)", None),
            Self::Invoked { resource } => ("invoked directly (-invoke) for", resource.as_deref()),
            Self::Lifecycle { resource, event, .. } => (event_words(event), Some(resource)),
        }
    }

    /// The effect of an error of the action, if it does not end the apply.
    #[must_use]
    pub(super) fn on_error(&self) -> Option<&'static str> {
        match self {
            Self::Lifecycle { on_failure: Some(word), .. } if word == "continue" => Some("an error is a warning"),
            Self::Lifecycle { on_failure: Some(word), .. } if word == "taint" => Some("an error taints the resource"),
            Self::Invoked { .. } | Self::Lifecycle { .. } => None,
        }
    }
}

fn event_words(event: &str) -> &'static str {
    match event {
        "after_create" => "after the create of",
        "after_destroy" => "after the destroy of",
        "after_update" => "after the update of",
        "before_create" => "before the create of",
        "before_destroy" => "before the destroy of",
        "before_update" => "before the update of",
        _ => "with a change of",
    }
}

/// An object that differs from the state.
#[derive(Clone, Debug, Serialize)]
pub struct Drift {
    /// Its address.
    pub address: String,
    /// The difference.
    pub what: Drifted,
}

/// A change of an object outside of plans.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Drifted {
    /// These attributes changed.
    Changed {
        /// The attributes, with their values.
        attributes: Vec<Forced>,
    },
    /// It no longer exists.
    Gone,
}

impl Drift {
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        plan.drift.iter().filter_map(|change| Some(Self { address: change.title(), what: what(change)? })).collect()
    }
}

fn what(change: &Change) -> Option<Drifted> {
    if change.action == ChangeAction::Destroy {
        return Some(Drifted::Gone);
    }
    let attributes = Forced::differences(&change.side);
    // A move alone is not drift.
    (!attributes.is_empty()).then_some(Drifted::Changed { attributes })
}
