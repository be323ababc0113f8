//! Reader of plans: unknown fields of newer versions of Terraform or OpenTofu are ignored, but parts are not guessed. A
//! part that cannot be read is a fault of the plan, and a plan with faults passes no gate.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{
    super::{
        changes::ChangeAction,
        document::{DocumentError, decoded, is_wrapped},
        values::{ChangeSide, PathPart},
    },
    Check, Importing, Invocation, NotAPlan, ResourceChange, ReviewedPlan, Side, Stated, Trigger,
};

/// The relevant members of the document. Those that only identify its kind are not kept, because they are the largest.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Root {
    #[serde(rename = "@level")]
    level: Option<IgnoredAny>,
    format_version: Value,
    terraform_version: Value,
    planned_values: Option<IgnoredAny>,
    provider_schemas: Option<IgnoredAny>,
    diagnostics: Option<IgnoredAny>,
    /// A member of state files.
    lineage: Option<IgnoredAny>,
    /// A member of files that OpenTofu encrypted.
    encrypted_data: Option<IgnoredAny>,
    errored: Value,
    complete: Value,
    resource_changes: Value,
    resource_drift: Value,
    deferred_changes: Value,
    action_invocations: Value,
    deferred_action_invocations: Value,
    output_changes: Value,
    checks: Value,
    prior_state: Value,
    configuration: Value,
}

impl NotAPlan {
    fn syntax(document: &[u8], reason: String) -> Self {
        if is_wrapped(document) { DocumentError::Wrapper.into() } else { Self::Syntax(reason) }
    }
}

