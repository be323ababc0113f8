//! The words of plans: the actions of the core, and the types of this provider.

use serde::Serialize;
use serde_json::Value;

/// The resource type that has prices.
pub(crate) const INSTANCE: &str = "damodel_instance";
/// A resource type with data and without prices.
pub(crate) const CLOUD_DISK: &str = "damodel_cloud_disk";
/// A resource type with data and without prices.
pub(crate) const PRIVATE_IMAGE: &str = "damodel_private_image";
/// A resource type without data: its destroy stops the server, and keeps builds and model.
pub(crate) const LLAMA_SERVER: &str = "damodel_llama_server";

/// Whether a type of resource or action belongs to this provider, which a mirror may have under any source address.
pub(crate) fn is_own(kind: &str) -> bool {
    kind.starts_with("damodel_")
}

/// What happens to one object (JSON output format of plans, actions of a change).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    #[default]
    NoOp,
    /// Reads a data source during the apply.
    Read,
    /// An action that this version does not know, of an object of another provider.
    Unknown,
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
    pub(crate) fn makes(self) -> bool {
        self == Self::Create || self.replaces()
    }

    /// Whether it destroys the existing object. Removing from the state does not.
    pub(crate) fn destroys(self) -> bool {
        matches!(self, Self::CreateThenDestroy | Self::Destroy | Self::DestroyThenCreate)
    }

    /// Whether it removes the existing object from the state without destroying it.
    pub(crate) fn forgets(self) -> bool {
        matches!(self, Self::CreateThenForget | Self::Forget | Self::ForgetThenCreate)
    }

    /// Whether it replaces the existing object.
    pub(crate) fn replaces(self) -> bool {
        matches!(
            self,
            Self::CreateThenDestroy | Self::CreateThenForget | Self::DestroyThenCreate | Self::ForgetThenCreate
        )
    }

    /// Whether an object has this address after it.
    pub(crate) fn keeps(self) -> bool {
        !matches!(self, Self::Destroy | Self::Forget)
    }

    /// Whether it changes something.
    pub(crate) fn changes(self) -> bool {
        !matches!(self, Self::NoOp | Self::Read)
    }

    /// The words for reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::CreateThenDestroy => "replaced (create first)",
            Self::CreateThenForget | Self::ForgetThenCreate => "replaced (the old one is forgotten)",
            Self::Destroy => "destroyed",
            Self::DestroyThenCreate => "replaced (destroy first)",
            Self::Forget => "forgotten",
            Self::NoOp => "unchanged",
            Self::Read => "read",
            Self::Unknown => "unknown",
            Self::Update => "changed",
        }
    }
}

/// The text for a core's code of a reason; `None` for an unknown code.
pub(crate) fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "absent_prereq" => "a dependency does not exist yet",
        "deferred_prereq" => "a dependency is deferred",
        "instance_count_unknown" => "count or for_each is unknown so far",
        "provider_config_unknown" => "the configuration of its provider is unknown so far",
        "resource_config_unknown" => "the configuration is unknown so far",
        "delete_because_count_index" => "index outside of count",
        "delete_because_enabled_false" => "enabled = false",
        "delete_because_each_key" => "key not in for_each",
        "delete_because_no_module" => "module removed from the configuration",
        "delete_because_no_move_target" => "moved to an address that is not configured",
        "delete_because_no_resource_config" => "removed from the configuration",
        "delete_because_wrong_repetition" => "count or for_each was added or removed",
        "forgot_because_lifecycle_destroy_in_config" => "destroy = false in the configuration",
        "forgot_because_lifecycle_destroy_in_state" => "destroy = false in the state",
        "replace_because_cannot_update" => "an argument cannot be changed in place",
        "replace_because_tainted" => "tainted",
        "replace_by_request" => "requested (-replace)",
        "replace_by_triggers" => "replace_triggered_by",
        _ => return None,
    })
}
