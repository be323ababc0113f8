//! `terraform-provider-damodel review`: a plan as a report for a pull request, and as a gate.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{ExitCode, Termination},
};

use clap::{Parser, ValueEnum};

use crate::review::{Deny, Format, Money, NotAPlan, Plan, Policy, Report, render};

/// The exit code of a plan that does not pass.
const VIOLATED: u8 = 3;

/// Tells what a plan costs, destroys, replaces, buys ahead and puts into the state.
///
/// It reads what `terraform show -json PLANFILE` or `tofu show -json PLANFILE` writes; make that file with `plan -out=PLANFILE`.
///
/// An incomplete plan, as with -target, passes no gate. Plans of OpenTofu, and of Terraform before 1.8, do not say whether they are
/// complete: there this cannot be seen, and the report says so.
///
/// Exit codes: 0 the report was written, and the plan passes where a gate was asked for; 3 the plan does not pass
/// (--max-monthly-increase, --deny), the report and the reasons were written; 1 the input is no plan; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "review")]
pub struct Arguments {
    /// The plan as JSON; `-` reads it from standard input.
    #[arg(value_name = "PLAN.json|-")]
    pub plan: PathBuf,
    /// The form of the report. Markdown fits a comment of 65,536 characters.
    #[arg(long, value_enum, default_value_t = FormatArgument::Markdown, value_name = "FORMAT")]
    pub format: FormatArgument,
    /// Fails when the plan raises the bill by more than this a month (730 hours), in the service's currency, or when a price is unknown.
    #[arg(long, value_name = "N")]
    pub max_monthly_increase: Option<Money>,
    /// Fails when the plan does any of these.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…")]
    pub deny: Vec<DenyArgument>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArgument {
    /// For a comment of a pull request.
    Markdown,
    /// One file with a chart.
    Html,
    /// For programs.
    Json,
}

/// What a plan must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum DenyArgument {
    /// Destroy a machine's disks, a cloud disk or an image.
    DestroyData,
    /// Buy a machine by the day, the week or the month.
    Prepaid,
    /// Store a value that is marked as sensitive.
    SecretsInState,
}

/// How a review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The plan passes, or nothing was asked of it.
    Passed,
    /// It does not pass.
    Violated,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is not a plan.
    #[error("read {place} as a plan")]
    NotAPlan {
        /// Where it came from.
        place: String,
        /// What it is instead.
        source: NotAPlan,
    },
    /// The input is out of reach.
    #[error("read {place}")]
    Read {
        /// Where it is.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// The report could not be made.
    #[error("write the report")]
    Render(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Standard output or standard error is out of reach.
    #[error("talk to the terminal")]
    Terminal(#[source] io::Error),
}

/// Reads a plan, writes the report to standard output, and what does not pass to standard error too.
///
/// # Errors
///
/// When the input is no plan; nothing is on standard output then.
pub async fn run(arguments: Arguments) -> Result<Outcome, Error> {
    review(&arguments, &mut io::stdin(), &mut io::stdout(), &mut io::stderr())
}

/// The same with other streams.
///
/// # Errors
///
/// When the input is no plan; nothing is written then.
pub fn review(
    arguments: &Arguments,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<Outcome, Error> {
    let (place, document) = read(&arguments.plan, input)?;
    let plan = Plan::read(&document).map_err(|source| Error::NotAPlan { place, source })?;
    let mut report = Report::of(&plan);
    report.gate = policy(arguments).judge(&report);
    let text = render(&report, arguments.format.into()).map_err(Error::Render)?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)?;
    let violations = report.gate.map(|verdict| verdict.violations).unwrap_or_default();
    for violation in &violations {
        writeln!(told, "violation: {violation}").map_err(Error::Terminal)?;
    }
    Ok(if violations.is_empty() { Outcome::Passed } else { Outcome::Violated })
}

fn read(plan: &Path, input: &mut impl Read) -> Result<(String, Vec<u8>), Error> {
    let mut document = Vec::new();
    let (place, read) = if plan == Path::new("-") {
        ("standard input".to_owned(), input.read_to_end(&mut document).map(drop))
    } else {
        (plan.display().to_string(), fs::read(plan).map(|content| document = content))
    };
    match read {
        Ok(()) => Ok((place, document)),
        Err(source) => Err(Error::Read { place, source }),
    }
}

fn policy(arguments: &Arguments) -> Policy {
    let mut asked: Vec<DenyArgument> = arguments.deny.clone();
    asked.sort();
    asked.dedup();
    let deny = asked.iter().map(|deny| match deny {
        DenyArgument::DestroyData => Deny::DestroyData,
        DenyArgument::Prepaid => Deny::Prepaid,
        DenyArgument::SecretsInState => Deny::SecretsInState,
    });
    Policy { max_monthly_increase: arguments.max_monthly_increase.clone(), deny: deny.collect() }
}

impl From<FormatArgument> for Format {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Html => Self::Html,
            FormatArgument::Json => Self::Json,
            FormatArgument::Markdown => Self::Markdown,
        }
    }
}

impl Termination for Outcome {
    fn report(self) -> ExitCode {
        match self {
            Self::Passed => ExitCode::SUCCESS,
            Self::Violated => ExitCode::from(VIOLATED),
        }
    }
}
