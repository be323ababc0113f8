//! The actions that an apply invokes (Terraform 1.14 and later).

use serde::Serialize;

use super::{
    arrivals::Argument,
    plan::{Invocation, Plan, Trigger},
    values::{Seen, told},
};

/// An action that an apply invokes.
#[derive(Clone, Debug, Serialize)]
pub struct Invoked {
    /// The action's address.
    pub address: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What sets it off.
    pub trigger: Trigger,
    /// What it is told.
    pub arguments: Vec<Argument>,
}

impl Invoked {
    pub(super) fn all(plan: &Plan) -> Vec<Self> {
        plan.invocations.iter().map(Self::of).collect()
    }

    fn of(invocation: &Invocation) -> Self {
        let seen = |name: &String| invocation.arguments.at(&[name]);
        let set = invocation.arguments.names().filter(|name| seen(name) != Seen::Null);
        Self {
            address: invocation.address.clone(),
            kind: invocation.kind.clone(),
            trigger: invocation.trigger.clone(),
            arguments: set.map(|name| Argument { name: name.clone(), value: told(seen(name)) }).collect(),
        }
    }
}

impl Trigger {
    /// For people, without the address of the resource.
    #[must_use]
    pub(super) fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Invoked { resource: None } => ("invoked by itself (-invoke)", None),
            Self::Invoked { resource } => ("invoked by itself (-invoke) for", resource.as_deref()),
            Self::Lifecycle { resource, event, .. } => (event_words(event), Some(resource)),
        }
    }

    /// What an error of the action does, where that is not the end of the apply.
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
