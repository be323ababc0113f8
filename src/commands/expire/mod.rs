//! `terraform-provider-damodel expire`: releases the instances that are older than the max_age in their state.

mod lock;

use std::{
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Parser;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::lock::LockedFile;
use super::{
    Failure, ListFormat, ServiceArguments,
    account::{
        PATIENCE,
        expired::{AgeVerdict, AgedInstance, ShownInstance, TwoClocks, deletes, judge, judged},
        inventory::Inventory,
        read_states,
        states::{AuditedState, distinct},
    },
    age, aligned, wrong_usage,
};
use crate::{
    api::{self, Client, Code, Context, Instance, InstanceUid, Presence, Sighting},
    plugin::with_causes,
    provider::Environment,
    review::visible,
};

/// The exit code for instances that were left.
const LEFT: u8 = 3;

/// The time limit for all accepted releases together.
const UNTIL_RELEASED: Duration = Duration::from_secs(15 * 60);

/// The time limit for the last look at an instance and its accepted release, during which its state is locked.
const RELEASE: Duration = Duration::from_secs(2 * 60);

/// The version of the JSON format. A new field does not change it.
const FORMAT: &str = "1.0";

/// The longest text in a cell, in characters.
const LONGEST: usize = 100;

/// Releases the instances that are older than the max_age in their state.
///
/// Without --yes it only lists them. A release deletes the system disk, the data disk and the cloud disks with
/// release_with_instance. An instance must be too old by the service's clock and by this computer's clock. It is kept
/// if it or such a cloud disk of the state is protected, and if it is prepaid, in two states, or in a state file that
/// another process has locked. The lock of a remote
/// state is not visible: run this when no apply can run.
///
/// Exit codes: 0 each older instance was released; 3 an older instance was left; 1 an instance could not be judged or
/// released, or the account could not be read completely; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "expire")]
pub struct Arguments {
    /// State files; `-` reads the output of `terraform state pull` or `tofu state pull` from standard input.
    #[arg(value_name = "STATE|-", required = true)]
    pub states: Vec<PathBuf>,
    /// Releases the instances, and waits until they are Released.
    #[arg(long)]
    pub yes: bool,
    /// The form of the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Table, value_name = "FORMAT")]
    pub format: ListFormat,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

/// Lists the instances that are older than their max_age, and releases them with --yes.
///
/// # Errors
///
/// If the account cannot be read completely, or the list cannot be written.
pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process();
    expire(&arguments, &environment, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()).await
}

async fn expire(
    arguments: &Arguments,
    environment: &Environment,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let states = match read_states(&arguments.states, environment, input).and_then(distinct) {
        Ok(states) => states,
        Err(failure) => return wrong_usage(&failure, told),
    };
    let client = Client::new(arguments.service.settings(environment)?);
    let account = Inventory::read(&client, &Context::within(PATIENCE, &CancellationToken::new())).await?;
    let mut instances = judged(&account, &states, Timestamp::now().as_second());
    for instance in instances.iter_mut().filter(|instance| instance.verdict == AgeVerdict::Over) {
        if arguments.yes {
            writeln!(told, "releasing {}", instance.title()).map_err(Failure::terminal)?;
            instance.verdict = release(instance, &states, &client).await;
        } else {
            instance.verdict = AgeVerdict::Left("--yes is not set".to_owned());
        }
    }
    let context = Context::within(UNTIL_RELEASED, &CancellationToken::new());
    let released = instances.iter_mut().filter(|it| arguments.yes && it.verdict == AgeVerdict::Releasing);
    join_all(released.map(|instance| async {
        instance.verdict = until_released(&InstanceUid::new(&*instance.uid), &client, &context).await;
    }))
    .await;
    let text = match arguments.format {
        ListFormat::Json => to_json(&instances),
        ListFormat::Table => table(&instances),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?;
    let mut code = 0;
    for instance in &instances {
        let (word, reason) = words(&instance.verdict);
        let Some(reason) = reason else { continue };
        writeln!(told, "{word}: {}: {reason}", instance.title()).map_err(Failure::terminal)?;
        match instance.verdict {
            AgeVerdict::Left(_) if code == 0 => code = LEFT,
            AgeVerdict::Unjudged(_) => code = 1,
            _ => {}
        }
    }
    Ok(ExitCode::from(code))
}

/// Releases an instance whose age is over, after a last look at its state, the service and its disks. The state stays
/// locked until the service has accepted the release.
async fn release(instance: &AgedInstance, states: &[AuditedState], client: &Client) -> AgeVerdict {
    let locked = match lock(instance, states) {
        Ok(locked) => locked,
        Err(verdict) => return verdict,
    };
    let context = Context::within(RELEASE, &CancellationToken::new());
    let (instances, uid) = (client.instances(), InstanceUid::new(&*instance.uid));
    let failed = |what: &str, error: &api::Error| AgeVerdict::Unjudged(format!("{what}: {}", with_causes(error)));
    let verdict = match instances.look(&uid, None, &context).await {
        Ok(Presence::Present(detail)) => {
            let clocks = TwoClocks { service: client.last_date(), computer: Timestamp::now().as_second() };
            judge(&instance.terms, ShownInstance::seen(&detail.instance), clocks)
        }
        Ok(Presence::Released) => AgeVerdict::Released,
        Ok(Presence::Absent) => AgeVerdict::Unjudged("no longer in the account".to_owned()),
        Ok(Presence::Unproved { reason }) => AgeVerdict::Unjudged(reason.to_owned()),
        Err(error) => failed("the second read failed", &error),
    };
    if verdict != AgeVerdict::Over {
        return verdict;
    }
    let mut account = Inventory::default();
    if let Err(failure) = account.list_disks(client, &context).await {
        return AgeVerdict::Unjudged(with_causes(&failure));
    }
    let state = instance.states.first().and_then(|index| states.get(*index));
    let now = state.map_or_else(Vec::new, |state| deletes(&instance.uid, state, &account));
    if let Some(item) = now.iter().find(|item| !instance.deletes.contains(item)) {
        let reason = format!("its release deletes {item} now, which is not in the list: run the command again");
        return AgeVerdict::Left(visible(&reason, 3 * LONGEST));
    }
    let sent = instances.release(&uid, &context).await;
    drop(locked);
    match sent {
        Ok(()) => AgeVerdict::Releasing,
        Err(error) if error.code() == Some(Code::InstanceNotExistOrAlreadyReleased) => AgeVerdict::Releasing,
        Err(error) => failed("the release failed", &error),
    }
}

/// Locks the files of the instance's state, which must have the content that was judged.
fn lock(instance: &AgedInstance, states: &[AuditedState]) -> Result<Vec<LockedFile>, AgeVerdict> {
    let files = instance.states.iter().filter_map(|index| states.get(*index)?.file.as_ref());
    let paths = files.flat_map(|file| file.paths.iter().map(move |path| (path, &file.digest)));
    let mut all = Vec::new();
    for (path, digest) in paths {
        let place = path.display();
        let failed = |error: io::Error| AgeVerdict::Unjudged(format!("cannot lock {place}: {error}"));
        let Some(mut locked) = LockedFile::open(path).map_err(failed)? else {
            return Err(AgeVerdict::Left(format!("another process has locked {place}")));
        };
        let content = locked.read().map_err(failed)?;
        // It is kept also if it is not the one, because a handle that is closed ends the locks of all.
        all.push(locked);
        let now = AuditedState::read(&place.to_string(), &content).ok().and_then(|state| state.file);
        if now.is_none_or(|now| now.digest != *digest) {
            return Err(AgeVerdict::Unjudged(format!("{place} was changed meanwhile: run the command again")));
        }
    }
    Ok(all)
}

/// Waits until an instance is Released.
async fn until_released(uid: &InstanceUid, client: &Client, context: &Context) -> AgeVerdict {
    let instances = client.instances();
    let has_ended = |seen: &Sighting<Instance>| seen.record().is_none_or(Instance::is_released);
    let unseen = |reason: &str| AgeVerdict::Unjudged(format!("the release is not confirmed: {reason}"));
    loop {
        match instances.wait(uid, context, has_ended).await {
            Ok(Sighting::Present(_)) => return AgeVerdict::Released,
            Ok(Sighting::Missing) => {}
            Err(error) => return unseen(&with_causes(&error)),
        }
        match instances.look(uid, None, context).await {
            Ok(Presence::Released) => return AgeVerdict::Released,
            Ok(Presence::Absent) => return unseen("no longer in the account"),
            Ok(_) => tracing::debug!(%uid, "not released yet"),
            Err(error) => return unseen(&with_causes(&error)),
        }
    }
}

/// The word for a verdict, and its reason.
fn words(verdict: &AgeVerdict) -> (&'static str, Option<&str>) {
    match verdict {
        AgeVerdict::Gone => ("gone", None),
        AgeVerdict::Left(reason) => ("left", Some(reason)),
        AgeVerdict::Over => ("over", None),
        AgeVerdict::Released => ("released", None),
        AgeVerdict::Releasing => ("releasing", None),
        AgeVerdict::Unjudged(reason) => ("failed", Some(reason)),
        AgeVerdict::Young => ("young", None),
    }
}

/// The disks that the release deletes.
fn disks(instance: &AgedInstance) -> Vec<String> {
    instance.deletes.iter().map(ToString::to_string).collect()
}

/// The list for programs.
fn to_json(instances: &[AgedInstance]) -> String {
    let instance = |instance: &AgedInstance| {
        let (word, reason) = words(&instance.verdict);
        json!({
            "id": instance.uid,
            "holders": instance.holders,
            "age_seconds": instance.age_seconds,
            "max_age": instance.max_age,
            "hourly": instance.hourly,
            "deletes": disks(instance),
            "result": word,
            "reason": reason,
        })
    };
    let instances: Vec<Value> = instances.iter().map(instance).collect();
    format!("{:#}\n", json!({ "format_version": FORMAT, "instances": instances }))
}

const TITLES: [&str; 7] = ["ID", "AGE", "MAX AGE", "HOURLY", "DELETES", "RESULT", "HELD BY"];

/// The columns of numbers.
const NUMBERS: [usize; 1] = [3];

/// The table for a terminal, without instances whose age is not over.
fn table(instances: &[AgedInstance]) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |instance: &AgedInstance| {
        [
            visible(&instance.uid, LONGEST),
            known(instance.age_seconds.map(age)),
            visible(&instance.max_age, LONGEST),
            known(instance.hourly.as_ref().map(|price| price.with_digits(4))),
            disks(instance).iter().map(|disk| visible(disk, LONGEST)).collect::<Vec<_>>().join(", "),
            words(&instance.verdict).0.to_owned(),
            instance.addresses(),
        ]
    };
    let listed: Vec<&AgedInstance> =
        instances.iter().filter(|instance| instance.verdict != AgeVerdict::Young).collect();
    let noun = if instances.len() == 1 { "instance has" } else { "instances have" };
    let summary = format!("{} {noun} a max_age; {} listed.\n", instances.len(), listed.len());
    if listed.is_empty() {
        return summary;
    }
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(listed.into_iter().map(row));
    format!("{}\n{summary}", aligned(&rows, &NUMBERS))
}
