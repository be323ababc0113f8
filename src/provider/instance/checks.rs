//! Live checks of a planned create, which report errors of the service before anything is bought. A check with unknown
//! input is skipped; a check that fails for lack of an answer is a warning.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    candidates,
    disks::{self, goes_with, is_bound},
    schema::Instance,
};
use crate::{
    api::{
        CloudDisk, CloudDiskSpecFilter, Context, Error, Listing, Spec, WithJson,
        disk_status::{IN_ARREARS, MOUNTED, MOUNTING, RELEASED, RELEASING},
    },
    framework::{Diagnostic, Diagnostics, Path},
    provider::{
        ProviderClient, disk_sizes,
        errors::{Failure, unknown_region},
        images, pricing,
        words::{self, disk_status},
    },
};

/// The number of alternatives in an error.
const ALTERNATIVES: usize = 5;

/// The results of the checks.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The specification, if it is known and exists.
    pub(super) spec: Option<WithJson<Spec>>,
    /// Whether the service did not answer the request for specifications.
    pub(super) spec_is_unanswered: bool,
    /// The lack of stock, if the specification cannot be bought at the moment.
    pub(super) shortage: Option<Shortage>,
    /// Messages for the operator.
    pub(super) diagnostics: Diagnostics,
}

/// A lack of stock.
#[derive(Debug)]
pub(super) struct Shortage {
    path: Path,
    summary: &'static str,
    /// The reason, as a sentence.
    pub(super) reason: String,
    alternatives: String,
}

impl Shortage {
    /// The diagnostic: an error, unless the create waits for capacity.
    pub(super) fn diagnostic(&self, planned: &Instance) -> Diagnostic {
        let Self { path, summary, reason, alternatives } = self;
        let diagnostic = if planned.wait_for_capacity.is_null() {
            let wait = "This instance was not bought. To wait, set wait_for_capacity.";
            Diagnostic::error(*summary, format!("{reason}{alternatives} {wait}"))
        } else {
            Diagnostic::warning(*summary, format!("{reason}{alternatives} The apply will wait for capacity."))
        };
        diagnostic.at(path.clone())
    }
}

/// The image that a create selects, as far as the lists show it.
#[derive(Debug)]
pub(super) struct Image {
    path: Path,
    cuda: Option<images::Cuda>,
    /// The region of a private image.
    region: Option<String>,
}

/// Checks the cloud disks of a planned create; `replaced` is the uid of the instance that it replaces.
pub(super) async fn check_mounts(
    planned: &Instance,
    replaced: Option<&str>,
    client: &ProviderClient,
    limits: &Context,
) -> Diagnostics {
    let mut findings = Findings::default();
    findings.check_existing_disks(planned, replaced, client, limits).await;
    findings.check_new_disks(planned, client, limits).await;
    findings.diagnostics
}

/// The specification that a planned create selects (service API, POST /api/instance/create, rule 2).
pub(super) fn select<'a>(specs: &'a Listing<WithJson<Spec>>, planned: &Instance) -> Option<&'a WithJson<Spec>> {
    pricing::select(specs, planned.spec_id.known().copied(), planned.spec_type.as_str())
}

/// The error for a `spec_type` that differs from the code of `spec_id`. The service would use the number (service API,
/// POST /api/instance/create, rule 2), and the instance's code would always differ from the configuration.
pub(super) fn disagreement(wanted: &Instance, spec_id: i64, its_code: Option<&str>) -> Option<Diagnostic> {
    let (code, its_code) = (wanted.spec_type.as_str()?, its_code?);
    (code != its_code).then(|| {
        Diagnostic::error(
            "spec_id and spec_type disagree",
            format!(
                "Specification {spec_id} is {its_code:?}, and spec_type is {code:?}. spec_id wins, so the instance \
                 would have {its_code:?}. Remove one of the two, or correct it."
            ),
        )
        .at(Path::to("spec_type"))
    })
}

