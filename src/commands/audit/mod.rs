//! `terraform-provider-damodel audit`: the billed objects of the account and their holders.

mod account;
mod holders;
mod states;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Read, Write},
    path::PathBuf,
    process::{ExitCode, Termination},
    time::Duration,
};

use bigdecimal::{BigDecimal, RoundingMode};
use clap::{Parser, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use self::{
    account::AccountLists,
    holders::{Audit, HeldObject, Holder},
    states::AuditedState,
};
use super::{ServiceArguments, adopt};
use crate::{
    api::{Client, Context, Error as ApiError, InvalidBaseUrl},
    provider::Environment,
    review::{code, visible},
};

pub use self::states::NotAState;

/// The exit code for unmanaged objects with --fail-on.
const FOUND: u8 = 3;

/// The time limit for all requests.
const PATIENCE: Duration = Duration::from_secs(300);

/// Lists everything that the account bills, and which state or pending record holds it.
///
/// The holder of an unmanaged object is "nobody". States are state files, or the output of `terraform state pull`,
/// `tofu state pull` or `show -json`. Prices are today's prices of the specifications. The service has no prices for
/// cloud disks and images, and does not list the extra local disk of an instance.
///
/// Exit codes: 0 the account was listed; 3 with --fail-on unmanaged, an object is unmanaged; 1 the account or a
/// state could not be read completely, or they do not belong together; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "audit")]
pub struct Arguments {
    /// States; `-` reads one from standard input.
    #[arg(value_name = "STATE|-")]
    pub states: Vec<PathBuf>,
    /// A pending directory of the provider (pending_dir). May be repeated.
    #[arg(long, value_name = "DIR")]
    pub pending: Vec<PathBuf>,
    /// The form of the list.
    #[arg(long, value_enum, default_value_t = ListFormat::Table, value_name = "FORMAT")]
    pub format: ListFormat,
    /// Exits with code 3 if an object is unmanaged.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Leaves out objects younger than this, such as 2h or 90m; an unknown age counts as older.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub older_than: Option<SignedDuration>,
    /// Writes import blocks and the configuration of unmanaged objects, as `adopt --out` does.
    #[arg(long, value_name = "DIR")]
    pub adopt: Option<PathBuf>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

/// The form of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// For a terminal.
    Table,
    /// For programs.
    Json,
    /// For a comment.
    Markdown,
}

/// What ends with an exit code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// An object without a holder.
    Unmanaged,
}

/// The outcome of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditOutcome {
    /// No unmanaged object, or no --fail-on.
    Clear,
    /// An object is unmanaged, and --fail-on unmanaged was given.
    Unmanaged,
}

