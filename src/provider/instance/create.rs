use std::time::Duration;

use tokio::time::Instant;

use super::{disks::is_on_its_way, model::Instance, price, witness_key};
use crate::{
    api::{
        self, Accepted, CreateInstance, CreateOptions, CreatedInstance, ImageSelector, InstanceStatus, Kind, Login,
        Origin, Payment, Sighting, SpecSelector,
    },
    framework::{Attr, Context, Create, Diagnostic, Diagnostics, Outcome, Path, timeouts::parse_duration},
    provider::{
        Client,
        client::limits,
        creation::{Creation, Noun},
        errors::Failure,
        presence,
        protection::Protected as _,
    },
};

const INSTANCE: Noun = Noun { kind: Kind::Instance, word: "instance", type_name: "damodel_instance" };

/// How long the rename of a machine, and the look at it, may take when the wait has used up the create timeout.
const LAST_LOOK: Duration = Duration::from_secs(5);

/// Creates an instance: sent once, waited for until it is Running, and given its name.
///
/// After the acceptance the state holds the instance on every path. Only Failed and a wait that ran out are errors, which make
/// the core taint it; all else is a warning (service API, POST /api/instance/create; plugin protocol, ApplyResourceChange).
pub(super) async fn create(change: Create<Instance>, context: &Context<Client>) -> Outcome<Instance> {
    let Create { config, mut planned, mut private } = change;
    let (client, limits) = (context.client.as_ref(), limits(context));
    if let Err(diagnostic) = find_disks(&mut planned, client, &limits).await {
        return Outcome::absent().with(diagnostic);
    }
    price::forget(&mut private);
    let reconfirmed = price::Reconfirmed::default();
    let still_wanted = reconfirmed.asked(&planned, &context.client);
    match price::confirm(&planned, client, &limits).await {
        Ok(cost) => planned.estimated_cost = cost,
        Err(diagnostic) => return Outcome::absent().with(diagnostic),
    }
    let request = match request(&planned, client) {
        Ok(request) => request,
        Err(diagnostic) => return Outcome::absent().with(diagnostic),
    };
    let key = client.create_key(&format!("damodel_instance {}", request.wanted()));
    let mut diagnostics = look_alikes(&planned, &key, client, &limits).await;
    let wait = planned.wait_for_capacity.as_str().and_then(parse_duration);
    let options = CreateOptions { still_wanted, ..CreateOptions::waiting_for_capacity(wait) };
    let accepted = client.api.instances().create(request, &key, &client.journal, options, &limits).await;
    diagnostics.extend(INSTANCE.never_seen(&key, client));
    match (&accepted, reconfirmed.last()) {
        (Ok(_), Some(Ok(cost))) => planned.estimated_cost = cost,
        (Err(_), Some(Err(diagnostic))) => return Outcome::absent().with(diagnostics).with(diagnostic),
        _ => {}
    }
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            let failure = INSTANCE.not_accepted(&error, &planned.title(), client);
            let is_set = |name: &str| is_set(&config, name);
            return Outcome::absent().with(diagnostics).with(failure.diagnostic(is_set));
        }
    };
    let limits = api::Context { deadline: accepted.deadline, ..limits };
    let mut creation =
        Creation { state: planned, private, diagnostics, client, limits, unheard: context.unheard.clone() };
    creation.follow(accepted).await;
    creation.outcome()
}