impl Findings {
    /// Finds the specification, and checks the create against its limits.
    pub(super) async fn check_spec(
        &mut self,
        planned: &Instance,
        config: &Instance,
        client: &ProviderClient,
        limits: &Context,
    ) {
        let Some(region) = planned.region.as_str() else { return };
        // If the configuration omits the number, it follows from the code; a number that is unknown so far takes
        // precedence over the code.
        let is_open = config.spec_id.is_unknown() || planned.spec_type.known().is_none();
        if planned.spec_id.known().is_none() && is_open {
            return;
        }
        let specs = match client.api.specs().snapshot(region, limits).await {
            Ok(specs) => specs,
            Err(error) => {
                self.spec_is_unanswered = true;
                return self.unanswered(&error, "check the specification", client);
            }
        };
        if specs.records.is_empty() && specs.complete {
            self.diagnostics.push(unknown_region(region, client, limits).await);
            return;
        }
        let attribute = if planned.spec_id.is_known() { "spec_id" } else { "spec_type" };
        let Some(spec) = select(&specs, planned) else {
            self.diagnostics.error_at(
                Path::to(attribute),
                "The specification does not exist",
                unknown_spec(&specs, planned, region),
            );
            return;
        };
        if let Some(disagreement) = disagreement(planned, spec.spec_id, spec.spec_type.as_deref()) {
            self.diagnostics.push(disagreement);
        }
        self.check_stock(planned, spec, attribute, &specs);
        if let (Some(wanted), Some(quota)) = (planned.data_disk_expand_size_gb.known(), spec.data_disk_expand_quota)
            && *wanted > quota
        {
            self.diagnostics.error_at(
                Path::to("data_disk_expand_size_gb"),
                "The data disk would be too large",
                format!("{} allows at most {quota} additional GB; {wanted} GB are requested.", name(spec)),
            );
        }
        self.spec = Some(spec.clone());
    }

    fn check_stock(&mut self, planned: &Instance, spec: &Spec, attribute: &str, specs: &Listing<WithJson<Spec>>) {
        let (Some(available), Some(wanted)) = (spec.max_gpu_count, planned.gpu_num.known()) else { return };
        if *wanted <= available {
            return;
        }
        let (path, summary, reason) = if available == 0 {
            (Path::to(attribute), "The specification is sold out", format!("{} has no stock now.", name(spec)))
        } else {
            let reason =
                format!("{} has at most {available} GPUs for one instance now, and gpu_num is {wanted}.", name(spec));
            (Path::to("gpu_num"), "Not enough GPUs", reason)
        };
        self.shortage = Some(Shortage { path, summary, reason, alternatives: alternatives(specs, planned) });
    }

    /// Finds the image, and checks whether it can be used at all.
    pub(super) async fn find_image(
        &mut self,
        planned: &Instance,
        client: &ProviderClient,
        limits: &Context,
    ) -> Option<Image> {
        let image = images::wanted(
            planned.image_id.known().copied(),
            planned.image_type.as_str(),
            planned.image.as_str().filter(|_| planned.image_id.is_null() || planned.image_id.is_unknown()),
        )?;
        let path = Path::to(image.attribute());
        match images::look_up(image, client, limits).await {
            Err(error) => {
                self.unanswered(&error, "check the image", client);
                None
            }
            Ok(images::ListedImage { cuda, region, fault }) => {
                // The region is checked even if the image cannot be used.
                let cuda = cuda.filter(|_| fault.is_none());
                if let Some(fault) = fault {
                    self.diagnostics.error_at(path.clone(), "The image cannot be used", fault);
                }
                Some(Image { path, cuda, region })
            }
        }
    }

    /// Checks the image against the region and the specification. A wrong region rules out a candidate; without
    /// candidates it is a warning, because the service may accept it.
    pub(super) fn hold_image(&mut self, image: &Image, planned: &Instance) {
        let elsewhere = image.region.as_deref().zip(planned.region.as_str()).filter(|(own, region)| own != region);
        if let Some((own, region)) = elsewhere {
            let fact = format!("The private image is in region {own}, and the instance in {region}.");
            let summary = "The image is in another region";
            if candidates::has_choice(planned) {
                self.diagnostics.error_at(image.path.clone(), summary, fact);
            } else {
                let detail = format!(
                    "{fact} Whether the service accepts this is not documented. If not, it refuses the instance \
                     (160019), and nothing is bought."
                );
                self.diagnostics.warning_at(image.path.clone(), summary, detail);
            }
        }
        let highest = self.spec.as_ref().and_then(|spec| spec.highest_cuda.as_deref()).and_then(images::version);
        if let (Some(needed), Some(highest)) = (&image.cuda, highest)
            && needed.version > highest
        {
            self.newer_cuda(image.path.clone(), needed, &highest);
        }
    }

