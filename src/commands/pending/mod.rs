//! `terraform-provider-damodel pending`: the pending records of creates that a run did not finish, and their outcomes.

mod fate;

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::Parser;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use self::fate::{AskedService, Fate};
use super::{
    Failure, ServiceArguments, age, aligned,
    service::{DATA_DIRECTORY, PendingFolder, path_or_nothing},
};
use crate::{
    api::{Client, Context},
    creation::{Journal, PendingCreate},
    provider::Environment,
    review::visible,
};

/// The time limit for all requests.
const PATIENCE: Duration = Duration::from_secs(120);

/// Lists unfinished creates of interrupted runs and their current status.
///
/// A pending record is written before an object is created, and removed when the state contains the object. The records
/// listed here were left by runs that ended early; the next apply resumes them. Run this command in the folder of the
/// configuration.
///
/// Exit codes: 0 the records were listed, or the record of --forget was removed; 1 the records or the service cannot be
/// read, or the record was not removed; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "pending")]
pub struct Arguments {
    /// The directory of the pending records. Default: damodel-pending in Terraform's data directory.
    #[arg(long, env = "DAMODEL_PENDING_DIR", value_name = "DIR", value_parser = path_or_nothing())]
    pub pending_dir: Option<PathBuf>,
    /// Terraform's data directory.
    #[arg(long, env = "TF_DATA_DIR", default_value = DATA_DIRECTORY, value_name = "DIR",
        value_parser = path_or_nothing())]
    pub data_dir: PathBuf,
    /// The service. Without an address and a token nothing is asked.
    #[command(flatten)]
    pub service: ServiceArguments,
    /// Removes this pending record, unless a run uses it. The object is not changed.
    #[arg(long, value_name = "ENTRY")]
    pub forget: Option<String>,
}

/// Lists the records, or removes one.
///
/// # Errors
///
/// If the records cannot be read, or a record is kept.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    run_to(arguments, &Environment::of_process(), &mut io::stdout()).await
}

/// The same in another environment, with its text written to `out`.
///
/// # Errors
///
/// If the records cannot be read, or a record is kept.
pub async fn run_to(
    arguments: Arguments,
    environment: &Environment,
    out: &mut (impl Write + Send),
) -> Result<(), Failure> {
    let notes = PendingFolder::find(arguments.pending_dir.as_deref(), &arguments.data_dir, environment)?;
    let is_there = notes.directory().exists();
    if notes.are_named && !is_there {
        let directory = notes.directory().display();
        return Err(Failure::new(format!(
            "no pending directory at {directory}. Give the DAMODEL_PENDING_DIR of the apply, relative to this folder; \
             the first apply creates it"
        )));
    }
    let service = AskedService::new(Client::new(arguments.service.settings(environment)?));
    let context = Context::within(PATIENCE, &CancellationToken::new());
    let text = match &arguments.forget {
        Some(entry) => forget(entry, &notes.journal, &service, &context).await?,
        None if is_there => list(&notes.journal, &service, &context).await?,
        // No create has run in this folder, or the user meant another one.
        None => format!(
            "No pending directory at {}: no create is recorded here. Run this in the folder of the configuration, \
             or give the DAMODEL_PENDING_DIR of its apply with --pending-dir.\n",
            notes.directory().display()
        ),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)
}

async fn list(journal: &Journal, service: &AskedService, context: &Context) -> Result<String, Failure> {
    let report = journal.list().map_err(|error| Failure::new(error.to_string()))?;
    if report.entries.is_empty() && report.unreadable.is_empty() {
        return Ok(format!("Nothing is pending in {}.\n", journal.directory().display()));
    }
    let mut rows = Vec::new();
    for listed in &report.entries {
        rows.push(row(listed, &service.fate_of(listed, context).await));
    }
    let mut text = print(&rows);
    for file in &report.unreadable {
        let line = format!("{} could not be read: {}. The record was not removed.\n", file.path.display(), file.reason);
        text.push_str(&line);
    }
    if let Err(missing) = service.check_configured() {
        let line = format!("\nTheir status was not checked: {missing}.\n");
        text.push_str(&line);
    }
    Ok(text)
}

async fn forget(entry: &str, journal: &Journal, service: &AskedService, context: &Context) -> Result<String, Failure> {
    let entries = journal.list().map_err(|error| Failure::new(error.to_string()))?.entries;
    let Some(listed) = entries.into_iter().find(|listed| listed.name() == entry) else {
        return Err(Failure::new(format!("no pending record {entry} in {}", journal.directory().display())));
    };
    let fate = service.fate_of(&listed, context).await;
    if fate == Fate::Owned {
        return Err(Failure::new(format!("{entry} is kept: a run is working on it")));
    }
    journal.forget(&listed).map_err(|error| Failure::new(error.to_string()))?;
    Ok(format!("Removed record {entry} ({}): {fate}.\n", listed.record.marker))
}

fn row(listed: &PendingCreate, fate: &Fate) -> [String; 8] {
    let record = &listed.record;
    [
        listed.name().to_owned(),
        record.kind.as_str().to_owned(),
        record.marker.clone(),
        fate::phase(record.phase).to_owned(),
        age(Timestamp::now().as_second().saturating_sub(record.begun_at).max(0)),
        fate.uid(record).unwrap_or("-").to_owned(),
        fate.to_string(),
        fate.advice(listed, listed.name()),
    ]
}

const HEADINGS: [&str; 8] = ["ENTRY", "KIND", "NAME SENT", "PHASE", "AGE", "UID", "STATUS", "WHAT TO DO"];

/// The rows below their headings, without control characters for the terminal.
fn print(rows: &[[String; 8]]) -> String {
    let clean = |row: &[String; 8]| row.each_ref().map(|cell| visible(cell, usize::MAX));
    aligned(&[HEADINGS.map(str::to_owned)].iter().chain(rows).map(clean).collect::<Vec<_>>(), &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_obeyed_by_no_terminal() {
        let row = ["instance-1", "instance", "a\u{1b}[2J", "sent", "2m", "-", "ok", "do"].map(str::to_owned);
        let text = print(&[row]);
        let expected = "ENTRY       KIND      NAME SENT  PHASE  AGE  UID  STATUS  WHAT TO DO\n\
                        instance-1  instance  a\u{fffd}[2J      sent   2m   -    ok      do\n";
        assert_eq!(text, expected);
    }
}