impl ReviewedPlan {
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
        let mut documents = serde_json::Deserializer::from_slice(document).into_iter::<Root>();
        let root = match documents.next().unwrap_or_else(|| Ok(Root::default())) {
            Ok(root) => root,
            Err(error) if error.is_data() => return Err(NotAPlan::Other),
            Err(error) => return Err(NotAPlan::syntax(document, error.to_string())),
        };
        if root.level.is_some() {
            return Err(NotAPlan::Log);
        }
        if !document.get(documents.byte_offset()..).unwrap_or_default().iter().all(u8::is_ascii_whitespace) {
            return Err(NotAPlan::syntax(document, "more text follows after its end".to_owned()));
        }
        let Some(version) = root.format_version.as_str() else {
            return Err(match (root.lineage.is_some(), root.encrypted_data.is_some()) {
                (true, _) => NotAPlan::State,
                (false, true) => NotAPlan::Encrypted,
                (false, false) => NotAPlan::Other,
            });
        };
        if !["0", "1"].contains(&version.split('.').next().unwrap_or_default()) {
            return Err(NotAPlan::Version(version.to_owned()));
        }
        let changes = [&root.resource_changes, &root.output_changes];
        let is_plan = root.planned_values.is_some() || changes.iter().any(|part| !part.is_null());
        let is_other = root.provider_schemas.is_some() || root.diagnostics.is_some();
        match (is_plan, is_other) {
            (true, _) => Ok(Self::of(&root)),
            (false, true) => Err(NotAPlan::Other),
            (false, false) => Err(NotAPlan::State),
        }
    }

    fn of(root: &Root) -> Self {
        let mut plan = Self { core: root.terraform_version.as_str().map(str::to_owned), ..Self::default() };
        plan.errored = plan.flag(&root.errored, "errored").unwrap_or(false);
        let complete = plan.flag(&root.complete, "complete");
        plan.says_whether_complete = complete.is_some();
        plan.changes = plan.read_changes(&root.resource_changes, "resource_changes");
        plan.drift = plan.read_changes(&root.resource_drift, "resource_drift");
        plan.read_invocations(&root.action_invocations);
        plan.read_deferred(&root.deferred_changes, "deferred_changes", "/resource_change/address");
        plan.read_deferred(
            &root.deferred_action_invocations,
            "deferred_action_invocations",
            "/action_invocation/address",
        );
        plan.incomplete = match (complete, plan.deferred.is_empty()) {
            (_, false) => Some("some changes are deferred to a later plan"),
            (Some(false), true) => Some("another plan is needed after it, as with -target or after an error"),
            (Some(true) | None, true) => None,
        };
        plan.outputs = plan.read_outputs(&root.output_changes);
        plan.failed_checks = plan.read_checks(&root.checks);
        if !(root.prior_state.is_null() || root.prior_state.is_object()) {
            plan.faults.push("prior_state".to_owned());
        }
        if let Some(module) = root.prior_state.pointer("/values/root_module") {
            plan.read_module(module);
        }
        plan.read_configuration(&root.configuration["root_module"], "");
        plan
    }

    fn read_changes(&mut self, list: &Value, key: &str) -> Vec<ResourceChange> {
        let mut changes = Vec::new();
        for (index, entry) in self.list(list, key).iter().enumerate() {
            if is_ephemeral(entry) {
                continue;
            }
            let fault = |part: &str| {
                let address = text(entry, "address").map(|address| format!(" ({address})")).unwrap_or_default();
                format!("{key}[{index}]{part}{address}")
            };
            match change(entry) {
                Some(change) => {
                    self.faults.extend(odd_parts(entry).into_iter().map(fault));
                    changes.push(change);
                }
                None => {
                    self.faults.push(fault(""));
                    self.unread.extend(text(entry, "address"));
                }
            }
        }
        changes
    }

    fn read_invocations(&mut self, list: &Value) {
        for (index, entry) in self.list(list, "action_invocations").iter().enumerate() {
            match invocation(entry) {
                Some(invocation) => self.invocations.push(invocation),
                None => self.faults.push(format!("action_invocations[{index}]")),
            }
        }
    }

    /// Reads the deferred changes, of which only parts are known: address and reason suffice.
    fn read_deferred(&mut self, list: &Value, key: &str, address: &str) {
        for entry in self.list(list, key) {
            let address = entry.pointer(address).and_then(Value::as_str).unwrap_or("(unknown address)");
            let reason = text(entry, "reason").unwrap_or_default();
            self.deferred.push((address.to_owned(), reason));
        }
    }

    fn read_outputs(&mut self, changes: &Value) -> Vec<(String, Side)> {
        let mut outputs = Vec::new();
        match changes {
            Value::Null => {}
            Value::Object(changes) => {
                for (name, change) in changes {
                    match side(change) {
                        Some(side) => outputs.push((name.clone(), side)),
                        None => self.faults.push(format!("output_changes.{name}")),
                    }
                }
            }
            _ => self.faults.push("output_changes".to_owned()),
        }
        outputs
    }

    fn read_checks(&mut self, checks: &Value) -> Vec<Check> {
        let checks = self.list(checks, "checks");
        let instances = checks.iter().flat_map(|check| {
            let whole = std::slice::from_ref(check);
            match check.get("instances").and_then(Value::as_array) {
                Some(instances) if !instances.is_empty() => instances.as_slice(),
                _ => whole,
            }
        });
        let mut failed = Vec::new();
        for check in instances {
            let status = text(check, "status").unwrap_or_default();
            match status.as_str() {
                "pass" | "unknown" => continue,
                "fail" | "error" => {}
                _ => self.faults.push("checks".to_owned()),
            }
            failed.push(Check {
                address: check.pointer("/address/to_display").and_then(Value::as_str).unwrap_or_default().to_owned(),
                status,
                problems: elements(&check["problems"]).iter().filter_map(|problem| text(problem, "message")).collect(),
            });
        }
        failed
    }

    fn read_module(&mut self, module: &Value) {
        for resource in self.list(&module["resources"], "prior_state") {
            if let (Some(address), Some(kind)) = (text(resource, "address"), text(resource, "type")) {
                let values = ChangeSide::new(resource.get("values"), None, resource.get("sensitive_values"));
                self.prior.push(Stated { address, kind, managed: resource["mode"] == "managed", values });
            } else {
                self.faults.push("prior_state".to_owned());
            }
        }
        for module in self.list(&module["child_modules"], "prior_state") {
            self.read_module(module);
        }
    }

    /// Reads which resources have provisioners. A missing configuration is no fault.
    fn read_configuration(&mut self, module: &Value, prefix: &str) {
        for resource in elements(&module["resources"]) {
            let Some(address) = text(resource, "address") else { continue };
            let provisioners = elements(&resource["provisioners"]).iter();
            let types: Vec<String> = provisioners.filter_map(|provisioner| text(provisioner, "type")).collect();
            if !types.is_empty() {
                self.provisioners.insert(format!("{prefix}{address}"), types);
            }
        }
        for (name, call) in module["module_calls"].as_object().into_iter().flatten() {
            self.read_configuration(&call["module"], &format!("{prefix}module.{name}."));
        }
    }

    /// A list that may be missing. Any other value under its name is a fault.
    fn list<'a>(&mut self, list: &'a Value, key: &str) -> &'a [Value] {
        if !(list.is_null() || list.is_array()) {
            self.faults.push(key.to_owned());
        }
        elements(list)
    }

    fn flag(&mut self, value: &Value, key: &str) -> Option<bool> {
        if !(value.is_null() || value.is_boolean()) {
            self.faults.push(key.to_owned());
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

/// A change, if its action and its masks have the documented form.
fn change(entry: &Value) -> Option<ResourceChange> {
    let inner = entry.get("change")?;
    let side = side(inner)?;
    let is_object = |key: &str| inner.get(key).is_none_or(|value| value.is_null() || value.is_object());
    if !(is_object("before") && is_object("after")) {
        return None;
    }
    let managed = match text(entry, "mode")?.as_str() {
        "managed" => true,
        "data" => false,
        _ => return None,
    };
    Some(ResourceChange {
        address: text(entry, "address")?,
        previous_address: text(entry, "previous_address"),
        deposed: text(entry, "deposed"),
        kind: text(entry, "type")?,
        provider: text(entry, "provider_name"),
        managed,
        action: side.action,
        reason: text(entry, "action_reason"),
        importing: inner.get("importing").filter(|importing| !importing.is_null()).map(importing),
        replace_paths: elements(&inner["replace_paths"]).iter().map(path).collect(),
        side,
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

/// Both sides of a change; `None` if its actions are unknown, or its masks have an unknown form.
fn side(change: &Value) -> Option<Side> {
    let is_mask = |key: &str| !matches!(change.get(key), Some(Value::Number(_) | Value::String(_)));
    if !["after_unknown", "before_sensitive", "after_sensitive"].into_iter().all(is_mask) {
        return None;
    }
    let values = |value: &str, unknown: Option<&Value>, sensitive: &str| {
        ChangeSide::new(change.get(value), unknown, change.get(sensitive))
    };
    Some(Side {
        action: ChangeAction::read(change.get("actions")?)?,
        before: values("before", None, "before_sensitive"),
        after: values("after", change.get("after_unknown"), "after_sensitive"),
    })
}

fn invocation(entry: &Value) -> Option<Invocation> {
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
    let is_readable = ["config_unknown", "config_sensitive"].into_iter().all(is_mask);
    is_readable.then_some(())?;
    Some(Invocation {
        address: text(entry, "address")?,
        kind: text(entry, "type")?,
        trigger,
        arguments: ChangeSide::new(
            entry.get("config_values"),
            entry.get("config_unknown"),
            entry.get("config_sensitive"),
        ),
    })
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
    let step = |step: &Value| match (step.as_u64().map(usize::try_from), step.as_str()) {
        (Some(Ok(index)), _) => PathPart::Index(index),
        (_, Some(key)) => PathPart::Key(key.to_owned()),
        _ => PathPart::Key(step.to_string()),
    };
    elements(steps).iter().map(step).collect()
}

fn elements(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(within: &Value, key: &str) -> Option<String> {
    within.get(key)?.as_str().map(str::to_owned)
}
