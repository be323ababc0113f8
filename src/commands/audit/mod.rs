//! `terraform-provider-damodel audit`: the billed objects of the account and their holders.

mod imports;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use super::{
    Failure, ListFormat, ServiceArguments,
    account::{
        PATIENCE, UNSAID,
        expired::{self, Judged, LONGEST, Verdict},
        holders::{Audit, AuditSum, HeldObject, Holder, MissingObject},
        inventory::Inventory,
        read_states, states,
    },
    age, aligned,
    service::path_or_nothing,
    wrong_usage,
};
use crate::{
    api::{Client, Context, ObjectKind},
    provider::Environment,
    review::{Money, rules::and_more, visible},
};

/// The exit code of --fail-on.
const FOUND: u8 = 3;

/// Lists the billed objects of the account, and the state or pending record that manages each.
///
/// Objects in no state and no pending record are listed as "unmanaged". States are state files, or the output of
/// `terraform state pull`, `tofu state pull` or `show -json`. Prices are today's prices of the specifications. The
/// service has no prices for cloud disks and images, and does not list the extra local disk of an instance.
///
/// Exit codes: 0 the account was listed; 3 with --fail-on, an object is unmanaged or an instance is older than its
/// max_age; 1 the account or a state could not be read completely, they do not belong together, an object is not in the
/// account and its state does not have the configuration of its provider (show -json), or with --fail-on expired an
/// instance could not be judged; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "audit")]
pub struct Arguments {
    /// States; `-` reads one from standard input.
    #[arg(value_name = "STATE|-")]
    pub states: Vec<PathBuf>,
    /// A pending directory of the provider. May be repeated.
    #[arg(long, env = "DAMODEL_PENDING_DIR", value_name = "DIR", value_parser = path_or_nothing())]
    pub pending_dir: Vec<PathBuf>,
    /// The form of the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Table, value_name = "FORMAT")]
    pub format: ListFormat,
    /// Exits with code 3 if an object is unmanaged, or if an instance is expired: older than the max_age in its state.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub fail_on: Vec<FailOn>,
    /// Leaves out objects younger than this, such as 2h or 90m; an unknown age counts as older.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older_than: Option<SignedDuration>,
    /// Writes import blocks of the listed unmanaged objects to this file, which must not exist.
    ///
    /// `terraform plan -generate-config-out=FILE` then writes their configuration.
    #[arg(long, value_name = "FILE")]
    pub imports: Option<PathBuf>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

/// What ends with an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// An instance that is older than its max_age, for state files and the output of `state pull`.
    Expired,
    /// An object without a holder.
    Unmanaged,
}

/// Lists the billed objects and their holders.
///
/// # Errors
///
/// If the account or a state cannot be read completely, or they do not belong together. Nothing is written then.
pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process();
    audit(&arguments, &environment, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()).await
}

