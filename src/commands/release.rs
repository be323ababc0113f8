//! `terraform-provider-damodel release`: releases an instance, a cloud disk or a private image by its name.

use std::{
    fs,
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Failure, ServiceArguments, Surroundings,
    account::{
        PATIENCE,
        expired::{Judged, LONGEST, named},
        holders::Audit,
        inventory::{BilledObject, Inventory},
        read_states,
        released::{exit_code, release_all, words},
        states::{self, AuditedState, distinct},
    },
    age, aligned,
    service::path_or_nothing,
    terraform::{Cli, CliError},
    wrong_usage,
};
use crate::{
    api::{Client, Context, InstanceUid, ObjectKind, Presence},
    plugin::with_causes,
    provider::{Environment, database_id_hint, words::release_target},
    review::visible,
};

/// Releases instances, cloud disks and private images of the account, also those that no state has.
///
/// Without --yes it only shows what they are, their age and price, their holders, and what their release deletes. The
/// release of an instance deletes the system disk, the data disk and the cloud disks with release_with_instance. An
/// object is kept if it or such a cloud disk is protected in a state, and if it is prepaid, mounted, in two states, or
/// in a state file that another process has locked. The lock of a remote state is not visible: run this when no apply
/// can run.
///
/// Exit codes: 0 each object was released; 3 an object was left; 1 an object is not in the account or could not be
/// released, or the account or the folder's state could not be read completely; 2 wrong usage, or a state of --state
/// cannot be read.
#[derive(Clone, Debug, Parser)]
#[command(name = "release")]
pub struct Arguments {
    /// The UID of an instance, or the id or UID of a cloud disk or private image: disk:17 or image:17 if both have it.
    #[arg(value_name = "UID|ID", required = true)]
    pub targets: Vec<String>,
    /// A state that may hold the objects; `-` reads it from standard input. May be repeated. Default: that of the
    /// current folder.
    #[arg(long, value_name = "FILE|-")]
    pub state: Vec<PathBuf>,
    /// A pending directory of the provider. May be repeated.
    #[arg(long, env = "DAMODEL_PENDING_DIR", value_name = "DIR", value_parser = path_or_nothing())]
    pub pending_dir: Vec<PathBuf>,
    /// Releases the objects, and waits until they are released.
    #[arg(long)]
    pub yes: bool,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

/// Shows the objects, and releases them with --yes.
///
/// # Errors
///
/// If the account or a state cannot be read completely, they do not belong together, or the list cannot be written.
pub async fn run(arguments: Arguments, surroundings: Surroundings) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process();
    let folder = if arguments.state.is_empty() { of_folder(&environment, &surroundings).await? } else { None };
    release(&arguments, folder, &environment, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()).await
}

async fn release(
    arguments: &Arguments,
    folder: Option<AuditedState>,
    environment: &Environment,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let named_states = read_states(&arguments.state, environment, input).and_then(distinct);
    let states = match named_states {
        Ok(states) => states.into_iter().chain(folder).collect::<Vec<_>>(),
        Err(failure) => return wrong_usage(&failure, told),
    };
    let notes = states::read(&arguments.pending_dir, environment)?;
    let client = Client::new(arguments.service.settings(environment)?);
    let context = Context::within(PATIENCE, &CancellationToken::new());
    let account = Inventory::read(&client, &context).await?;
    let audit = Audit::new(&account, &states, &notes, Timestamp::now().as_second())?;
    let (mut listed, mut unknown): (Vec<&BilledObject>, Vec<&str>) = (Vec::new(), Vec::new());
    for target in &arguments.targets {
        match find(target, &account).as_slice() {
            [] => unknown.push(target),
            [one] if listed.iter().any(|known| known.target() == one.target()) => {}
            [one] => listed.push(one),
            [one, other, ..] => {
                let id = visible(target, LONGEST);
                let failure = format!("{id} names several objects: give {} or {}", one.target(), other.target());
                return wrong_usage(&Failure::new(failure), told);
            }
        }
    }
    let mut objects = Vec::new();
    for billed in &listed {
        objects.push(named(billed, attributes(billed, &client, &context).await?, &account, &states));
    }
    release_all(&mut objects, arguments.yes, &states, &client, told).await?;
    let mut rows = vec![TITLES.map(str::to_owned)];
    for (billed, object) in listed.iter().zip(&objects) {
        let holder = match audit.objects.iter().find(|held| held.billed.target() == target_of(object)) {
            _ if !object.holders.is_empty() => object.addresses(),
            Some(held) if held.source.is_some() => held.held_by(),
            _ if states.is_empty() => "unknown: no state was looked at".to_owned(),
            _ => "unmanaged".to_owned(),
        };
        rows.push(row(billed, object, holder));
    }
    let text = if objects.is_empty() { String::new() } else { aligned(&rows, &NUMBERS) };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?;
    let code = exit_code(&objects, told)?;
    for target in &unknown {
        let hint = database_id_hint(target).map(|hint| format!(" ({hint})")).unwrap_or_default();
        writeln!(told, "failed: {}: no object of the account has this UID or id{hint}", visible(target, LONGEST))
            .map_err(Failure::terminal)?;
    }
    Ok(ExitCode::from(if unknown.is_empty() { code } else { 1 }))
}

