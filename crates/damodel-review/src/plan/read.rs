//! Reader of plans: unknown fields of newer versions of Terraform or OpenTofu are ignored, but parts are not guessed. A
//! part that cannot be read is a fault of the plan, and a plan with faults passes no gate.

use std::{borrow::Cow, collections::BTreeSet};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use super::{
    super::{
        address::Address,
        rules::utf_8,
        values::{PathPart, Values},
    },
    CLOUD_DISK, Change, ChangeAction, Check, Configured, Deferred, Importing, Invocation, Output, Plan, Stated,
    Trigger, is_own,
};

/// The relevant members of the document. Those that only identify its kind are not kept, because they are the largest.
///
/// The largest ones are read entry by entry, so that none is in the memory twice.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Root<'a> {
    #[serde(rename = "@level")]
    level: Option<IgnoredAny>,
    format_version: Value,
    terraform_version: Value,
    timestamp: Value,
    planned_values: Option<IgnoredAny>,
    provider_schemas: Option<IgnoredAny>,
    diagnostics: Option<IgnoredAny>,
    /// A member of the file in which `init` records the backend.
    backend: Option<IgnoredAny>,
    /// A member of state files.
    lineage: Option<IgnoredAny>,
    /// A member of files that OpenTofu encrypted.
    encrypted_data: Option<IgnoredAny>,
    errored: Value,
    complete: Value,
    #[serde(borrow)]
    resource_changes: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_drift: Option<&'a RawValue>,
    deferred_changes: Value,
    action_invocations: Value,
    deferred_action_invocations: Value,
    output_changes: Value,
    checks: Value,
    #[serde(borrow)]
    prior_state: Option<&'a RawValue>,
    configuration: Value,
}

#[derive(Deserialize)]
struct PriorState<'a> {
    #[serde(borrow)]
    values: Option<StateValues<'a>>,
}

#[derive(Deserialize)]
struct StateValues<'a> {
    #[serde(borrow)]
    root_module: Option<Module<'a>>,
}

#[derive(Deserialize)]
struct Module<'a> {
    #[serde(borrow)]
    resources: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    child_modules: Option<Vec<Self>>,
}

/// An object of the prior state.
#[derive(Deserialize)]
struct Resource {
    address: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    mode: Value,
    deposed_key: Option<String>,
    #[serde(default)]
    values: Value,
    #[serde(default)]
    sensitive_values: Value,
}

/// The reason why a document is not the bare output of Terraform or OpenTofu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It begins like UTF-16. Usual cause: it is truncated, or another program added text in another encoding.
    #[error("it is not valid UTF-16, although it begins as UTF-16. Write the file again")]
    Encoding,
    /// Other text stands before the JSON. Usual cause: standard error, or a log with a prefix before each line.
    #[error(
        "other text stands before the JSON, such as a warning or a line of a log. Pass only the standard output of the \
         command: without `2>&1`, and in Terragrunt with `--tf-forward-stdout`"
    )]
    Preceded,
    /// A workflow's wrapper added lines.
    #[error(
        "it has lines of the wrapper of hashicorp/setup-terraform (`[command]…`, `::debug::…`). Set \
         `terraform_wrapper: false` in that step, or `tofu_wrapper: false` of opentofu/setup-opentofu"
    )]
    Wrapper,
}

/// The reason why a document is not a readable plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAPlan {
    /// It is not the bare output of a program.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// It is the file in which `init` records the backend.
    #[error(
        "it is the configuration of the backend. Save a plan with `plan -out=FILE`, run `terraform show -json FILE` \
         and pass its output"
    )]
    Backend,
    /// OpenTofu encrypted it: a saved plan, or a state.
    #[error("OpenTofu encrypted it. Run `tofu show -json PLANFILE` and pass its output")]
    Encrypted,
    /// It is empty. Usual cause: the command before the pipe failed.
    #[error("it is empty. Check the command before the pipe, or the one that wrote the file")]
    Empty,
    /// It is the log of a plan or an apply.
    #[error(
        "it is the log of a run with -json. Save the plan with `plan -out=FILE`, run `terraform show -json FILE` and \
         pass its output"
    )]
    Log,
    /// It is another document.
    #[error("it is JSON, but not the output of `terraform show -json PLANFILE`")]
    Other,
    /// It is a plan file of `plan -out`.
    #[error("it is a saved plan file. Run `terraform show -json FILE` or `tofu show -json FILE` and pass its output")]
    Saved,
    /// It is a state.
    #[error("it is a state. Save a plan with `plan -out=FILE`, run `terraform show -json FILE` and pass its output")]
    State,
    /// It is not JSON. Usual cause: it is truncated.
    #[error("it is not JSON ({0}). Pass the output of `terraform show -json PLANFILE`")]
    Syntax(String),
    /// Its format is newer than this program.
    #[error("its format is {0:?}, and this version reads 0.x and 1.x. Install a newer version of the provider")]
    Version(String),
}

