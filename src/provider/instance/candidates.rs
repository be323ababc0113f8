//! Candidates: the specifications for an instance, in order of preference, and the chosen one.

use serde::{Deserialize, Serialize};

use super::schema::Instance;
use crate::{
    framework::{
        Attr, CreatePlan, Diagnostics, Path, Type, UpdatePlan,
        schema::{Attribute, AttributeType, Nesting, Validator},
        to_value,
    },
    provider::{ProviderClient, lifecycle::ManagedExt as _, rules, words::capitalized},
};

/// The number of GPUs of a new instance whose configuration sets none.
pub(super) const DEFAULT_GPU_NUM: i64 = 1;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Candidate {
    pub(super) spec_id: Attr<i64>,
    pub(super) spec_type: Attr<String>,
    pub(super) region: Attr<String>,
    pub(super) gpu_num: Attr<i64>,
}

pub(super) fn attribute() -> Attribute {
    let candidate = vec![
        Attribute::optional(
            "spec_id",
            Type::Number,
            "The specification's number. If `spec_type` is set too, it must be the code of this number.",
        )
        .validate(Validator::between(1..=i64::MAX)),
        Attribute::optional("spec_type", Type::String, "The specification's code within the region.")
            .validate(rules::non_empty()),
        Attribute::optional(
            "region",
            Type::String,
            "The region. Default: the instance's, else the provider's `region`.",
        )
        .validate(rules::region()),
        Attribute::optional(
            "gpu_num",
            Type::Number,
            "How many GPUs. Either every candidate sets it or none does. Default: the instance's `gpu_num`.",
        )
        .validate(Validator::between(1..=i64::MAX)),
    ];
    Attribute::optional(
        "candidates",
        AttributeType::Nested(Nesting::List, candidate),
        "Specifications in order of preference, instead of `spec_id` or `spec_type`. The apply buys the first one \
         that is in stock, at or below its quote. A changed list never changes or replaces an existing instance. If \
         the list no longer has its specification, the plan warns. `specs` of `damodel_specs` can be used directly, \
         without a filter by stock or price: the plan checks both.",
    )
}

/// Whether the specification is chosen from candidates.
pub(super) fn has_choice(config: &Instance) -> bool {
    !config.candidates.is_null()
}

/// The choices of a create: the planned instance, or for each candidate that one with the candidate's region,
/// specification and number of GPUs. Empty while the list is unknown.
pub(super) fn each(config: &Instance, planned: &Instance, client: Option<&ProviderClient>) -> Vec<Instance> {
    if !has_choice(config) {
        // A request names what the configuration names, whether or not a quote has the other half.
        let (spec_id, spec_type) = (config.spec_id, config.spec_type.clone());
        return vec![Instance {
            spec_id: if spec_id.is_null() { Attr::Unknown } else { spec_id },
            spec_type: if spec_type.is_null() { Attr::Unknown } else { spec_type },
            ..planned.clone()
        }];
    }
    let default_region = match &config.region {
        Attr::Null => client.and_then(|client| client.region.clone()).map_or(Attr::Unknown, Attr::Known),
        region => region.clone(),
    };
    let candidates = config.candidates.known().into_iter().flatten().filter_map(Attr::known);
    let each = candidates.map(|candidate| Instance {
        spec_id: candidate.spec_id,
        spec_type: candidate.spec_type.clone(),
        region: if candidate.region.is_null() { default_region.clone() } else { candidate.region.clone() },
        gpu_num: if candidate.gpu_num.is_null() { gpu_num(config) } else { candidate.gpu_num },
        ..planned.clone()
    });
    each.collect()
}

/// The number of GPUs of a new instance if its candidates set none.
pub(super) fn gpu_num(config: &Instance) -> Attr<i64> {
    if config.gpu_num.is_null() { Attr::Known(DEFAULT_GPU_NUM) } else { config.gpu_num }
}

/// The name of a candidate in diagnostics.
pub(super) fn title(candidate: &Instance) -> String {
    let count = candidate.gpu_num.known().map(|count| format!("{count} \u{d7} ")).unwrap_or_default();
    let spec = match (candidate.spec_id.known(), candidate.spec_type.as_str()) {
        (Some(id), _) => format!("spec_id {id}"),
        (None, Some(code)) => code.to_owned(),
        (None, None) => "an unknown specification".to_owned(),
    };
    let region = candidate.region.as_str().map(|region| format!(" in {region}")).unwrap_or_default();
    format!("{count}{spec}{region}")
}

/// Plans the attributes that candidates set: known if all agree, otherwise unknown.
pub(super) fn plan_common(config: &Instance, planned: &mut Instance, candidates: &[Instance]) {
    if config.region.is_null() {
        planned.region = common(candidates, |candidate| &candidate.region);
    }
    if config.gpu_num.is_null() {
        planned.gpu_num = common(candidates, |candidate| &candidate.gpu_num);
    }
    // The framework restores what the configuration sets.
    planned.spec_id = common(candidates, |candidate| &candidate.spec_id);
    planned.spec_type = common(candidates, |candidate| &candidate.spec_type);
    planned.gpu_name = common(candidates, |candidate| &candidate.gpu_name);
    planned.capacity_type = common(candidates, |candidate| &candidate.capacity_type);
}

fn common<T: Clone + PartialEq>(candidates: &[Instance], value: impl Fn(&Instance) -> &Attr<T>) -> Attr<T> {
    let mut values = candidates.iter().map(value);
    match values.next() {
        // Null does not mean that the instance has no value.
        Some(first @ Attr::Known(_)) if values.all(|other| other == first) => first.clone(),
        _ => Attr::Unknown,
    }
}

