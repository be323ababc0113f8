//! The changes of a plan: planned, deferred and invoked ones, and the drift that its refresh found.

use serde::Serialize;
use serde_json::Value;

use super::{
    cost::INSTANCE,
    losses::Loss,
    plan::{Importing, Invocation, ResourceChange, ReviewedPlan, Side, Trigger},
    values::{ChangeSide, PathPart, ShownValue, told, written},
};

/// What happens to one object (JSON output format of plans, actions of a change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    /// Creates it.
    Create,
    /// Creates its replacement, then destroys it.
    CreateThenDestroy,
    /// Creates its replacement, then removes it from the state without destroying it.
    CreateThenForget,
    /// A later plan decides about it.
    Defer,
    /// Destroys it.
    Destroy,
    /// Destroys it, then creates its replacement.
    DestroyThenCreate,
    /// It changed outside of plans.
    Drift,
    /// Removes it from the state without destroying it.
    Forget,
    /// Removes it from the state without destroying it, then creates its replacement (OpenTofu 1.12).
    ForgetThenCreate,
    /// It was deleted outside of plans.
    Gone,
    /// Invokes it: an action.
    Invoke,
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

    /// Whether the object exists after it.
    pub(super) fn keeps(self) -> bool {
        !matches!(self, Self::Destroy | Self::Forget)
    }

    /// The words for reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::CreateThenDestroy => "replace (create first)",
            Self::CreateThenForget | Self::ForgetThenCreate => "replace (the old one is forgotten)",
            Self::Defer => "deferred",
            Self::Destroy => "destroy",
            Self::DestroyThenCreate => "replace (destroy first)",
            Self::Drift => "changed outside of plans",
            Self::Forget => "forget",
            Self::Gone => "deleted outside of plans",
            Self::Invoke => "invoke",
            Self::NoOp => "no change",
            Self::Read => "read",
            Self::Update => "update in place",
        }
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
    ("damodel_cloud_disk", &["name", "size_gb", "spec_id", "mount_path"]),
    ("damodel_private_image", &["name", "instance_id"]),
    ("damodel_llama_server", &["instance_id", "model", "host", "port"]),
];

/// What a plan does to one object, or found out about it.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Its address, with the key of a deposed object.
    pub address: String,
    /// Its address before, if it is moved.
    pub previous_address: Option<String>,
    /// Its resource type; empty if it is unknown.
    #[serde(rename = "type")]
    pub kind: String,
    /// The action.
    pub action: ChangeAction,
    /// The core's code of the reason, if the plan has one.
    pub reason: Option<String>,
    /// The import into the state.
    pub import: Option<Importing>,
    /// The trigger of an action.
    pub trigger: Option<Trigger>,
    /// Its arguments: those that describe a created object, those of an action, or the changed ones.
    pub lines: Vec<Line>,
    /// The cloud disks that are created with it.
    pub disks: Vec<PlannedDisk>,
    /// What is lost with a destroyed object.
    pub loss: Option<Loss>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its name, as written in HCL.
    pub argument: String,
    /// Its value before as JSON, or the reason why it is not shown; `None` if only one value is of interest.
    pub before: Option<String>,
    /// Its value.
    pub after: String,
    /// Whether it forces the replacement.
    pub forces: bool,
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

impl Change {
    /// All changes of a plan, without objects that it leaves as they are.
    pub(super) fn all(plan: &ReviewedPlan) -> Vec<Self> {
        let deferred = plan.deferred.iter().map(|(address, reason)| Self {
            reason: Some(reason.clone()),
            ..Self::new(address.clone(), "", ChangeAction::Defer)
        });
        let is_left = |change: &&ResourceChange| {
            matches!(change.action, ChangeAction::NoOp | ChangeAction::Read)
                && change.importing.is_none()
                && change.moved_from().is_none()
        };
        let planned = plan.changes.iter().filter(|change| change.managed && !is_left(change));
        let planned = planned.map(|change| Self::planned(change, plan));
        let invoked = plan.invocations.iter().map(Self::invoked);
        let drift = plan.drift.iter().filter_map(Self::drift);
        deferred.chain(planned).chain(invoked).chain(drift).collect()
    }

