//! Reading a plan (JSON output format, plan representation), as Terraform 1.0 and OpenTofu 1.6 and all later ones write it.
//!
//! It is read leniently where a newer core may say more, and strictly where a guess could hide something: what this program cannot
//! make out is a fault of the plan, and a gate does not let it pass.

use serde_json::Value;

use super::{
    actions::Action,
    values::{Step, Values},
};

/// A plan.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The version of the core that made it.
    pub(super) core: Option<String>,
    /// Whether planning failed on the way.
    pub(super) errored: bool,
    /// Why more than this plan is needed to reach what the configuration says.
    pub(super) incomplete: Option<&'static str>,
    /// Whether the core says if it is complete: Terraform does from 1.8 on, OpenTofu does not.
    pub(super) says_whether_complete: bool,
    /// What could not be made out, and where.
    pub(super) faults: Vec<String>,
    /// The changes of objects, those that change nothing included.
    pub(super) changes: Vec<Change>,
    /// What became different outside of the plan.
    pub(super) drift: Vec<Change>,
    /// The outputs of the root module.
    pub(super) outputs: Vec<(String, Side)>,
    /// What the prior state holds: managed objects and data sources.
    pub(super) prior: Vec<Stated>,
    /// Conditions that do not hold.
    pub(super) failed_checks: Vec<Check>,
}

/// The change of one object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) address: String,
    pub(super) previous_address: Option<String>,
    /// The key of an object that a replacement left behind.
    pub(super) deposed: Option<String>,
    /// The resource type.
    pub(super) kind: String,
    pub(super) managed: bool,
    pub(super) action: Action,
    pub(super) reason: Option<String>,
    pub(super) importing: bool,
    pub(super) replace_paths: Vec<Vec<Step>>,
    pub(super) side: Side,
}

/// What there was, and what there will be.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) action: Action,
    pub(super) before: Values,
    pub(super) after: Values,
}

/// An object of the prior state.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) address: String,
    pub(super) kind: String,
    pub(super) managed: bool,
    pub(super) values: Values,
}

/// A check, a precondition or a postcondition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Check {
    /// What it belongs to.
    pub address: String,
    /// `fail` or `error`.
    pub status: String,
    /// What the configuration says about it.
    pub problems: Vec<String>,
}