impl Creation<'_, Instance> {
    async fn follow(&mut self, accepted: Accepted<CreatedInstance>) {
        let uid = accepted.made.uid.clone();
        tracing::info!(instance.id = %uid, "accepted");
        self.state.id = uid.as_str().into();
        self.state.instance_id = accepted.made.instance_id.into();
        presence::made(&mut self.private, self.client, &self.limits).await;
        self.client.witness().saw(&witness_key(&uid));
        if accepted.origin == Origin::Adopted {
            self.diagnostics.push(INSTANCE.adopted(&self.state.title()));
        }
        self.wait(&accepted).await;
        self.rename(&accepted).await;
        self.complete(&accepted).await;
        INSTANCE.hand_over(accepted.entry, uid.as_str(), &self.unheard);
    }

    /// Gives the machine the name that was wanted instead of the one with the marker. As late as can be: until then the name is
    /// the one trace of a run that is killed and whose note is lost.
    async fn rename(&mut self, accepted: &Accepted<CreatedInstance>) {
        let Some(name) = accepted.rename_to.as_deref().filter(|_| !self.unheard.is_cancelled()) else { return };
        let limits = last_look(&self.limits);
        if let Err(error) = self.client.api.instances().rename(&accepted.made.uid, name, &limits).await {
            self.diagnostics.push(INSTANCE.not_renamed(&error, &self.state.title(), &accepted.sent_name));
        }
    }

    async fn wait(&mut self, accepted: &Accepted<CreatedInstance>) {
        if self.state.wait_for_running.known() == Some(&false) {
            return;
        }
        let is_settled = |seen: &Sighting<api::Instance>| {
            let status = seen.record().and_then(|record| record.status.as_ref());
            matches!(status, Some(InstanceStatus::Running | InstanceStatus::Failed | InstanceStatus::Released))
        };
        let uid = &accepted.made.uid;
        match self.client.api.instances().wait(uid, &self.limits, is_settled).await {
            Ok(Sighting::Present(record)) => {
                self.state.take_record(&record);
                if record.status != Some(InstanceStatus::Running) {
                    let status = record.status.map(|status| status.to_string()).unwrap_or_default();
                    self.diagnostics.push(failed(&self.state.title(), &status, accepted));
                }
            }
            Ok(Sighting::Missing) => {}
            Err(error) => {
                self.diagnostics.push(INSTANCE.wait_ended(&error, &self.state.title(), &accepted.ids));
            }
        }
    }

    /// Reads everything that the service reports; the name that was asked for stays, and a refresh shows if it differs.
    async fn complete(&mut self, accepted: &Accepted<CreatedInstance>) {
        let wanted = accepted.rename_to.clone();
        let limits = last_look(&self.limits);
        match self.client.api.instances().detail(&accepted.made.uid, &limits).await {
            Ok(detail) => {
                self.state.take_detail(&detail);
                self.state.complete_image(self.client, &limits).await;
            }
            Err(api::Error::Cancelled { .. }) => {}
            Err(error) => {
                let failure = Failure {
                    error: &error,
                    tried: format!("look at {} after its create", self.state.title()),
                    now: "The machine exists; the next refresh completes the state.".to_owned(),
                };
                self.diagnostics.push(failure.warning());
            }
        }
        if let Some(name) = wanted {
            self.state.name = Attr::Known(name);
        }
    }
}

/// The limits of a step, with some time left even when the wait has used it up.
fn last_look(limits: &api::Context) -> api::Context {
    api::Context { deadline: limits.deadline.max(Instant::now() + LAST_LOOK), ..limits.clone() }
}

/// The request that a planned state asks for. What is still unknown is left to the service.
fn request(planned: &Instance, client: &Client) -> Result<CreateInstance, Diagnostic> {
    let region = planned.region.known().cloned().or_else(|| client.region.clone());
    let region = region
        .ok_or_else(|| missing("region", "Set region here, or for all in the provider (or with DAMODEL_REGION)."))?;
    let spec = match (planned.spec_id.known(), planned.spec_type.known()) {
        (Some(id), _) => SpecSelector::Id(*id),
        (None, Some(code)) => SpecSelector::Type(code.clone()),
        (None, None) => return Err(missing("spec_id", "Set spec_id or spec_type.")),
    };
    let image = match (planned.image_id.known(), planned.image_type.as_str(), planned.image.known()) {
        (Some(id), Some("private"), _) => ImageSelector::Private(*id),
        (Some(id), Some(_), _) => ImageSelector::Public(*id),
        (_, _, Some(address)) => ImageSelector::Address(address.clone()),
        _ => return Err(missing("image", "Set image, or image_id and image_type.")),
    };
    let duration = planned.purchase_duration.known().copied().unwrap_or(1);
    let payment = match planned.payment_type.as_str() {
        Some("Daily") => Payment::Daily(duration),
        Some("Weekly") => Payment::Weekly(duration),
        Some("Monthly") => Payment::Monthly(duration),
        _ => Payment::Hourly,
    };
    let login = match planned.login_method.as_str() {
        Some("ssh_key") => Some(Login::SshKey {
            id: planned.ssh_pubkey_id.known().copied(),
            name: planned.ssh_pubkey_name.known().cloned(),
        }),
        Some(_) => Some(Login::Password),
        None => None,
    };
    Ok(CreateInstance {
        payment,
        data_disk_expand_size: planned.data_disk_expand_size_gb.known().copied().unwrap_or(0),
        data_disk_mount_path: planned.data_disk_mount_path.known().cloned(),
        name: planned.name.known().cloned(),
        hostname: planned.hostname.known().cloned(),
        login,
        external_ip: planned.external_ip.known().cloned(),
        auto_renew: planned.auto_renew.known().copied(),
        exist_disks: planned.exist_disks.elements().filter_map(|(_, disk)| disk.request()).collect(),
        new_disks: planned.new_disks.elements().filter_map(|(_, disk)| disk.request()).collect(),
        object_mounts: planned
            .object_mounts
            .elements()
            .filter_map(|(_, text)| serde_json::from_str(text).ok())
            .collect(),
        ..CreateInstance::new(region, spec, planned.gpu_num.known().copied().unwrap_or(1), image)
    })
}