/// Whether an instance matches one of the candidates; `None` while that is unknown.
fn includes(config: &Instance, instance: &Instance) -> Option<bool> {
    let candidates = config.candidates.known()?;
    let mut is_open = false;
    for candidate in candidates {
        match candidate.known().map(|candidate| is_of(candidate, instance)) {
            Some(Some(true)) => return Some(true),
            Some(Some(false)) => {}
            Some(None) | None => is_open = true,
        }
    }
    (!is_open).then_some(false)
}

/// Whether an instance matches this candidate. Attributes that the candidate leaves to the instance's own arguments are
/// checked there, and attributes missing in the state count as equal.
fn is_of(candidate: &Candidate, instance: &Instance) -> Option<bool> {
    let spec = match (&candidate.spec_id, &candidate.spec_type) {
        (Attr::Null, code) => same(code, &instance.spec_type),
        (id, _) => same(id, &instance.spec_id),
    };
    let parts = [spec, same(&candidate.region, &instance.region), same(&candidate.gpu_num, &instance.gpu_num)];
    if parts.contains(&Some(false)) {
        return Some(false);
    }
    parts.iter().all(|part| *part == Some(true)).then_some(true)
}

fn same<T: PartialEq>(wanted: &Attr<T>, own: &Attr<T>) -> Option<bool> {
    match (wanted, own) {
        (Attr::Null, _) | (_, Attr::Null) => Some(true),
        (Attr::Known(wanted), Attr::Known(own)) => Some(wanted == own),
        _ => None,
    }
}

/// Keeps an existing instance, whatever the list holds: candidates say what to buy, never what an instance must be.
pub(super) fn pin(plan: &mut UpdatePlan<Instance>) {
    let UpdatePlan { config, prior, planned, replace, diagnostics, .. } = plan;
    if !has_choice(config) {
        return;
    }
    if replace.is_empty() && includes(config, prior) == Some(false) {
        let code = prior.spec_type.as_str().map(|code| format!(" ({code})")).unwrap_or_default();
        diagnostics.warning_at(
            Path::to("candidates"),
            "The instance's specification is not among the candidates",
            format!(
                "{} has {}{code}. Candidates only decide what a create buys. If the state still contains this instance \
                 after this run, replace it to buy one of them: terraform apply -replace=<address>.",
                capitalized(&prior.title()),
                title(prior)
            ),
        );
    }
    // Terraform permits the state's value of a configured attribute if neither is null.
    let kept = Instance { candidates: prior.candidates.clone(), ..planned.clone() };
    if !prior.candidates.is_null() && to_value(&kept).ok() == to_value(&*prior).ok() {
        *planned = kept;
    }
}

/// Makes the choice unknown again: an earlier run chose, with other prices and stock than this plan's.
pub(super) fn plan_adoption(plan: &mut CreatePlan<Instance>) {
    let CreatePlan { config, planned, .. } = plan;
    if !has_choice(config) {
        return;
    }
    let each = each(config, planned, None);
    plan_common(config, planned, &each);
    (planned.estimated_cost, planned.price_ceiling) = (Attr::Unknown, Attr::Unknown);
}

/// Checks the list without the service.
pub(super) fn validate(config: &Instance, diagnostics: &mut Diagnostics) {
    let Some(candidates) = config.candidates.known() else { return };
    for (name, is_set) in [("spec_id", config.spec_id.is_known()), ("spec_type", config.spec_type.is_known())] {
        if is_set {
            diagnostics.error_at(
                Path::to(name),
                "A specification and candidates are both set",
                format!("Set either {name} or candidates, not both."),
            );
        }
    }
    let has_own = |(_, candidate): (usize, &Candidate)| candidate.gpu_num.is_known();
    let is_counted = config.candidates.elements().any(has_own);
    for (index, candidate) in candidates.iter().enumerate() {
        let path = Path::to("candidates").index(index);
        match candidate {
            Attr::Unknown => {}
            Attr::Null => diagnostics.error_at(path, "Missing candidate", "A candidate must not be null."),
            Attr::Known(candidate) => {
                if is_counted && candidate.gpu_num.is_null() && config.gpu_num.is_null() {
                    diagnostics.error_at(
                        path.attribute("gpu_num"),
                        "Missing required argument",
                        "Another candidate sets gpu_num. Set gpu_num in every candidate, or only in the instance.",
                    );
                }
                validate_one(candidate, config, &path, diagnostics);
            }
        }
    }
}

fn validate_one(candidate: &Candidate, config: &Instance, path: &Path, diagnostics: &mut Diagnostics) {
    if candidate.spec_id.is_null() && candidate.spec_type.is_null() {
        diagnostics.error_at(
            path.attribute("spec_id"),
            "Missing specification",
            "A candidate needs spec_id or spec_type.",
        );
    }
    let both = [
        ("region", candidate.region.is_known() && config.region.is_known()),
        ("gpu_num", candidate.gpu_num.is_known() && config.gpu_num.is_known()),
    ];
    for (name, _) in both.into_iter().filter(|(_, is_both)| *is_both) {
        diagnostics.error_at(
            path.attribute(name),
            format!("{name} is set twice"),
            format!(
                "The instance's {name} applies to candidates that do not set {name}. Set it in the instance or in the \
                     candidates, not in both."
            ),
        );
    }
}

/// The attribute that a diagnostic about a choice names: the candidate, or else what selects the specification.
pub(super) fn blame(planned: &Instance, place: usize) -> Path {
    if has_choice(planned) {
        return Path::to("candidates").index(place);
    }
    Path::to(if planned.spec_id.is_known() { "spec_id" } else { "spec_type" })
}