/// The objects of the account that have this id or UID; `disk:` and `image:` name a kind.
fn find<'a>(target: &str, account: &'a Inventory) -> Vec<&'a BilledObject> {
    let (kind, id) = match target.split_once(':') {
        Some(("disk", id)) => (Some(ObjectKind::CloudDisk), id),
        Some(("image", id)) => (Some(ObjectKind::PrivateImage), id),
        _ => (None, target),
    };
    let named = account.billed.iter().chain(&account.released).filter(|object| {
        kind.is_none_or(|kind| kind == object.kind) && (object.id == id || object.uid.as_deref() == Some(id))
    });
    named.collect()
}

/// The state of the current folder, as `ssh` finds it; `None` without Terraform, OpenTofu or a state.
async fn of_folder(environment: &Environment, surroundings: &Surroundings) -> Result<Option<AuditedState>, Failure> {
    const HINT: &str = "cannot read the state of this folder (--state names another one)";
    let failed = |error: CliError| Failure::new(format!("{HINT}: {}", with_causes(&error)));
    let cli = match Cli::of_user(None, surroundings).await {
        Ok(cli) => cli,
        Err(CliError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let document = cli.state(environment.directory()).await.map_err(failed)?;
    if document.trim().is_empty() {
        return Ok(None);
    }
    let read = |document: &[u8]| AuditedState::read("the state of this folder", document);
    let mut state = read(document.as_bytes()).map_err(|error| Failure::because(HINT, error))?;
    if let Some(file) = &mut state.file {
        // The lock of a local state can be seen.
        let workspaces = fs::read_dir(environment.directory().join("terraform.tfstate.d")).into_iter().flatten();
        let folders = workspaces.filter_map(|entry| Some(entry.ok()?.path()));
        let paths = folders.chain([environment.directory().to_owned()]).map(|folder| folder.join("terraform.tfstate"));
        let own = paths.filter(|path| {
            let other = fs::read(path).ok().and_then(|content| read(&content).ok()?.file);
            other.is_some_and(|other| !other.lineage.is_empty() && other.lineage == file.lineage)
        });
        file.paths = own.collect();
    }
    Ok(Some(state))
}

/// The attributes of an instance that decide which disks are deleted with it, as the service shows them.
async fn attributes(billed: &BilledObject, client: &Client, context: &Context) -> Result<Option<Value>, Failure> {
    if billed.kind != ObjectKind::Instance {
        return Ok(None);
    }
    let uid = InstanceUid::new(&*billed.id);
    let shown = client.instances().look(&uid, None, context).await;
    match shown.map_err(|error| Failure::because(format!("cannot read instance {uid}"), error))? {
        Presence::Present(detail) => Ok(Some(json!({
            "id": billed.id,
            "reported": {
                "sys_disk_size_gb": detail.more.sys_disk_size,
                "data_disk_size_gb": detail.more.data_disk_size,
                "cloud_disks": detail.more.cloud_disks.iter().map(Value::to_string).collect::<Vec<_>>(),
            },
        }))),
        _ => Ok(None),
    }
}

fn target_of(object: &Judged) -> String {
    release_target(object.kind, &object.id)
}

const TITLES: [&str; 8] = ["TARGET", "NAME", "STATUS", "AGE", "HOURLY", "DELETES", "RESULT", "HELD BY"];

/// The columns of numbers.
const NUMBERS: [usize; 1] = [4];

fn row(billed: &BilledObject, object: &Judged, holder: String) -> [String; 8] {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let shown = |text: &Option<String>| known(text.as_deref().map(|text| visible(text, LONGEST)));
    let deletes = match object.kind {
        ObjectKind::Instance => object.deletes.iter().map(|item| visible(&item.to_string(), LONGEST)).collect(),
        kind => vec![format!("the {}", kind.noun())],
    };
    [
        visible(&billed.target(), LONGEST),
        shown(&billed.name),
        shown(&billed.status),
        known(object.age_seconds.map(age)),
        known(object.hourly.as_ref().map(|price| price.with_digits(4))),
        deletes.join(", "),
        words(&object.verdict).0.to_owned(),
        holder,
    ]
}