/// Finds the uids of existing disks that the configuration names by number only, and waits for disks that are about to be available.
async fn find_disks(planned: &mut Instance, client: &Client, limits: &api::Context) -> Result<(), Diagnostic> {
    if planned.exist_disks.elements().next().is_none() {
        return Ok(());
    }
    let failed = |error: &api::Error| {
        let now = "Nothing was created.".to_owned();
        Failure { error, tried: "find the cloud disks to mount".to_owned(), now }.whole()
    };
    let cloud_disks = client.api.cloud_disks();
    let listing = cloud_disks.snapshot(limits).await.map_err(|error| failed(&error))?;
    for (index, disk) in planned.exist_disks.elements_mut() {
        disk.find_uid(&listing);
        let id = disk.disk_id.known().copied().unwrap_or_default();
        if disk.uid.known().is_none() {
            return Err(Diagnostic::error(
                "The cloud disk cannot be mounted",
                format!("There is no cloud disk with the id {id} in this account. Nothing was created."),
            )
            .at(Path::to("exist_disks").index(index).attribute("disk_id")));
        }
        if listing.find(&id).is_some_and(is_on_its_way) {
            let is_settled = |seen: &Sighting<api::CloudDisk>| !seen.record().is_some_and(is_on_its_way);
            cloud_disks.wait(id, limits, is_settled).await.map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

fn missing(attribute: &str, advice: &str) -> Diagnostic {
    Diagnostic::error("Missing required argument", format!("{advice} Nothing was created.")).at(Path::to(attribute))
}

/// Warns of machines whose names look as if an earlier run had made them and lost its notes.
async fn look_alikes(planned: &Instance, key: &str, client: &Client, limits: &api::Context) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let Some(name) = planned.name.as_str() else { return diagnostics };
    match client.instances_before(limits).await {
        Ok(listing) => {
            for instance in api::Instances::look_alikes(listing, name, &client.journal, key) {
                diagnostics.push(INSTANCE.look_alike(instance.uid.as_str(), instance.name.as_deref(), name));
            }
        }
        Err(error) => tracing::warn!(%error, "machines that an earlier run may have left could not be looked for"),
    }
    diagnostics
}

fn failed(title: &str, status: &str, accepted: &Accepted<CreatedInstance>) -> Diagnostic {
    Diagnostic::error(
        format!("{title} was created {status}"),
        format!(
            "The service accepted the create and then could not carry it out: the status is {status}. The state holds the machine, \
             tainted: the next apply releases it and tries again. For the service's support: instance UID {}{}.",
            accepted.made.uid, accepted.ids
        ),
    )
}

fn is_set(config: &Instance, name: &str) -> bool {
    match name {
        "auto_renew" => !config.auto_renew.is_null(),
        "data_disk_expand_size_gb" => !config.data_disk_expand_size_gb.is_null(),
        "data_disk_mount_path" => !config.data_disk_mount_path.is_null(),
        "exist_disks" => !config.exist_disks.is_null(),
        "external_ip" => !config.external_ip.is_null(),
        "gpu_num" => !config.gpu_num.is_null(),
        "hostname" => !config.hostname.is_null(),
        "image" => !config.image.is_null(),
        "image_id" => !config.image_id.is_null(),
        "image_type" => !config.image_type.is_null(),
        "login_method" => !config.login_method.is_null(),
        "name" => !config.name.is_null(),
        "new_disks" => !config.new_disks.is_null(),
        "object_mounts" => !config.object_mounts.is_null(),
        "payment_type" => !config.payment_type.is_null(),
        "purchase_duration" => !config.purchase_duration.is_null(),
        "region" => !config.region.is_null(),
        "spec_id" => !config.spec_id.is_null(),
        "spec_type" => !config.spec_type.is_null(),
        "ssh_pubkey_id" => !config.ssh_pubkey_id.is_null(),
        "ssh_pubkey_name" => !config.ssh_pubkey_name.is_null(),
        _ => false,
    }
}
