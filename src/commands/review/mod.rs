//! `terraform-provider-damodel review`: a report of plans for a pull request, and a gate.

mod sources;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::{ExitCode, Termination},
};

use clap::{Parser, ValueEnum};
use jiff::{Zoned, civil::Date};

use self::sources::{PlanInput, Sources};
use crate::review::{
    Baseline, Deny, Exception, Format, Limits, Money, NotAPlan, NotAPolicy, Policy, Review, Reviewed, ReviewedPlan,
    Style, render,
};

/// The exit code for a violated gate.
const VIOLATED: u8 = 3;

/// Reports what plans cost, destroy, replace and buy; with a policy it is a gate.
///
/// It reads the output of `terraform show -json PLANFILE` or `tofu show -json PLANFILE`, for a plan that was saved with
/// `plan -out=PLANFILE`.
///
/// An incomplete plan, as with -target, violates every gate. Plans of OpenTofu, and of Terraform before 1.8, do not
/// contain whether they are complete; the report then has a note.
///
/// Exit codes: 0 the report was written, and the gate is not violated; 3 the gate (--max-monthly-increase, --deny,
/// --policy) is violated, or a plan is unreadable in parts, and the report was written; 1 an input is not
/// a plan; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "review")]
pub struct Arguments {
    /// Plans as JSON, or folders of such files; `-` reads one from standard input.
    #[arg(value_name = "PLAN.json|DIR|-", required = true)]
    pub plans: Vec<PathBuf>,
    /// The form of the report. Default: text on a terminal, and elsewhere Markdown, which fits a comment of 65,536
    /// characters.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,
    /// The folder of the configuration: findings get their file and line.
    #[arg(long, value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// Puts a hidden marker with this name into Markdown and HTML, so that a program can find its comment again.
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub id: Option<String>,
    /// Fails when the plans raise the bill by more than this a month (730 hours), in the service's currency, or when a
    /// price is unknown.
    #[arg(long, value_name = "N")]
    pub max_monthly_increase: Option<Money>,
    /// Fails when the plans do any of these.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…")]
    pub deny: Vec<DenyArgument>,
    /// A policy (TOML). Default: review.toml beside a plan, if it exists. The options apply too.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// An earlier plan or report (--format json): only what is new violates the gate.
    #[arg(long, value_name = "OLD.json")]
    pub baseline: Option<PathBuf>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For a comment of a pull request.
    Markdown,
    /// One file with a chart.
    Html,
    /// For programs.
    Json,
    /// For code scanning (SARIF 2.1.0).
    Sarif,
    /// For test reports (JUnit).
    Junit,
    /// For GitLab's Code Quality.
    Gitlab,
    /// Annotations of GitHub Actions.
    Github,
    /// For a terminal.
    Text,
}

/// What a plan must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum DenyArgument {
    /// Destroy an instance's disks, a cloud disk, an image, or data of another provider.
    DestroyData,
    /// Buy an instance by the day, the week or the month.
    Prepaid,
    /// Store a value that is marked as sensitive.
    SecretsInState,
}

/// The outcome of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOutcome {
    /// The gate is not violated, or there is none.
    Passed,
    /// The gate is violated.
    Violated,
}

