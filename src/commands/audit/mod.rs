//! `terraform-provider-damodel audit`: everything that is billed in the account, and who holds it.

mod account;
mod holders;
mod notes;
mod states;
mod tables;

use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
    path::PathBuf,
    process::{ExitCode, Termination},
    time::Duration,
};

use clap::{Parser, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

pub use self::states::NotAState;
use self::{account::Account, holders::Audit, states::State};
use super::{ServiceArguments, adopt};
use crate::{
    api::{Client, Context, Error as ApiError, InvalidBaseUrl},
    provider::Environment,
};

/// The exit code when somebody asked to be stopped by what was found.
const FOUND: u8 = 3;

/// How long the service is asked, in all.
const PATIENCE: Duration = Duration::from_secs(300);

/// Lists everything that the account bills, and which state or pending record holds it.
///
/// An object in neither is listed as "nobody". It reads states as `terraform state pull` or `tofu state pull` writes
/// them, state files, and states as `show -json` writes them. The service is that of DAMODEL_BASE_URL and
/// DAMODEL_API_TOKEN. Prices are today's prices of the specifications; the service names none for cloud disks and
/// images, and lists tell nothing of extra local disk.
///
/// Exit codes: 0 the account was listed; 3 with --fail-on unmanaged, something is held by nobody; 1 the account or a
/// state could not be read whole, or they do not belong together; 2 wrong usage.
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
    #[arg(long, value_enum, default_value_t = FormatArgument::Table, value_name = "FORMAT")]
    pub format: FormatArgument,
    /// Ends with exit code 3 when something is held by nobody.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Leaves out what is younger, such as 2h or 90m; what has no known age is older.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub older_than: Option<SignedDuration>,
    /// Writes import blocks and the configuration of what nobody holds, as `adopt --out` does.
    #[arg(long, value_name = "DIR")]
    pub adopt: Option<PathBuf>,
    /// The service.
    #[command(flatten)]
    pub service: ServiceArguments,
}

/// The form of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArgument {
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

/// How an audit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that was asked for was found.
    Clear,
    /// Something is held by nobody, and that was asked for.
    Unmanaged,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What nobody holds could not be written.
    #[error("cannot adopt what nobody holds")]
    Adopt(#[source] Box<adopt::Error>),
    /// The base address is none.
    #[error("cannot use the base address")]
    BaseUrl(#[from] InvalidBaseUrl),
    /// The service lists nothing of a kind that a state holds. Usual cause: another account, or a fault of the service.
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
    /// A list is not whole. Usual cause: it changed while it was read, or the service left records out.
    #[error("the list of {kind}s is not complete: {seen} of {total} could be read. Run it again")]
    Incomplete {
        /// The kind of objects.
        kind: &'static str,
        /// How many were read.
        seen: usize,
        /// How many there are.
        total: String,
    },
    /// The service could not be asked.
    #[error("cannot list the {kind}s of the account")]
    List {
        /// The kind of objects.
        kind: &'static str,
        /// Why.
        source: ApiError,
    },
    /// The pending directory that was named is none. Usual cause: a slip in the name.
    #[error("no pending directory at {}", .0.display())]
    NoDirectory(PathBuf),
    /// The notes of a pending directory cannot be read.
    #[error("cannot read the pending directory {}: {reason}", path.display())]
    Notes {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
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
        /// How many objects it holds.
        count: usize,
    },
    /// A file is out of reach.
    #[error("cannot read {place}")]
    Read {
        /// Where it is.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// A state is none.
    #[error("cannot read {place} as a state")]
    State {
        /// Where it came from.
        place: String,
        /// What it is instead.
        source: NotAState,
    },
    /// Standard output is out of reach.
    #[error("cannot write to the terminal")]
    Terminal(#[source] io::Error),
}

/// Lists what is billed, and who holds it.
///
/// # Errors
///
/// When the account or a state cannot be read whole, or they do not belong together. Nothing is written then.
pub async fn run(arguments: Arguments) -> Result<Outcome, Error> {
    let environment = Environment::of_process();
    audit(&arguments, &environment, &mut io::stdin(), &mut io::stdout(), &mut io::stderr()).await
}

async fn audit(
    arguments: &Arguments,
    environment: &Environment,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<Outcome, Error> {
    let states = read_states(arguments, environment, input)?;
    let notes = notes::read(&arguments.pending, environment)?;
    let unreadable = |path: PathBuf, source| Error::Read { place: path.display().to_string(), source };
    let client = Client::new(arguments.service.settings(environment, unreadable)?);
    let account = Account::read(&client, &Context::within(PATIENCE, &CancellationToken::new())).await?;
    let mut audit = Audit::new(&account, &states, &notes, Timestamp::now().as_second())?;
    if let Some(age) = arguments.older_than {
        audit.only_older_than(age.as_secs());
    }
    let text = match arguments.format {
        FormatArgument::Json => audit.to_json().map_err(|error| Error::Terminal(error.into()))?,
        FormatArgument::Markdown => tables::markdown(&audit),
        FormatArgument::Table => tables::plain(&audit),
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)?;
    for line in tables::duplicates(&audit) {
        writeln!(told, "warning: {line}").map_err(Error::Terminal)?;
    }
    let unmanaged = audit.unmanaged();
    if let Some(folder) = &arguments.adopt {
        let said = adopt_these(arguments, environment, folder, &unmanaged).await?;
        told.write_all(said.as_bytes()).map_err(Error::Terminal)?;
    }
    let is_found = arguments.fail_on == Some(FailOn::Unmanaged) && !unmanaged.is_empty();
    Ok(if is_found { Outcome::Unmanaged } else { Outcome::Clear })
}

fn read_states(arguments: &Arguments, environment: &Environment, input: &mut impl Read) -> Result<Vec<State>, Error> {
    let read = |path: &PathBuf| {
        let mut document = Vec::new();
        let (place, read) = if path.as_os_str() == "-" {
            ("standard input".to_owned(), input.read_to_end(&mut document).map(drop))
        } else {
            (path.display().to_string(), std::fs::read(environment.path(path)).map(|content| document = content))
        };
        read.map_err(|source| Error::Read { place: place.clone(), source })?;
        State::read(&place, &document).map_err(|source| Error::State { place, source })
    };
    arguments.states.iter().map(read).collect()
}

async fn adopt_these(
    arguments: &Arguments,
    environment: &Environment,
    folder: &std::path::Path,
    unmanaged: &BTreeSet<(adopt::Kind, String)>,
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

impl Termination for Outcome {
    fn report(self) -> ExitCode {
        match self {
            Self::Clear => ExitCode::SUCCESS,
            Self::Unmanaged => ExitCode::from(FOUND),
        }
    }
}