    /// A CUDA version in a label is certain, so it is an error; one in a name is a guess, so it is a warning.
    fn newer_cuda(&mut self, path: Path, needed: &images::Cuda, highest: &[u64]) {
        let text = |version: &[u64]| version.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
        let (needs, supports) = (text(&needed.version), text(highest));
        let spec = self.spec.as_deref().map(name).unwrap_or_default();
        if needed.is_labelled {
            let detail = format!(
                "The image's labels require CUDA {needs}, and {spec} supports at most {supports}. Choose an image for \
                 CUDA {supports} or older, or a specification whose highest_cuda is at least {needs}."
            );
            self.diagnostics.error_at(path, "The image needs a newer CUDA", detail);
        } else {
            let detail = format!(
                "The image's name suggests CUDA {needs}, and {spec} supports at most {supports}. If the image does \
                 need it, the service refuses the instance (160032), and nothing is bought."
            );
            self.diagnostics.warning_at(path, "The image may need a newer CUDA", detail);
        }
    }

    async fn check_existing_disks(
        &mut self,
        planned: &Instance,
        replaced: Option<&str>,
        client: &ProviderClient,
        limits: &Context,
    ) {
        if planned.exist_disks.elements().next().is_none() {
            return;
        }
        let listing = match client.api.cloud_disks().snapshot(limits).await {
            Ok(listing) => listing,
            Err(error) => return self.unanswered(&error, "check the cloud disks", client),
        };
        for (index, disk) in planned.exist_disks.elements() {
            let Some(id) = disk.disk_id.known() else { continue };
            let path = Path::to("exist_disks").index(index).attribute("disk_id");
            match listing.find(id) {
                Some(disk) => self.check_disk(disk, replaced, path),
                None if listing.complete => self.diagnostics.error_at(
                    path,
                    "The cloud disk cannot be mounted",
                    format!(
                        "Cloud disk {id} does not exist in this account. If it is a placeholder, as from Terragrunt's \
                         mock_outputs, turn the checks of a plan off with DAMODEL_PREFLIGHT=false."
                    ),
                ),
                None => {}
            }
        }
    }

    /// Checks the status of a disk. A disk that is mounted in another instance may be free during the apply.
    fn check_disk(&mut self, disk: &CloudDisk, replaced: Option<&str>, path: Path) {
        let name = format!("Disk {} ({})", disk.id, disk.name.as_deref().unwrap_or_default());
        match disk.status {
            // The plan of a create does not have the state of the replaced instance.
            Some(MOUNTING | MOUNTED) if replaced.is_some_and(|uid| goes_with(uid, disk, None)) => {
                self.diagnostics.error_at(
                    path,
                    "The cloud disk is released with the replaced instance",
                    format!(
                        "{name} is released with the replaced instance (release_with_instance) and cannot be mounted \
                         in the new one. Replace the disk too: terraform apply -replace=<its address>."
                    ),
                );
            }
            Some(MOUNTING | MOUNTED)
                if disk.multiple_mounting != Some(true) && !replaced.is_some_and(|uid| is_bound(disk, uid)) =>
            {
                let holders: Vec<String> =
                    disk.binding_instances.iter().chain(&disk.binding_clusters).map(Value::to_string).collect();
                self.diagnostics.warning_at(
                    path,
                    "The cloud disk is mounted",
                    format!(
                        "{name} is mounted in {}, and only one instance can mount it. Unless it is unmounted first, \
                         the service refuses the instance (180007), and nothing is bought.",
                        if holders.is_empty() { "another instance".to_owned() } else { holders.join(", ") }
                    ),
                );
            }
            Some(status @ (RELEASING | RELEASED | IN_ARREARS)) => self.diagnostics.error_at(
                path,
                "The cloud disk cannot be mounted",
                format!("{name}: status is {:?}, expected \"available\".", disk_status(status)),
            ),
            _ => {}
        }
    }

    async fn check_new_disks(&mut self, planned: &Instance, client: &ProviderClient, limits: &Context) {
        if planned.new_disks.elements().next().is_none() {
            return;
        }
        let specs = match client.api.cloud_disks().specs(&CloudDiskSpecFilter::default(), limits).await {
            Ok(specs) => specs,
            Err(error) => return self.unanswered(&error, "check the sizes of the new disks", client),
        };
        for (index, disk) in planned.new_disks.elements() {
            let (Some(id), Some(size)) = (disk.spec_id.known(), disk.size_gb.known()) else { continue };
            let path = Path::to("new_disks").index(index);
            let refusal = disk_sizes::check(*size, *id, &specs, |name| path.attribute(name));
            self.diagnostics.extend(refusal.map(Into::into).unwrap_or_default());
        }
    }

