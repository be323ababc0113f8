//! The configuration of a life.

use std::fmt::Write;

use damodel::sandbox::LedgerObject;
use rand::{RngExt, rngs::StdRng, seq::SliceRandom as _};

use crate::support::terraform::{Instance, config_with};

/// The specifications of candidates. A single one is the first of them.
pub(super) const SPECS: [i64; 3] = [103, 104, 105];

/// The count or for_each of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Times {
    Once,
    Count(usize),
    ForEach(usize),
}

impl Times {
    fn number(self) -> usize {
        match self {
            Self::Once => 1,
            Self::Count(count) | Self::ForEach(count) => count,
        }
    }
}

/// A resource.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) object: LedgerObject,
    label: String,
    times: Times,
    /// Whether it belongs to the second account.
    pub(super) is_other: bool,
    /// An instance's candidates, if it has any.
    candidates: Option<Vec<i64>>,
}

/// The provider's reaction to leftovers of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnLeftover {
    Default,
    Warn,
}

/// A configuration.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) resources: Vec<Resource>,
    pub(super) on_leftover: OnLeftover,
    /// Whether requests go one at a time, so that some creates are not sent yet when a run is broken.
    is_slow: bool,
}

impl Configuration {
    pub(super) fn random(random: &mut StdRng) -> Self {
        let has_other = random.random_bool(0.3);
        let mut resources = Vec::new();
        for number in 0..random.random_range(1..=3) {
            let object = if random.random_bool(0.6) { LedgerObject::Instance } else { LedgerObject::CloudDisk };
            let times = match random.random_range(0..3) {
                0 => Times::Count(random.random_range(1..=4)),
                1 => Times::ForEach(random.random_range(1..=3)),
                _ => Times::Once,
            };
            let is_other = has_other && random.random_bool(0.5);
            let has_choice = object == LedgerObject::Instance && random.random_bool(0.4);
            let candidates = has_choice.then(|| {
                let mut specs = SPECS.to_vec();
                specs.shuffle(random);
                specs
            });
            resources.push(Resource { object, label: format!("r{number}"), times, is_other, candidates });
        }
        if random.random_bool(0.4) {
            let once = |object, label: &str| Resource {
                object,
                label: label.to_owned(),
                times: Times::Once,
                is_other: false,
                candidates: None,
            };
            resources.extend([once(LedgerObject::Instance, "builder"), once(LedgerObject::PrivateImage, "model")]);
        }
        let on_leftover = if random.random_bool(0.7) { OnLeftover::Default } else { OnLeftover::Warn };
        Self { resources, on_leftover, is_slow: random.random_bool(0.2) }
    }

    /// The expected number of objects of a kind in an account.
    pub(super) fn wanted(&self, object: LedgerObject, is_other: bool) -> usize {
        let of_it = self.resources.iter().filter(|resource| (resource.object, resource.is_other) == (object, is_other));
        of_it.map(|resource| resource.times.number()).sum()
    }

    /// Whether an instance has candidates.
    pub(super) fn has_choice(&self) -> bool {
        self.resources.iter().any(|resource| resource.candidates.is_some())
    }

    /// The addresses of all resources.
    pub(super) fn addresses(&self) -> Vec<String> {
        let each = self.resources.iter().flat_map(|resource| {
            let whole = format!("{}.{}", resource.type_name(), resource.label);
            (0..resource.times.number()).map(move |index| match resource.times {
                Times::Once => whole.clone(),
                Times::Count(_) => format!("{whole}[{index}]"),
                Times::ForEach(_) => format!("{whole}[\"k{index}\"]"),
            })
        });
        each.collect()
    }

    /// The configuration as HCL. Equal resources have the same name.
    pub(super) fn hcl(&self) -> String {
        let leftover = match self.on_leftover {
            OnLeftover::Default => "",
            OnLeftover::Warn => "on_leftover = \"warn\"\n",
        };
        let pace = if self.is_slow { "max_concurrent_requests = 1\n" } else { "" };
        let provider = format!("region = \"cn-east-1\"\nmax_retries = 2\n{leftover}{pace}");
        let mut body = String::new();
        if self.resources.iter().any(|resource| resource.is_other) {
            let _ = writeln!(
                body,
                "variable \"other\" {{\n  sensitive = true\n}}\n\
                 provider \"damodel\" {{\n  alias = \"other\"\n  api_token = var.other\n{provider}}}"
            );
        }
        for resource in &self.resources {
            body.push_str(&resource.hcl());
        }
        config_with(&provider, body)
    }
}

impl Resource {
    fn type_name(&self) -> &'static str {
        match self.object {
            LedgerObject::CloudDisk => "damodel_cloud_disk",
            LedgerObject::Instance => "damodel_instance",
            LedgerObject::PrivateImage => "damodel_private_image",
        }
    }

    fn hcl(&self) -> String {
        let mut more = match self.times {
            Times::Once => String::new(),
            Times::Count(count) => format!("  count = {count}\n"),
            Times::ForEach(count) => {
                let keys: Vec<String> = (0..count).map(|index| format!("k{index}")).collect();
                format!("  for_each = toset({keys:?})\n")
            }
        };
        if self.is_other {
            more.push_str("  provider = damodel.other\n");
        }
        let label = &self.label;
        match self.object {
            LedgerObject::CloudDisk => {
                format!(
                    "resource \"damodel_cloud_disk\" {label:?} {{\n\
                     {more}  name = \"alike\"\n  size_gb = 20\n  spec_id = 31\n}}\n"
                )
            }
            LedgerObject::Instance => {
                let mut instance = Instance::new(label).text("name", "alike");
                if let Some(candidates) = &self.candidates {
                    let list: Vec<String> = candidates.iter().map(|spec| format!("{{ spec_id = {spec} }}")).collect();
                    // An object is imported by its name: one name has one kind of machine.
                    instance = instance.text("name", "alike-choice").without("spec_id");
                    instance = instance.set("candidates", format!("[{}]", list.join(", ")));
                }
                instance.to_string().replacen("{\n", &format!("{{\n{more}"), 1)
            }
            LedgerObject::PrivateImage => format!(
                "resource \"damodel_private_image\" {label:?} {{\n\
                 {more}  name = \"model\"\n  instance_id = damodel_instance.builder.id\n}}\n"
            ),
        }
    }
}