/// A document in UTF-8, without its byte order mark.
///
/// # Errors
///
/// If it begins as UTF-16 and is not.
pub fn decoded(document: &[u8]) -> Result<Cow<'_, [u8]>, DocumentError> {
    utf_8(document).ok_or(DocumentError::Encoding)
}

/// The text that another program added to a document that could not be read as JSON; `None` if it has none.
///
/// setup-terraform and setup-opentofu print the command before its output, and commands for GitHub Actions after it. No
/// line of JSON begins so.
pub fn added_text(document: &[u8]) -> Option<DocumentError> {
    let is_of_wrapper = |line: &[u8]| line.starts_with(b"[command]") || line.starts_with(b"::");
    if document.split(|byte| *byte == b'\n').any(is_of_wrapper) {
        return Some(DocumentError::Wrapper);
    }
    let has_text = !document.trim_ascii_start().starts_with(b"{") && (0..document.len()).any(|at| begins(document, at));
    has_text.then_some(DocumentError::Preceded)
}

/// Whether a plan or a state begins here. The version is their first member.
fn begins(document: &[u8], at: usize) -> bool {
    let rest = document.get(at..).and_then(|rest| rest.strip_prefix(b"{")).map(<[u8]>::trim_ascii_start);
    rest.is_some_and(|rest| rest.starts_with(b"\"format_version\"") || rest.starts_with(b"\"version\""))
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// If this is not a plan.
    pub fn read(document: &[u8]) -> Result<Self, NotAPlan> {
        let document = &*decoded(document)?;
        if document.iter().all(u8::is_ascii_whitespace) {
            return Err(NotAPlan::Empty);
        }
        if document.starts_with(b"PK\x03\x04") {
            return Err(NotAPlan::Saved);
        }
        let otherwise = |error: NotAPlan| added_text(document).map_or(error, NotAPlan::from);
        let mut documents = serde_json::Deserializer::from_slice(document).into_iter::<Root<'_>>();
        let root = match documents.next().unwrap_or_else(|| Ok(Root::default())) {
            Ok(root) => root,
            Err(error) if error.is_data() => return Err(otherwise(NotAPlan::Other)),
            Err(error) => return Err(otherwise(NotAPlan::Syntax(error.to_string()))),
        };
        if root.level.is_some() {
            return Err(NotAPlan::Log);
        }
        if !document.get(documents.byte_offset()..).unwrap_or_default().iter().all(u8::is_ascii_whitespace) {
            return Err(otherwise(NotAPlan::Syntax("more text follows after its end".to_owned())));
        }
        let Some(version) = root.format_version.as_str() else {
            return Err(match (root.lineage.is_some(), root.encrypted_data.is_some()) {
                _ if root.backend.is_some() => NotAPlan::Backend,
                (true, _) => NotAPlan::State,
                (false, true) => NotAPlan::Encrypted,
                (false, false) => NotAPlan::Other,
            });
        };
        if !["0", "1"].contains(&version.split('.').next().unwrap_or_default()) {
            return Err(NotAPlan::Version(version.to_owned()));
        }
        let has_changes = root.resource_changes.is_some() || !root.output_changes.is_null();
        let is_plan = root.planned_values.is_some() || has_changes;
        let is_other = root.provider_schemas.is_some() || root.diagnostics.is_some();
        match (is_plan, is_other) {
            (true, _) => Ok(Self::of(root)),
            (false, true) => Err(NotAPlan::Other),
            (false, false) => Err(NotAPlan::State),
        }
    }

    fn of(root: Root<'_>) -> Self {
        let mut plan = Self::default();
        [plan.head.core_version, plan.head.planned_at] =
            [&root.terraform_version, &root.timestamp].map(|part| part.as_str().map(str::to_owned));
        plan.head.errored = plan.flag(&root.errored, "errored").unwrap_or(false);
        let complete = plan.flag(&root.complete, "complete");
        plan.head.says_whether_complete = complete.is_some();
        plan.changes = plan.read_changes(root.resource_changes, "resource_changes");
        plan.drift = plan.read_changes(root.resource_drift, "resource_drift");
        for (index, entry) in plan.list(root.action_invocations, "action_invocations").into_iter().enumerate() {
            match invocation(entry) {
                Some(invocation) => plan.invocations.push(invocation),
                None => plan.head.unreadable.push(format!("action_invocations[{index}]")),
            }
        }
        plan.read_deferred(root.deferred_changes, "deferred_changes", "/resource_change/address");
        let actions = "deferred_action_invocations";
        plan.read_deferred(root.deferred_action_invocations, actions, "/action_invocation/address");
        plan.read_outputs(root.output_changes);
        plan.failed_checks = plan.read_checks(root.checks);
        plan.read_prior(root.prior_state);
        plan.read_configuration(&root.configuration["root_module"], "");
        plan.judge(complete);
        plan
    }

    /// Finds out whether the plan alone reaches the configuration. Without the field that says so, an object of the
    /// prior state without an entry shows that one was left out; a list without entries shows nothing.
    fn judge(&mut self, complete: Option<bool>) {
        if complete.is_none() && !self.changes.is_empty() {
            let entries = self.changes.iter().flat_map(Change::addresses).chain(&self.unread);
            let entries: BTreeSet<&Address> = entries.collect();
            let left_out = self.prior.iter().filter(|stated| stated.managed && !entries.contains(&stated.address));
            self.head.left_out = left_out.map(|stated| stated.address.to_string()).collect();
        }
        self.head.incomplete = if !self.deferred.is_empty() {
            self.head.left_out = self.deferred.iter().map(|deferred| deferred.address.to_string()).collect();
            Some("some changes are deferred to a later plan")
        } else if complete == Some(false) {
            Some("another plan is needed after it, as with -target or after an error")
        } else if !self.head.left_out.is_empty() {
            Some("it has no entry for objects of the state, as with -target")
        } else {
            None
        };
    }

    fn read_changes(&mut self, list: Option<&RawValue>, key: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        let entries = list.map(|list| serde_json::from_str::<Vec<&RawValue>>(list.get())).transpose();
        self.head.unreadable.extend(entries.is_err().then(|| key.to_owned()));
        for (index, entry) in entries.ok().flatten().unwrap_or_default().into_iter().enumerate() {
            let entry: Value = serde_json::from_str(entry.get()).unwrap_or_default();
            if is_ephemeral(&entry) {
                continue;
            }
            let address = text(&entry, "address");
            let named = address.as_ref().map(|address| format!(" ({address})")).unwrap_or_default();
            let fault = |part: &str| format!("{key}[{index}]{part}{named}");
            let odd = odd_parts(&entry);
            match change(entry) {
                Some(change) => {
                    self.head.unreadable.extend(odd.into_iter().map(fault));
                    changes.push(change);
                }
                None => {
                    self.head.unreadable.push(fault(""));
                    self.unread.extend(address.map(Address::new));
                }
            }
        }
        changes
    }

    /// Reads the deferred changes, of which only parts are known: address and reason suffice.
    fn read_deferred(&mut self, list: Value, key: &str, address: &str) {
        for entry in self.list(list, key) {
            let address = entry.pointer(address).and_then(Value::as_str).unwrap_or("(unknown address)");
            let reason = text(&entry, "reason").unwrap_or_default();
            self.deferred.push(Deferred { address: Address::new(address), reason });
        }
    }

    fn read_outputs(&mut self, changes: Value) {
        match changes {
            Value::Null => {}
            Value::Object(changes) => {
                for (name, mut change) in changes {
                    match (ChangeAction::read(&change["actions"]), sides(&mut change)) {
                        (Some(action), Some((before, after))) => {
                            let address = Address::new(format!("output.{name}"));
                            self.outputs.push(Output { address, action, before, after });
                        }
                        _ => self.head.unreadable.push(format!("output_changes.{name}")),
                    }
                }
            }
            _ => self.head.unreadable.push("output_changes".to_owned()),
        }
    }

    fn read_checks(&mut self, checks: Value) -> Vec<Check> {
        let checks = self.list(checks, "checks");
        let instances = checks.iter().flat_map(|check| match elements(&check["instances"]) {
            [] => std::slice::from_ref(check),
            instances => instances,
        });
        let mut failed = Vec::new();
        for check in instances {
            let status = text(check, "status").unwrap_or_default();
            match status.as_str() {
                "pass" | "unknown" => continue,
                "fail" | "error" => {}
                _ => self.head.unreadable.push("checks".to_owned()),
            }
            failed.push(Check {
                address: Address::new(check.pointer("/address/to_display").and_then(Value::as_str).unwrap_or_default()),
                status,
                problems: elements(&check["problems"]).iter().filter_map(|problem| text(problem, "message")).collect(),
            });
        }
        failed
    }

    /// Reads the prior state. Of an object with a change only a cloud disk's values are needed.
    fn read_prior(&mut self, state: Option<&RawValue>) {
        let state = state.map(|state| serde_json::from_str::<PriorState<'_>>(state.get())).transpose();
        self.head.unreadable.extend(state.is_err().then(|| "prior_state".to_owned()));
        let entries: BTreeSet<Address> = self.changes.iter().map(|change| change.address.clone()).collect();
        let mut modules: Vec<Module<'_>> =
            state.ok().flatten().and_then(|state| state.values?.root_module).into_iter().collect();
        while let Some(module) = modules.pop() {
            for resource in module.resources.unwrap_or_default() {
                let Ok(resource) = serde_json::from_str::<Resource>(resource.get()) else {
                    self.head.unreadable.push("prior_state".to_owned());
                    continue;
                };
                let (address, managed) =
                    (Address::deposed(resource.address, resource.deposed_key), resource.mode == "managed");
                let is_needed = !managed || resource.kind == CLOUD_DISK || !entries.contains(&address);
                let values = is_needed.then(|| Values::new(resource.values, Value::Null, resource.sensitive_values));
                let values = values.unwrap_or_default();
                self.prior.push(Stated { address, kind: resource.kind, managed, values });
            }
            modules.extend(module.child_modules.unwrap_or_default().into_iter().rev());
        }
    }

    /// Reads the arguments and provisioners of resources. A missing configuration is no fault.
    fn read_configuration(&mut self, module: &Value, prefix: &str) {
        for resource in elements(&module["resources"]) {
            let Some(address) = text(resource, "address") else { continue };
            let expressions = resource["expressions"].as_object().into_iter().flatten();
            let provisioners = elements(&resource["provisioners"]).iter();
            let configured = Configured {
                arguments: expressions.map(|(name, _)| name.clone()).collect(),
                provisioners: provisioners.filter_map(|provisioner| text(provisioner, "type")).collect(),
            };
            self.configured.insert(format!("{prefix}{address}"), configured);
        }
        for (name, call) in module["module_calls"].as_object().into_iter().flatten() {
            self.read_configuration(&call["module"], &format!("{prefix}module.{name}."));
        }
    }

    /// A list that may be missing. Any other value under its name is a fault.
    fn list(&mut self, list: Value, key: &str) -> Vec<Value> {
        match list {
            Value::Array(elements) => return elements,
            Value::Null => {}
            _ => self.head.unreadable.push(key.to_owned()),
        }
        Vec::new()
    }

    fn flag(&mut self, value: &Value, key: &str) -> Option<bool> {
        if !(value.is_null() || value.is_boolean()) {
            self.head.unreadable.push(key.to_owned());
        }
        value.as_bool()
    }
}

/// Whether an entry is an ephemeral resource, which OpenTofu 1.11 lists although no apply changes it.
fn is_ephemeral(entry: &Value) -> bool {
    let actions = elements(&entry["change"]["actions"]);
    let is_opened = matches!(actions, [action] if ["open", "renew", "close"].map(Value::from).contains(action));
    entry["mode"] == "ephemeral" && is_opened
}

/// A change, if its action, its mode and its masks have the documented form. An object of another provider may have an
/// unknown action or mode.
fn change(mut entry: Value) -> Option<Change> {
    let kind = text(&entry, "type")?;
    let mode = text(&entry, "mode")?;
    let action = ChangeAction::read(&entry["change"]["actions"]);
    let is_known = action.is_some() && ["managed", "data"].contains(&mode.as_str());
    if !is_known && is_own(&kind) {
        return None;
    }
    let address = text(&entry, "address")?;
    let moved_from = text(&entry, "previous_address").filter(|old| *old != address).map(Address::new);
    let inner = entry.get_mut("change")?;
    let is_object = |key: &str| inner.get(key).is_none_or(|value| value.is_null() || value.is_object());
    if !(is_object("before") && is_object("after")) {
        return None;
    }
    let (before, after) = sides(inner)?;
    let importing = inner.get("importing").filter(|importing| !importing.is_null()).map(importing);
    let replace_paths = elements(&inner["replace_paths"]).iter().map(path).collect();
    Some(Change {
        address: Address::deposed(address, text(&entry, "deposed")),
        moved_from,
        kind,
        provider: text(&entry, "provider_name"),
        managed: mode != "data",
        action: action.filter(|_| is_known).unwrap_or(ChangeAction::Unknown),
        reason: text(&entry, "action_reason"),
        importing,
        replace_paths,
        before,
        after,
    })
}

/// The further parts of a change that do not have the documented form.
fn odd_parts(entry: &Value) -> Vec<&'static str> {
    let inner = &entry["change"];
    let is_list_of_lists = |value: &Value| value.as_array().is_some_and(|paths| paths.iter().all(Value::is_array));
    let parts = [
        (".previous_address", entry["previous_address"].is_string(), &entry["previous_address"]),
        (".deposed", entry["deposed"].is_string(), &entry["deposed"]),
        (".action_reason", entry["action_reason"].is_string(), &entry["action_reason"]),
        (".change.importing", inner["importing"].is_object(), &inner["importing"]),
        (".change.replace_paths", is_list_of_lists(&inner["replace_paths"]), &inner["replace_paths"]),
    ];
    parts.into_iter().filter(|(_, is_fine, value)| !(*is_fine || value.is_null())).map(|(part, ..)| part).collect()
}