/// Why something is not a plan that this program reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAPlan {
    /// It is empty. Usual cause: the command before the pipe failed.
    #[error("it is empty")]
    Empty,
    /// It is the log of a plan or an apply.
    #[error(
        "it is the log of a run with -json, not a plan. Save the plan (plan -out=FILE) and show it (show -json FILE)"
    )]
    Log,
    /// It is some other document.
    #[error("it is JSON, and not what `terraform show -json PLAN` writes")]
    Other,
    /// It is a plan as `plan -out` saves it.
    #[error(
        "it is a saved plan itself. What is read here is the output of `terraform show -json` or `tofu show -json` for it"
    )]
    Saved,
    /// It is a state.
    #[error("it is a state, not a plan. Give the saved plan to `show -json`")]
    State,
    /// It is no JSON. Usual cause: it was cut off on the way.
    #[error("it is not JSON ({0})")]
    Syntax(String),
    /// Its format is newer than this program.
    #[error("its format is {0:?}, and this program reads 0.x and 1.x")]
    Version(String),
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// When this is no plan.
    pub fn read(document: &[u8]) -> Result<Self, NotAPlan> {
        // Some shells put a mark at the beginning of what they redirect.
        let document = document.strip_prefix("\u{feff}".as_bytes()).unwrap_or(document);
        if document.iter().all(u8::is_ascii_whitespace) {
            return Err(NotAPlan::Empty);
        }
        if document.starts_with(b"PK\x03\x04") {
            return Err(NotAPlan::Saved);
        }
        let mut documents = serde_json::Deserializer::from_slice(document).into_iter::<Value>();
        let root = documents.next().unwrap_or(Ok(Value::Null)).map_err(|error| NotAPlan::Syntax(error.to_string()))?;
        if root.get("@level").is_some() {
            return Err(NotAPlan::Log);
        }
        if documents.next().is_some() {
            return Err(NotAPlan::Syntax("more follows after its end".to_owned()));
        }
        let Some(version) = root.get("format_version").and_then(Value::as_str) else { return Err(NotAPlan::Other) };
        if !["0", "1"].contains(&version.split('.').next().unwrap_or_default()) {
            return Err(NotAPlan::Version(version.to_owned()));
        }
        let is_plan =
            ["planned_values", "resource_changes", "output_changes"].iter().any(|key| root.get(key).is_some());
        match (is_plan, root.get("provider_schemas").or_else(|| root.get("diagnostics"))) {
            (true, _) => Ok(Self::of(&root)),
            (false, Some(_)) => Err(NotAPlan::Other),
            (false, None) => Err(NotAPlan::State),
        }
    }

    fn of(root: &Value) -> Self {
        let mut plan = Self { core: text(root, "terraform_version"), ..Self::default() };
        plan.errored = plan.flag(root, "errored").unwrap_or(false);
        let deferred = plan.list(root, "deferred_changes");
        let complete = plan.flag(root, "complete");
        plan.says_whether_complete = complete.is_some();
        plan.incomplete = match (complete, deferred.is_empty()) {
            (_, false) => Some("some changes are deferred to a later plan"),
            (Some(false), true) => Some("another plan is needed after it, as with -target or after an error"),
            (Some(true) | None, true) => None,
        };
        plan.changes = plan.read_changes(root, "resource_changes");
        plan.drift = plan.read_changes(root, "resource_drift");
        plan.outputs = plan.read_outputs(root);
        plan.failed_checks = plan.read_checks(root);
        if let Some(module) = root.pointer("/prior_state/values/root_module") {
            plan.read_module(module);
        }
        plan
    }

    fn read_changes(&mut self, root: &Value, key: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        for (index, entry) in self.list(root, key).iter().enumerate() {
            match change(entry) {
                Some(change) => changes.push(change),
                None => {
                    let address = text(entry, "address").map(|address| format!(" ({address})")).unwrap_or_default();
                    self.faults.push(format!("{key}[{index}]{address}"));
                }
            }
        }
        changes
    }

    fn read_outputs(&mut self, root: &Value) -> Vec<(String, Side)> {
        let mut outputs = Vec::new();
        match root.get("output_changes") {
            None | Some(Value::Null) => {}
            Some(Value::Object(changes)) => {
                for (name, change) in changes {
                    match side(change) {
                        Some(side) => outputs.push((name.clone(), side)),
                        None => self.faults.push(format!("output_changes.{name}")),
                    }
                }
            }
            Some(_) => self.faults.push("output_changes".to_owned()),
        }
        outputs
    }

    fn read_checks(&mut self, root: &Value) -> Vec<Check> {
        let checks = self.list(root, "checks");
        let instances = checks.iter().flat_map(|check| {
            let whole = std::slice::from_ref(check);
            match check.get("instances").and_then(Value::as_array) {
                Some(instances) if !instances.is_empty() => instances.as_slice(),
                _ => whole,
            }
        });
        let failed = instances.filter(|check| matches!(check["status"].as_str(), Some("fail" | "error")));
        failed
            .map(|check| Check {
                address: check.pointer("/address/to_display").and_then(Value::as_str).unwrap_or_default().to_owned(),
                status: text(check, "status").unwrap_or_default(),
                problems: check["problems"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|problem| text(problem, "message"))
                    .collect(),
            })
            .collect()
    }

    fn read_module(&mut self, module: &Value) {
        for resource in self.list(module, "resources") {
            if let (Some(address), Some(kind)) = (text(&resource, "address"), text(&resource, "type")) {
                let values = Values::new(resource.get("values"), None, resource.get("sensitive_values"));
                self.prior.push(Stated { address, kind, managed: resource["mode"] == "managed", values });
            } else {
                self.faults.push("prior_state".to_owned());
            }
        }
        for module in self.list(module, "child_modules") {
            self.read_module(&module);
        }
    }

    /// A list that may be left out. Anything else under its name is a fault.
    fn list(&mut self, within: &Value, key: &str) -> Vec<Value> {
        match within.get(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(elements)) => elements.clone(),
            Some(_) => {
                self.faults.push(key.to_owned());
                Vec::new()
            }
        }
    }

    fn flag(&mut self, within: &Value, key: &str) -> Option<bool> {
        let value = within.get(key).filter(|value| !value.is_null())?;
        if !value.is_boolean() {
            self.faults.push(key.to_owned());
        }
        value.as_bool()
    }
}

fn change(entry: &Value) -> Option<Change> {
    let side = side(entry.get("change")?)?;
    let inner = &entry["change"];
    Some(Change {
        address: text(entry, "address")?,
        previous_address: text(entry, "previous_address"),
        deposed: text(entry, "deposed"),
        kind: text(entry, "type")?,
        managed: text(entry, "mode")? == "managed",
        action: side.action,
        reason: text(entry, "action_reason"),
        importing: inner["importing"].is_object(),
        replace_paths: inner["replace_paths"].as_array().into_iter().flatten().map(path).collect(),
        side,
    })
}

fn side(change: &Value) -> Option<Side> {
    let values = |value: &str, unknown: Option<&Value>, sensitive: &str| {
        Values::new(change.get(value), unknown, change.get(sensitive))
    };
    Some(Side {
        action: Action::read(change.get("actions")?)?,
        before: values("before", None, "before_sensitive"),
        after: values("after", change.get("after_unknown"), "after_sensitive"),
    })
}

/// A path; what is neither a name nor an index is written as it is.
fn path(steps: &Value) -> Vec<Step> {
    let step = |step: &Value| match (step.as_u64().map(usize::try_from), step.as_str()) {
        (Some(Ok(index)), _) => Step::Index(index),
        (_, Some(key)) => Step::Key(key.to_owned()),
        _ => Step::Key(step.to_string()),
    };
    steps.as_array().into_iter().flatten().map(step).collect()
}

fn text(within: &Value, key: &str) -> Option<String> {
    within.get(key)?.as_str().map(str::to_owned)
}

impl Change {
    /// The address, with the key of a deposed object.
    pub(super) fn title(&self) -> String {
        match &self.deposed {
            Some(key) => format!("{} (deposed {key})", self.address),
            None => self.address.clone(),
        }
    }

    /// Whether it is an object of this type that this plan manages.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.managed && self.kind == kind
    }
}
