//! `terraform-provider-damodel expire`: releases the instances that are older than the max_age in their state.

use std::{
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::Parser;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Failure, ListFormat, ServiceArguments,
    account::{
        PATIENCE,
        expired::{Judged, LONGEST, Verdict, judged},
        inventory::Inventory,
        read_states,
        released::{exit_code, release_all, words},
        states::distinct,
    },
    age, aligned, wrong_usage,
};
use crate::{
    api::{Client, Context},
    provider::Environment,
    review::visible,
};

/// The version of the JSON format. A new field does not change it.
const FORMAT: &str = "1.0";

/// Releases the instances that are older than the max_age in their state.
///
/// Without --yes it only lists them. A release deletes the system disk, the data disk and the cloud disks with
/// release_with_instance. An instance must be too old by the service's clock and by this computer's clock. It is kept
/// if it or such a cloud disk of a state is protected, and if it is prepaid, in two states, or in a state file that
/// another process has locked. The lock of a remote state is not visible: run this when no apply can run.
///
/// Exit codes: 0 each older instance was released; 3 an older instance was left; 1 an instance could not be judged or
/// released, or the account could not be read completely; 2 wrong usage, or a state cannot be read.
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
    release_all(&mut instances, arguments.yes, &states, &client, told).await?;
    let text = match arguments.format {
        ListFormat::Json => to_json(&instances),
        ListFormat::Table => table(&instances),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?;
    Ok(ExitCode::from(exit_code(&instances, told)?))
}

/// The disks that the release deletes.
fn disks(instance: &Judged) -> Vec<String> {
    instance.deletes.iter().map(ToString::to_string).collect()
}

/// The list for programs.
fn to_json(instances: &[Judged]) -> String {
    let instances = instances.iter().map(|instance| {
        let (word, reason) = words(&instance.verdict);
        json!({
            "id": instance.id,
            "holders": instance.holders,
            "age_seconds": instance.age_seconds,
            "max_age": instance.max_age,
            "hourly": instance.hourly,
            "deletes": disks(instance),
            "result": word,
            "reason": reason,
        })
    });
    let instances: Vec<Value> = instances.collect();
    format!("{:#}\n", json!({ "format_version": FORMAT, "instances": instances }))
}

const TITLES: [&str; 7] = ["ID", "AGE", "MAX AGE", "HOURLY", "DELETES", "RESULT", "HELD BY"];

/// The columns of numbers.
const NUMBERS: [usize; 1] = [3];

/// The table for a terminal, without instances whose age is not over.
fn table(instances: &[Judged]) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let listed: Vec<&Judged> = instances.iter().filter(|instance| instance.verdict != Verdict::Young).collect();
    let noun = if instances.len() == 1 { "instance has" } else { "instances have" };
    let summary = format!("{} {noun} a max_age; {} listed.\n", instances.len(), listed.len());
    if listed.is_empty() {
        return summary;
    }
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(listed.into_iter().map(|instance| {
        [
            visible(&instance.id, LONGEST),
            known(instance.age_seconds.map(age)),
            visible(instance.max_age.as_deref().unwrap_or_default(), LONGEST),
            known(instance.hourly.as_ref().map(|price| price.with_digits(4))),
            disks(instance).iter().map(|disk| visible(disk, LONGEST)).collect::<Vec<_>>().join(", "),
            words(&instance.verdict).0.to_owned(),
            instance.addresses(),
        ]
    }));
    format!("{}\n{summary}", aligned(&rows, &NUMBERS))
}