async fn audit(
    arguments: &Arguments,
    environment: &Environment,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let imports = arguments.imports.as_deref().map(|file| imports::free(file, environment)).transpose()?;
    let states = read_states(&arguments.states, environment, input)?;
    let files = if arguments.fail_on.contains(&FailOn::Expired) {
        let files = if states.is_empty() { Err(Failure::new(NO_STATE)) } else { states::distinct(states.clone()) };
        match files {
            Ok(files) => files,
            Err(failure) => return wrong_usage(&failure, told),
        }
    } else {
        Vec::new()
    };
    let notes = states::read(&arguments.pending_dir, environment)?;
    let client = Client::new(arguments.service.settings(environment)?);
    let account = Inventory::read(&client, &Context::within(PATIENCE, &CancellationToken::new())).await?;
    let now = Timestamp::now().as_second();
    let mut audit = Audit::new(&account, &states, &notes, now)?;
    let expired = expired::judged(&account, &files, now);
    if let Some(age) = arguments.older_than {
        audit.only_older_than(age.as_secs());
    }
    let text = match arguments.format {
        ListFormat::Json => audit.to_json().map_err(|error| Failure::terminal(error.into()))?,
        ListFormat::Table => table(&audit),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?;
    for line in duplicates(&audit) {
        writeln!(told, "warning: {line}").map_err(Failure::terminal)?;
    }
    if audit.other_notes > 0 {
        let records = if audit.other_notes == 1 { "1 pending record is" } else { "pending records are" };
        let count = if audit.other_notes == 1 { String::new() } else { format!("{} ", audit.other_notes) };
        writeln!(told, "warning: {count}{records} for another base address and not counted")
            .map_err(Failure::terminal)?;
    }
    let unmanaged = audit.listed_unmanaged();
    if let Some(file) = &imports {
        let said = imports::write(file, &audit, &account.released)?;
        told.write_all(said.as_bytes()).map_err(Failure::terminal)?;
    }
    let mut code = expired_code(&expired, told).map_err(Failure::terminal)?;
    if let [first, others @ ..] = audit.not_judged.as_slice() {
        let address = visible(&first.address, LONGEST);
        let more = if others.is_empty() { String::new() } else { format!(" {}", and_more(others.len())) };
        writeln!(told, "not judged: {address}{more}: {UNSAID}").map_err(Failure::terminal)?;
        code = 1;
    }
    if arguments.fail_on.contains(&FailOn::Unmanaged) && !unmanaged.is_empty() {
        tell_unmanaged(&unmanaged, told).map_err(Failure::terminal)?;
        code = if code == 0 { FOUND } else { code };
    }
    Ok(ExitCode::from(code))
}

/// Wrong usage with `--fail-on expired`.
const NO_STATE: &str = "--fail-on expired needs a STATE";

/// Names the expired instances and those that cannot be judged, and returns the exit code.
fn expired_code(expired: &[Judged], told: &mut impl Write) -> io::Result<u8> {
    let mut code = 0;
    for instance in expired {
        let title = instance.title();
        match &instance.verdict {
            Verdict::Left(_) | Verdict::Due => {
                let max_age = instance.max_age.as_deref().unwrap_or_default();
                writeln!(told, "expired: {title} is older than its max_age ({max_age})")?;
                code = if code == 0 { FOUND } else { code };
            }
            Verdict::Unjudged(reason) => {
                writeln!(told, "not judged: {title}: {reason}")?;
                code = 1;
            }
            Verdict::Gone | Verdict::Released | Verdict::Releasing | Verdict::Young => {}
        }
    }
    Ok(code)
}

fn tell_unmanaged(unmanaged: &BTreeSet<(ObjectKind, String)>, told: &mut impl Write) -> io::Result<()> {
    let objects =
        if unmanaged.len() == 1 { "1 object is".to_owned() } else { format!("{} objects are", unmanaged.len()) };
    let names: Vec<String> =
        unmanaged.iter().take(NAMED).map(|(kind, id)| format!("{} {}", kind.noun(), visible(id, LONGEST))).collect();
    let more = if unmanaged.len() > NAMED { ", …" } else { "" };
    writeln!(told, "unmanaged: {objects} in no state and no pending record: {}{more}", names.join(", "))
}

/// The number of objects that a line names.
const NAMED: usize = 5;

fn duration(text: &str) -> Result<SignedDuration, String> {
    let age: SignedDuration = text.parse().map_err(|_| "not a duration such as 2h or 1h30m".to_owned())?;
    if age.is_negative() { Err("below 0".to_owned()) } else { Ok(age) }
}

const TITLES: [&str; 10] = ["KIND", "ID", "NAME", "REGION", "STATUS", "AGE", "HOURLY", "MONTHLY", "SO FAR", "HELD BY"];

/// The columns of numbers.
const NUMBERS: [usize; 3] = [6, 7, 8];

/// The table for a terminal.
fn table(audit: &Audit) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(sorted(audit).into_iter().map(row));
    let mut text = format!("{}\n{}{}\n", aligned(&rows, &NUMBERS), so_far(audit), summary(audit));
    let mut objects = |title: &str, objects: &[MissingObject], rest: &str| {
        for object in objects {
            let [id, address, source] =
                [&object.id, &object.address, &object.source].map(|text| visible(text, LONGEST));
            let _ = writeln!(text, "{title}: {address} in {source} manages {} {id}{rest}.", object.kind.noun());
        }
    };
    objects("Missing", &audit.missing, ", which is not in the account");
    objects("Not judged", &audit.not_judged, ", which the account does not list");
    objects("Not of this account", &audit.not_of_this_account, "; no object of its provider configuration is listed");
    text
}