/// The reason why there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration of unmanaged objects could not be written.
    #[error("cannot adopt the unmanaged objects")]
    Adopt(#[source] Box<adopt::Error>),
    /// The base address is invalid.
    #[error("cannot use the base address")]
    BaseUrl(#[from] InvalidBaseUrl),
    /// The service lists no object of a kind that a state has. Usual cause: another account, or a fault of the service.
    #[error(
        "the account has no {kind} at all, but {source_name} holds {address}. Check DAMODEL_BASE_URL and \
         DAMODEL_API_TOKEN: it may be another account"
    )]
    Empty {
        /// The kind of objects.
        kind: &'static str,
        /// The state.
        source_name: String,
        /// An object in it.
        address: String,
    },
    /// A list is incomplete. Usual cause: it changed while it was read, or the service omitted records.
    #[error("the list of {kind}s is not complete: {seen} of {total} could be read. Run it again")]
    Incomplete {
        /// The kind of objects.
        kind: &'static str,
        /// The number of records read.
        seen: usize,
        /// The total number.
        total: String,
    },
    /// A list could not be read.
    #[error("cannot list the {kind}s of the account")]
    List {
        /// The kind of objects.
        kind: &'static str,
        /// The cause.
        source: ApiError,
    },
    /// The named pending directory does not exist. Usual cause: a misspelled name.
    #[error("no pending directory at {}", .0.display())]
    NoDirectory(PathBuf),
    /// The records of a pending directory cannot be read.
    #[error("cannot read the pending directory {}: {reason}", path.display())]
    Notes {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// None of the objects of a state is in the account.
    #[error(
        "none of the {count} objects of {source_name} is in the account: it belongs to another account. Check \
         DAMODEL_BASE_URL and DAMODEL_API_TOKEN"
    )]
    OtherAccount {
        /// The state.
        source_name: String,
        /// The number of its objects.
        count: usize,
    },
    /// A file cannot be read.
    #[error("cannot read {place}")]
    Read {
        /// The file.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// A document is not a state.
    #[error("cannot read {place} as a state")]
    State {
        /// Its file or stream.
        place: String,
        /// What the document is.
        source: NotAState,
    },
    /// Standard output cannot be written.
    #[error("cannot write to the terminal")]
    Terminal(#[source] io::Error),
}

/// Lists the billed objects and their holders.
///
/// # Errors
///
/// If the account or a state cannot be read completely, or they do not belong together. Nothing is written then.
pub async fn run(arguments: Arguments) -> Result<AuditOutcome, Error> {
    let environment = Environment::of_process();
    audit(&arguments, &environment, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()).await
}

async fn audit(
    arguments: &Arguments,
    environment: &Environment,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<AuditOutcome, Error> {
    let states = read_states(arguments, environment, input)?;
    let notes = states::read(&arguments.pending, environment)?;
    let unreadable = |path: PathBuf, source| Error::Read { place: path.display().to_string(), source };
    let client = Client::new(arguments.service.settings(environment, unreadable)?);
    let account = AccountLists::read(&client, &Context::within(PATIENCE, &CancellationToken::new())).await?;
    let mut audit = Audit::new(&account, &states, &notes, Timestamp::now().as_second())?;
    if let Some(age) = arguments.older_than {
        audit.only_older_than(age.as_secs());
    }
    let text = match arguments.format {
        ListFormat::Json => audit.to_json().map_err(|error| Error::Terminal(error.into()))?,
        ListFormat::Markdown => markdown(&audit),
        ListFormat::Table => plain(&audit),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)?;
    for line in duplicates(&audit) {
        writeln!(told, "warning: {line}").map_err(Error::Terminal)?;
    }
    let unmanaged = audit.unmanaged();
    if let Some(folder) = &arguments.adopt {
        let said = adopt_these(arguments, environment, folder, &unmanaged).await?;
        told.write_all(said.as_bytes()).map_err(Error::Terminal)?;
    }
    let is_found = arguments.fail_on == Some(FailOn::Unmanaged) && !unmanaged.is_empty();
    Ok(if is_found { AuditOutcome::Unmanaged } else { AuditOutcome::Clear })
}

fn read_states(
    arguments: &Arguments,
    environment: &Environment,
    input: &mut impl Read,
) -> Result<Vec<AuditedState>, Error> {
    let read = |path: &PathBuf| {
        let mut document = Vec::new();
        let (place, read) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), input.read_to_end(&mut document).map(drop))
        } else {
            (path.display().to_string(), std::fs::read(environment.path(path)).map(|content| document = content))
        };
        read.map_err(|source| Error::Read { place: place.clone(), source })?;
        AuditedState::read(&place, &document).map_err(|source| Error::State { place, source })
    };
    arguments.states.iter().map(read).collect()
}

async fn adopt_these(
    arguments: &Arguments,
    environment: &Environment,
    folder: &std::path::Path,
    unmanaged: &BTreeSet<(adopt::Adoptable, String)>,
) -> Result<String, Error> {
    let token = arguments.service.token.as_ref().map(|token| token.expose_secret().to_owned());
    let named = [("DAMODEL_BASE_URL", arguments.service.base_url.clone()), ("DAMODEL_API_TOKEN", token)];
    let variables = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let told = Environment::made_of(variables, environment.directory().to_owned());
    let adoption = adopt::Arguments {
        out: environment.path(folder),
        kind: Vec::new(),
        name: None,
        region: None,
        allow_http: arguments.service.allow_http,
        ca_certificate_file: arguments.service.ca_certificate_file.as_deref().map(|file| environment.path(file)),
    };
    let adopted = adopt::only(&adoption, told, |kind, id| unmanaged.contains(&(kind, id.to_owned()))).await;
    adopted.map_err(|error| Error::Adopt(Box::new(error)))
}

fn age(text: &str) -> Result<SignedDuration, String> {
    let age: SignedDuration = text.parse().map_err(|_| "not a duration such as 2h or 1h30m".to_owned())?;
    if age.is_negative() { Err("below 0".to_owned()) } else { Ok(age) }
}

impl Termination for AuditOutcome {
    fn report(self) -> ExitCode {
        match self {
            Self::Clear => ExitCode::SUCCESS,
            Self::Unmanaged => ExitCode::from(FOUND),
        }
    }
}

const TITLES: [&str; 9] = ["KIND", "ID", "NAME", "REGION", "STATUS", "AGE", "HOURLY", "MONTHLY", "HELD BY"];