fn importing(importing: &Value) -> Importing {
    let identity = || importing.get("identity").filter(|identity| !identity.is_null()).map(Value::to_string);
    Importing { id: text(importing, "id").or_else(identity) }
}

/// Both sides of a change; `None` if its masks have an unknown form.
fn sides(change: &mut Value) -> Option<(Values, Values)> {
    let is_mask = |key: &str| !matches!(change.get(key), Some(Value::Number(_) | Value::String(_)));
    if !["after_unknown", "before_sensitive", "after_sensitive"].into_iter().all(is_mask) {
        return None;
    }
    let mut part = |key: &str| take(change, key);
    let before = Values::new(part("before"), Value::Null, part("before_sensitive"));
    Some((before, Values::new(part("after"), part("after_unknown"), part("after_sensitive"))))
}

fn invocation(mut entry: Value) -> Option<Invocation> {
    let lifecycle = &entry["lifecycle_action_trigger"];
    let trigger = if lifecycle.is_object() {
        Trigger::Lifecycle {
            resource: text(lifecycle, "triggering_resource_address")?,
            event: snake_case(&text(lifecycle, "action_trigger_event")?),
            on_failure: text(lifecycle, "on_failure")
                .map(|word| snake_case(word.strip_prefix("ActionOnFailure").unwrap_or(&word))),
        }
    } else if entry["invoke_action_trigger"].is_object() {
        Trigger::Invoked { resource: text(&entry["invoke_action_trigger"], "calling_resource_address") }
    } else {
        return None;
    };
    let is_mask = |key: &str| !matches!(entry.get(key), Some(Value::Number(_) | Value::String(_)));
    if !["config_unknown", "config_sensitive"].into_iter().all(is_mask) {
        return None;
    }
    let (address, kind) = (Address::new(text(&entry, "address")?), text(&entry, "type")?);
    let mut part = |key: &str| take(&mut entry, key);
    let arguments = Values::new(part("config_values"), part("config_unknown"), part("config_sensitive"));
    Some(Invocation { address, kind, trigger, arguments })
}

/// The configuration's form (`before_destroy`) of a plan's event (`BeforeDestroy`).
fn snake_case(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

/// A path. A step that is neither a name nor an index becomes a key with its JSON text.
fn path(steps: &Value) -> Vec<PathPart> {
    let parts = elements(steps).iter().map(|step| match (step.as_u64().map(usize::try_from), step.as_str()) {
        (Some(Ok(index)), _) => PathPart::Index(index),
        (_, Some(key)) => PathPart::Key(key.to_owned()),
        _ => PathPart::Key(step.to_string()),
    });
    parts.collect()
}

/// Moves a member out of an object: plans are large. Null if it is missing.
fn take(within: &mut Value, key: &str) -> Value {
    within.get_mut(key).map(Value::take).unwrap_or_default()
}

fn elements(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(within: &Value, key: &str) -> Option<String> {
    within.get(key)?.as_str().map(str::to_owned)
}