/// The objects that several addresses hold, one per line.
pub(super) fn duplicates(audit: &Audit) -> impl Iterator<Item = String> {
    audit.duplicates.iter().map(|duplicate| {
        let places: Vec<String> = duplicate
            .holders
            .iter()
            .map(|place| format!("{} in {}", visible(&place.address, LONGEST), visible(&place.source, LONGEST)))
            .collect();
        let id = visible(&duplicate.id, LONGEST);
        format!("{} {id} is managed more than once: {}", duplicate.kind.noun(), places.join(", "))
    })
}

/// The objects, unmanaged ones first.
fn sorted(audit: &Audit) -> Vec<&HeldObject> {
    let mut objects: Vec<&HeldObject> = audit.objects.iter().collect();
    objects.sort_by_key(|object| object.holder);
    objects
}

fn row(object: &HeldObject) -> [String; 10] {
    let known = |text: &Option<String>| match text.as_deref() {
        None | Some("") => "-".to_owned(),
        Some(text) => visible(text, LONGEST),
    };
    let price = |price: &Option<Money>, digits: u32| {
        price.as_ref().map_or_else(|| "-".to_owned(), |price| price.with_digits(digits))
    };
    [
        object.billed.kind.noun().to_owned(),
        visible(&object.billed.id, LONGEST),
        known(&object.billed.name),
        known(&object.billed.region),
        known(&object.billed.status),
        object.age_seconds.map_or_else(|| "-".to_owned(), age),
        price(&object.hourly, 4),
        price(&object.monthly, 2),
        price(&object.so_far, 2),
        object.held_by(),
    ]
}

/// The sums by holder, each with what it lacks.
fn so_far(audit: &Audit) -> String {
    if audit.so_far_by_holder.is_empty() {
        return String::new();
    }
    let mut text = SO_FAR.to_owned();
    for sum in &audit.so_far_by_holder {
        let source = visible(sum.source.as_deref().unwrap_or_default(), LONGEST);
        let holder = match sum.holder {
            Holder::Unmanaged => "unmanaged".to_owned(),
            Holder::Pending => format!("pending in {source}"),
            Holder::State => source,
        };
        let lacks = if sum.lacks.is_empty() { String::new() } else { format!(", without {}", named(&sum.lacks)) };
        let _ = writeln!(text, "- {holder}: {}{lacks}", sum.so_far.with_digits(2));
    }
    text
}

/// What the sums are.
const SO_FAR: &str = "SO FAR is the age times today's hourly price, and not the bill. It has no prepaid instances, \
                      cloud disks and images, and no extra local disk of an instance that is in no state.\n";

/// The first of these ids.
fn named(ids: &[String]) -> String {
    let names: Vec<String> = ids.iter().take(NAMED).map(|id| visible(id, LONGEST)).collect();
    format!("{}{}", names.join(", "), if ids.len() > NAMED { ", …" } else { "" })
}

fn summary(audit: &Audit) -> String {
    let sum = |sum: &AuditSum| {
        let AuditSum { objects, monthly, unknown } = sum;
        let noun = if *objects == 1 { "object" } else { "objects" };
        let prices = if unknown.len() == 1 { "unknown price" } else { "unknown prices" };
        let unknown = match unknown.len() {
            0 => String::new(),
            count => format!(", and {count} {prices}: {}", named(unknown)),
        };
        format!("{objects} {noun} ({} a month{unknown})", monthly.with_digits(2))
    };
    format!(
        "{} in the account; unmanaged: {}. Cloud disks and images have no known price.",
        sum(&audit.total),
        sum(&audit.unmanaged)
    )
}
