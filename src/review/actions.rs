//! What a plan does to an object.

use serde::Serialize;
use serde_json::Value;

/// What a plan does to one object (JSON output format of plans, actions of a change).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Makes it.
    Create,
    /// Makes its successor first, then destroys it.
    CreateThenDestroy,
    /// Makes its successor, and drops it from the state without destroying it.
    CreateThenForget,
    /// Destroys it.
    Destroy,
    /// Destroys it first, then makes its successor.
    DestroyThenCreate,
    /// Drops it from the state without destroying it.
    Forget,
    /// Drops it from the state without destroying it, and makes its successor (OpenTofu 1.12).
    ForgetThenCreate,
    /// Leaves it as it is.
    NoOp,
    /// Reads a data source during the apply.
    Read,
    /// Changes it in place.
    Update,
}

impl Action {
    /// Reads the list of actions; none when it is one that this program does not know.
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

    /// Whether something new comes of it.
    #[must_use]
    pub fn makes(self) -> bool {
        self == Self::Create || self.replaces()
    }

    /// Whether what there was is destroyed. Forgetting is not.
    #[must_use]
    pub fn destroys(self) -> bool {
        matches!(self, Self::CreateThenDestroy | Self::Destroy | Self::DestroyThenCreate)
    }

    /// Whether what there was stays without being managed any longer.
    #[must_use]
    pub fn forgets(self) -> bool {
        matches!(self, Self::CreateThenForget | Self::Forget | Self::ForgetThenCreate)
    }

    /// Whether another object takes its place.
    #[must_use]
    pub fn replaces(self) -> bool {
        matches!(
            self,
            Self::CreateThenDestroy | Self::CreateThenForget | Self::DestroyThenCreate | Self::ForgetThenCreate
        )
    }

    /// For people.
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