    /// Reports a check that failed for lack of an answer.
    fn unanswered(&mut self, error: &Error, check: &str, client: &ProviderClient) {
        let now = "The plan continues without this check.".to_owned();
        self.diagnostics.extend(Failure { error, tried: check.to_owned(), now }.of_a_check(client));
    }
}

/// Checks the disks without the service.
pub(super) fn check_disks(config: &Instance, diagnostics: &mut Diagnostics) {
    let mut named = BTreeSet::new();
    for (index, disk) in config.exist_disks.elements() {
        let Some(id) = disk.disk_id.known() else { continue };
        if !named.insert(id) {
            diagnostics.error_at(
                Path::to("exist_disks").index(index).attribute("disk_id"),
                "A cloud disk is listed twice",
                format!("Disk {id} is listed twice, but an instance mounts a disk only once."),
            );
        }
    }
    let count = |disks: Option<usize>| disks.unwrap_or_default();
    let existing = count(config.exist_disks.known().map(Vec::len));
    let new = count(config.new_disks.known().map(Vec::len));
    if existing + new > disks::MOST {
        let attribute = if new == 0 { "exist_disks" } else { "new_disks" };
        diagnostics.error_at(
            Path::to(attribute),
            "Too many cloud disks",
            format!(
                "An instance can have at most {} cloud disks; {existing} existing and {new} new ones are set.",
                disks::MOST
            ),
        );
    }
}

/// The text for a specification that does not exist: the wrong value, the most similar code, and the alternatives.
fn unknown_spec(specs: &Listing<WithJson<Spec>>, planned: &Instance, region: &str) -> String {
    let (wanted, nearest) = match (planned.spec_id.known(), planned.spec_type.as_str()) {
        (None, Some(code)) => {
            let codes = specs.records.iter().filter_map(|spec| spec.spec_type.as_deref());
            (format!("spec_type {code:?}"), words::the_nearest(code, codes))
        }
        (id, _) => (format!("spec_id {}", id.copied().unwrap_or_default()), String::new()),
    };
    format!("{wanted} does not exist in region {region}.{nearest}{}", alternatives(specs, planned))
}

/// The specifications that could be bought without a list of candidates, as sentences; empty without an answer.
pub(super) async fn available(planned: &Instance, client: &ProviderClient, limits: &Context) -> String {
    let Some(region) = planned.region.as_str().or(client.region.as_deref()) else { return String::new() };
    let specs = client.api.specs().snapshot(region, limits).await;
    let listed = specs.map(|specs| alternatives(&specs, planned));
    listed.map(|listed| format!(" The instance's region is {region}.{listed}")).unwrap_or_default()
}

fn alternatives(specs: &Listing<WithJson<Spec>>, planned: &Instance) -> String {
    if planned.candidates.elements().next().is_some() {
        return String::new();
    }
    let wanted = planned.gpu_num.known().copied().unwrap_or(1);
    let mut fitting: Vec<&WithJson<Spec>> =
        specs.records.iter().filter(|spec| spec.max_gpu_count.is_some_and(|count| count >= wanted)).collect();
    fitting.sort_by(|a, b| a.hourly_price.cmp(&b.hourly_price));
    let listed: Vec<String> = fitting.iter().take(ALTERNATIVES).map(|spec| name(spec)).collect();
    let gpus = if wanted == 1 { "1 GPU".to_owned() } else { format!("{wanted} GPUs") };
    if listed.is_empty() {
        format!(" No specification of this region has {gpus} now.")
    } else {
        format!(" Available now with {gpus}: {}.", listed.join("; "))
    }
}

fn name(spec: &Spec) -> String {
    let kind = spec.capacity_type.as_deref().unwrap_or("unknown capacity");
    let mut facts = vec![spec.gpu_name.clone().unwrap_or_else(|| "unknown GPU".to_owned()), kind.to_owned()];
    facts.extend(spec.hourly_price.as_ref().map(|price| format!("{} an hour", price.normalized())));
    let (id, facts) = (spec.spec_id, facts.join(", "));
    match &spec.spec_type {
        Some(code) => format!("{code} (spec_id {id}, {facts})"),
        None => format!("spec_id {id} ({facts})"),
    }
}