    fn new(address: String, kind: &str, action: ChangeAction) -> Self {
        Self {
            address,
            previous_address: None,
            kind: kind.to_owned(),
            action,
            reason: None,
            import: None,
            trigger: None,
            lines: Vec::new(),
            disks: Vec::new(),
            loss: None,
        }
    }

    fn planned(change: &ResourceChange, plan: &ReviewedPlan) -> Self {
        let (action, after) = (change.action, &change.side.after);
        let is_new = action == ChangeAction::Create;
        let lines = match action {
            ChangeAction::Create => {
                let telling = TELLING.iter().find(|(kind, _)| *kind == change.kind).map(|(_, names)| *names);
                telling.unwrap_or_default().iter().filter_map(|name| Line::of(after, name)).collect()
            }
            ChangeAction::Update => Line::differences(&change.side),
            action if action.replaces() => Line::of_replacement(change),
            _ => Vec::new(),
        };
        Self {
            previous_address: change.moved_from().cloned(),
            reason: change.reason.clone(),
            import: change.importing.clone(),
            lines,
            disks: if is_new { after.elements("new_disks").iter().map(PlannedDisk::of).collect() } else { Vec::new() },
            loss: action.destroys().then(|| Loss::of(change, plan)),
            ..Self::new(change.title(), &change.kind, action)
        }
    }

    fn invoked(invocation: &Invocation) -> Self {
        let arguments = &invocation.arguments;
        let line = |name: &String| (arguments.at(&[name]) != ShownValue::Null).then(|| Line::at(arguments, name));
        Self {
            trigger: Some(invocation.trigger.clone()),
            lines: arguments.names().filter_map(line).collect(),
            ..Self::new(invocation.address.clone(), &invocation.kind, ChangeAction::Invoke)
        }
    }

    /// A change outside of plans; a move alone is none.
    fn drift(change: &ResourceChange) -> Option<Self> {
        if change.action == ChangeAction::Destroy {
            return Some(Self::new(change.title(), &change.kind, ChangeAction::Gone));
        }
        let lines = Line::differences(&change.side);
        let drift = Self::new(change.title(), &change.kind, ChangeAction::Drift);
        (!lines.is_empty()).then_some(Self { lines, ..drift })
    }
}

impl Line {
    /// An argument, if it is set and known.
    fn of(values: &ChangeSide, name: &str) -> Option<Self> {
        let is_set = !matches!(values.at(&[name]), ShownValue::Null | ShownValue::Unknown);
        is_set.then(|| Self::at(values, name))
    }

    fn at(values: &ChangeSide, name: &str) -> Self {
        Self { argument: name.to_owned(), before: None, after: told(values.at(&[name])), forces: false }
    }

    /// All differences between the sides of a change. A size comes first, so that a report that is cut still has it.
    fn differences(side: &Side) -> Vec<Self> {
        let mut paths = side.after.differences(&side.before);
        paths.sort_by_key(|path| !path.last().is_some_and(PathPart::is_size));
        paths.iter().map(|path| Self::difference(side, path, false)).collect()
    }

    /// The arguments that force a replacement, and then the other known changes.
    fn of_replacement(change: &ResourceChange) -> Vec<Self> {
        let side = &change.side;
        let mut forced: Vec<Self> = Vec::new();
        for path in &change.replace_paths {
            let line = Self::difference(side, side.after.shown_path(&side.before, path), true);
            forced.extend((!forced.contains(&line)).then_some(line));
        }
        let mut others = side.after.differences(&side.before);
        let forces = |path: &Vec<PathPart>| {
            change.replace_paths.iter().any(|forced| forced.starts_with(path) || path.starts_with(forced))
        };
        others.retain(|path| side.after.at_steps(path) != ShownValue::Unknown && !forces(path));
        forced.extend(others.iter().map(|path| Self::difference(side, path, false)));
        forced
    }

    fn difference(side: &Side, path: &[PathPart], forces: bool) -> Self {
        let value = |values: &ChangeSide| told(values.at_steps(path));
        Self { argument: written(path), before: Some(value(&side.before)), after: value(&side.after), forces }
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
        "after_create" => "after the creation of",
        "after_destroy" => "after the deletion of",
        "after_update" => "after the update of",
        "before_create" => "before the creation of",
        "before_destroy" => "before the deletion of",
        "before_update" => "before the update of",
        _ => "with a change of",
    }
}