/// The columns of numbers.
const NUMBERS: [usize; 2] = [6, 7];

/// The longest text in a cell, in characters.
const LONGEST: usize = 100;

/// The table for a terminal.
fn plain(audit: &Audit) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(sorted(audit).into_iter().map(|object| row(object, |text| visible(text, LONGEST))));
    let mut widths = [0; TITLES.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if NUMBERS.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let _ = writeln!(text, "\n{}", summary(audit));
    for missing in &audit.missing {
        let [id, address, source] = [&missing.id, &missing.address, &missing.source].map(|text| visible(text, LONGEST));
        let _ = writeln!(
            text,
            "Missing: {address} in {source} holds {} {id}, which is not in the account.",
            missing.kind.noun()
        );
    }
    text
}

/// The table for a comment.
fn markdown(audit: &Audit) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("## Account audit\n\n{}\n\n", summary(audit));
    text.push_str(&line(&TITLES.map(str::to_lowercase)));
    let rule = |column: usize| if NUMBERS.contains(&column) { "---:" } else { "---" }.to_owned();
    text.push_str(&line(&(0..TITLES.len()).map(rule).collect::<Vec<_>>()));
    for object in sorted(audit) {
        text.push_str(&line(&row(object, code)));
    }
    if !audit.missing.is_empty() {
        let _ = write!(text, "\n### Missing in the account ({})\n\n", audit.missing.len());
        text.push_str(&line(&["kind", "id", "address", "state"].map(str::to_owned)));
        text.push_str(&line(&["---"; 4].map(str::to_owned)));
        for missing in &audit.missing {
            let [id, address, source] = [&missing.id, &missing.address, &missing.source].map(|text| code(text));
            text.push_str(&line(&[missing.kind.noun().to_owned(), id, address, source]));
        }
    }
    text
}

/// The objects that several addresses hold, one per line.
fn duplicates(audit: &Audit) -> impl Iterator<Item = String> {
    audit.duplicates.iter().map(|duplicate| {
        let place = |place: &holders::StateAddress| {
            format!("{} in {}", visible(&place.address, LONGEST), visible(&place.source, LONGEST))
        };
        let places: Vec<String> = duplicate.holders.iter().map(place).collect();
        let id = visible(&duplicate.id, LONGEST);
        format!("{} {id} is held more than once: {}", duplicate.kind.noun(), places.join(", "))
    })
}

/// The objects, unmanaged ones first.
fn sorted(audit: &Audit) -> Vec<&HeldObject> {
    let mut objects: Vec<&HeldObject> = audit.objects.iter().collect();
    objects.sort_by_key(|object| object.holder);
    objects
}

fn row(object: &HeldObject, shown: impl Fn(&str) -> String) -> [String; 9] {
    let known =
        |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map_or_else(|| "-".to_owned(), &shown);
    let price = |price: &Option<BigDecimal>, digits: i64| {
        price.as_ref().map_or_else(|| "-".to_owned(), |price| rounded(price, digits))
    };
    let age = |seconds: i64| format!("{:#}", SignedDuration::from_secs(seconds));
    let holder = match object.holder {
        Holder::Nobody => "nobody".to_owned(),
        Holder::Pending => format!("pending in {}", known(&object.source)),
        Holder::State => format!("{} in {}", known(&object.address), known(&object.source)),
    };
    [
        object.kind.noun().to_owned(),
        shown(&object.id),
        known(&object.name),
        known(&object.region),
        known(&object.status),
        object.age_seconds.map_or_else(|| "-".to_owned(), age),
        price(&object.hourly, 4),
        price(&object.monthly, 2),
        holder,
    ]
}

fn rounded(price: &BigDecimal, digits: i64) -> String {
    price.with_scale_round(digits, RoundingMode::HalfUp).to_plain_string()
}

fn summary(audit: &Audit) -> String {
    let sum = |holder: Option<Holder>| {
        let meant = audit.objects.iter().filter(|object| holder.is_none_or(|holder| object.holder == holder));
        let count = meant.clone().count();
        let monthly: BigDecimal = meant.filter_map(|object| object.monthly.as_ref()).sum();
        let objects = if count == 1 { "object" } else { "objects" };
        format!("{count} {objects} ({} a month)", rounded(&monthly, 2))
    };
    format!(
        "{} in the account; unmanaged: {}. Cloud disks and images have no known price.",
        sum(None),
        sum(Some(Holder::Nobody))
    )
}