/// The reason why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder has no plan.
    #[error("no plan in {0}: it has no file that ends with .json")]
    NoPlans(String),
    /// An input is not a plan.
    #[error("cannot read {place} as a plan")]
    NotAPlan {
        /// Its file or stream.
        place: String,
        /// What the document is.
        source: NotAPlan,
    },
    /// A file is not a policy.
    #[error("cannot read {place} as a policy")]
    NotAPolicy {
        /// The file.
        place: String,
        /// The fault.
        source: NotAPolicy,
    },
    /// An input cannot be read.
    #[error("cannot read {place}")]
    Read {
        /// The file or folder.
        place: String,
        /// The system's error.
        source: io::Error,
    },
    /// The report could not be rendered.
    #[error("cannot write the report")]
    Render(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Standard output or standard error cannot be written.
    #[error("cannot write to the terminal")]
    Terminal(#[source] io::Error),
}

/// Reads plans, and writes the report to standard output and violations also to standard error.
///
/// # Errors
///
/// If an input is not a plan; standard output is empty then.
pub async fn run(arguments: Arguments) -> Result<ReviewOutcome, Error> {
    let is_terminal = io::stdout().is_terminal();
    let style = Style {
        format: arguments.format.map_or(if is_terminal { Format::Text } else { Format::Markdown }, Into::into),
        id: arguments.id.clone(),
        is_coloured: is_terminal && console::colors_enabled(),
        plan_file: None,
    };
    review(&arguments, &style, Zoned::now().date(), &mut io::stdin(), &mut io::stdout(), &mut io::stderr())
}

/// The same with another day and other streams.
///
/// # Errors
///
/// If an input is not a plan; nothing is written then.
pub fn review(
    arguments: &Arguments,
    style: &Style,
    today: Date,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<ReviewOutcome, Error> {
    let inputs = sources::read(&arguments.plans, arguments.baseline.as_deref(), input)?;
    let policy = read(arguments, &inputs, today)?;
    let baseline = arguments.baseline.as_deref().map(baseline).transpose()?;
    let sources = arguments.config_dir.as_deref().map(Sources::read).transpose()?;
    let is_of_several = inputs.len() > 1;
    let plans = sources::parallel(&inputs, |input| {
        let plan = ReviewedPlan::read(&input.document)
            .map_err(|source| Error::NotAPlan { place: input.place.clone(), source })?;
        Ok(Reviewed::new(is_of_several.then(|| input.place.clone()), &plan))
    })?;
    let review = Review::new(plans, &policy, baseline.as_ref(), |finding| {
        Some(sources.as_ref()?.locate(finding.address.as_deref()))
    });
    let plan_file = inputs.first().filter(|_| !is_of_several).and_then(PlanInput::file);
    let text = render(&review, &Style { plan_file, ..style.clone() }).map_err(Error::Render)?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)?;
    for warning in sources.iter().flat_map(Sources::warnings) {
        writeln!(told, "warning: {warning}").map_err(Error::Terminal)?;
    }
    let violations = review.gate.map(|verdict| verdict.violations).unwrap_or_default();
    for violation in &violations {
        writeln!(told, "violation: {violation}").map_err(Error::Terminal)?;
    }
    Ok(if violations.is_empty() { ReviewOutcome::Passed } else { ReviewOutcome::Violated })
}

fn baseline(path: &Path) -> Result<Baseline, Error> {
    let place = path.display().to_string();
    let document = fs::read(path).map_err(|source| Error::Read { place: place.clone(), source })?;
    Baseline::read(&document).map_err(|source| Error::NotAPlan { place, source })
}

/// A name that cannot end the comment around it.
fn id(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ');
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_plain) || name.contains("--") {
        return Err("not a name of letters, digits, spaces and -_./ (at most 100, without --)".to_owned());
    }
    Ok(name.to_owned())
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Github => Self::Github,
            ReportFormat::Gitlab => Self::Gitlab,
            ReportFormat::Html => Self::Html,
            ReportFormat::Json => Self::Json,
            ReportFormat::Junit => Self::Junit,
            ReportFormat::Markdown => Self::Markdown,
            ReportFormat::Sarif => Self::Sarif,
            ReportFormat::Text => Self::Text,
        }
    }
}

impl From<DenyArgument> for Deny {
    fn from(deny: DenyArgument) -> Self {
        match deny {
            DenyArgument::DestroyData => Self::DestroyData,
            DenyArgument::Prepaid => Self::Prepaid,
            DenyArgument::SecretsInState => Self::SecretsInState,
        }
    }
}

impl Termination for ReviewOutcome {
    fn report(self) -> ExitCode {
        match self {
            Self::Passed => ExitCode::SUCCESS,
            Self::Violated => ExitCode::from(VIOLATED),
        }
    }
}

/// The policy file beside a plan.
const FILE: &str = "review.toml";

/// The limits of the options, with the policy of --policy or else those beside the plans.
fn read(arguments: &Arguments, inputs: &[PlanInput], today: Date) -> Result<Policy, Error> {
    let mut deny: Vec<_> = arguments.deny.clone();
    deny.sort();
    deny.dedup();
    let options = Limits {
        max_monthly_increase: arguments.max_monthly_increase.clone(),
        deny: deny.into_iter().map(Deny::from).collect(),
        ..Limits::default()
    };
    let mut whole = match &arguments.policy {
        Some(file) => policy(file, today)?,
        None => beside(inputs, today)?,
    };
    whole.limits.insert(0, options);
    Ok(whole)
}

/// The policies beside plans, each for the plans of its folder.
fn beside(inputs: &[PlanInput], today: Date) -> Result<Policy, Error> {
    let mut plans_of: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
    for (index, input) in inputs.iter().enumerate() {
        let file = input.folder.join(FILE);
        if file.is_file() {
            plans_of.entry(file).or_default().insert(index);
        }
    }
    let mut whole = Policy::default();
    for (file, plans) in plans_of {
        let found = policy(&file, today)?;
        let plans = Some(plans);
        whole.limits.extend(found.limits.into_iter().map(|limits| Limits { plans: plans.clone(), ..limits }));
        whole.exceptions.extend(found.exceptions.into_iter().map(|one| Exception { plans: plans.clone(), ..one }));
    }
    Ok(whole)
}

fn policy(file: &Path, today: Date) -> Result<Policy, Error> {
    let place = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|source| Error::Read { place: place.clone(), source })?;
    Policy::read(&text, today).map_err(|source| Error::NotAPolicy { place, source })
}
