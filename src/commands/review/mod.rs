//! `terraform-provider-damodel review`: a report of plans for a pull request, and a gate.

mod inputs;
mod sources;

use std::{
    collections::BTreeSet,
    fs,
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, ValueEnum};
use jiff::{Timestamp, civil::Date, tz::TimeZone};

use self::{
    inputs::PlanInput,
    sources::{Root, Sources},
};
use super::{Failure, wrong_usage};
use crate::{
    provider::Environment,
    review::{Facts, Format, Limits, Money, Policy, Review, Rule, Style, decoded, render, visible},
};

/// The exit code for a violated gate.
const VIOLATED: u8 = 3;

/// The usual name of a policy.
const POLICY: &str = "review.toml";

/// Reports what plans cost, destroy, replace and buy; with a policy it is a gate.
///
/// The input is the output of `terraform show -json PLANFILE` or `tofu show -json PLANFILE`, for a plan that was saved
/// with `plan -out=PLANFILE`.
///
/// --max-monthly-increase, --deny and --policy make it a gate. An errored or incomplete plan, as with -target, violates
/// it too. OpenTofu, and Terraform before 1.8, do not mark incomplete plans: such a plan is incomplete if it has no
/// entry for an object of the state.
///
/// Exit codes: 0 the report was written, and the gate is not violated; 3 the report was written, and the gate is
/// violated or parts of a plan cannot be read; 1 an input is not a plan; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "review")]
pub struct Arguments {
    /// Plans as JSON, or folders of such files; `-` reads one from standard input. The same path counts once.
    #[arg(value_name = "PLAN.json|DIR|-", required = true)]
    pub plans: Vec<PathBuf>,
    /// The form of the report: markdown, text, html, json or sarif. With =FILE it is written to a file; repeated, the
    /// option writes several reports. Default: text on a terminal, and elsewhere Markdown, which fits a comment of
    /// 65,536 characters.
    #[arg(long, value_parser = report, value_name = "FORMAT[=FILE]")]
    pub format: Vec<Report>,
    /// The folder of the configuration: findings get their file and line.
    #[arg(long, value_name = "DIR")]
    pub config_dir: Option<PathBuf>,
    /// The name of the report of one plan, also in a hidden marker in Markdown and HTML, so that a program can find its
    /// comment again.
    #[arg(long, value_name = "NAME", value_parser = id)]
    pub id: Option<String>,
    /// The unit of sums: 1 to 8 letters from A to Z, or one currency sign. The API has no currency.
    #[arg(long, value_name = "UNIT", value_parser = currency)]
    pub currency: Option<String>,
    /// Fails when the increases of the plans add up to more than this a month (730 hours), in the service's currency,
    /// or when a price is unknown. Decreases do not count.
    #[arg(long, value_name = "N")]
    pub max_monthly_increase: Option<Money>,
    /// Fails when the plans do any of these. May be repeated.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…")]
    pub deny: Vec<Rule>,
    /// A policy (TOML). Its exceptions also apply to the options. No other policy is used.
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
}

/// A report that is written.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its form.
    pub format: Format,
    /// Its file; `None` for standard output.
    pub file: Option<PathBuf>,
}

/// Reads plans, and writes the report to standard output or files, and violations also to standard error.
///
/// # Errors
///
/// If an input is not a plan; nothing is written then.
pub async fn run(mut arguments: Arguments) -> Result<ExitCode, Failure> {
    let is_terminal = io::stdout().is_terminal();
    if arguments.format.is_empty() {
        let format = if is_terminal { Format::Text } else { Format::Markdown };
        arguments.format.push(Report { format, file: None });
    }
    let mut places = BTreeSet::new();
    if !arguments.format.iter().all(|report| places.insert(&report.file)) {
        let failure = Failure::new("two reports for one place: set FILE in --format FORMAT=FILE, another one for each");
        return wrong_usage(&failure, &mut io::stderr());
    }
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    review(&arguments, is_terminal, today, &mut io::stdin(), &mut io::stdout(), &mut io::stderr())
}

fn review(
    arguments: &Arguments,
    is_terminal: bool,
    today: Date,
    input: &mut impl Read,
    out: &mut impl Write,
    told: &mut impl Write,
) -> Result<ExitCode, Failure> {
    let environment = Environment::of_process();
    let mut style = Style { id: arguments.id.clone(), currency: arguments.currency.clone(), ..Style::default() };
    let inputs = inputs::read(&arguments.plans, input)?;
    let policy = policy(arguments, &inputs, today)?;
    let sources = arguments.config_dir.as_deref().map(|folder| Sources::read(folder, environment.directory()));
    let sources = sources.transpose()?;
    for PlanInput { file, facts } in &inputs {
        style.plan_files.extend(file.as_ref().map(|file| {
            let root = Root::of(file.parent().unwrap_or_else(|| Path::new("")), environment.directory());
            (facts.name.clone(), root.name(file))
        }));
    }
    let plans: Vec<Facts> = inputs.into_iter().map(|input| input.facts).collect();
    let review = Review::new(&plans, &policy, |finding| Some(sources.as_ref()?.locate(finding.address)));
    for Report { format, file } in &arguments.format {
        let is_coloured = file.is_none() && is_terminal && console::colors_enabled();
        style = Style { format: *format, is_coloured, ..style };
        let text = render(&review, &style).map_err(|error| Failure::because("cannot write the report", error))?;
        match file {
            Some(file) => fs::write(file, text).map_err(|error| Failure::writing(file.display(), error))?,
            None => out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)?,
        }
    }
    for warning in sources.iter().flat_map(Sources::warnings) {
        writeln!(told, "warning: {warning}").map_err(Failure::terminal)?;
    }
    for violation in review.violations() {
        let finding = &violation.finding;
        let parts = finding.plan.map(str::to_owned).into_iter().chain(finding.address.map(ToString::to_string));
        let place: String = parts.map(|part| visible(&part, 200) + ": ").collect();
        let message = visible(&violation.message(), 400);
        writeln!(told, "violation: {}: {place}{message}", finding.rule).map_err(Failure::terminal)?;
    }
    let is_violated = review.violations().next().is_some();
    Ok(if is_violated { ExitCode::from(VIOLATED) } else { ExitCode::SUCCESS })
}

/// The limits of the options, with the policy of --policy. A file that is found beside a plan comes from whom the gate
/// is for, so it is only told.
fn policy(arguments: &Arguments, inputs: &[PlanInput], today: Date) -> Result<Policy, Failure> {
    let mut policy = match &arguments.policy {
        Some(file) => {
            let place = file.display();
            let document = fs::read(file).map_err(|error| Failure::reading(&place, error))?;
            let title = format!("cannot read {place} as a policy");
            let text = decoded(&document).map_err(|error| Failure::because(&title, error))?;
            let text = str::from_utf8(&text).map_err(|error| Failure::because(&title, error))?;
            Policy::read(text, today).map_err(|error| Failure::because(&title, error))?
        }
        None => Policy::default(),
    };
    let (max_monthly_increase, deny) = (arguments.max_monthly_increase.clone(), arguments.deny.clone());
    policy.is_gate |= max_monthly_increase.is_some() || !deny.is_empty();
    policy.limits.insert(0, Limits { matching: None, max_monthly_increase, deny });
    let named = arguments.policy.as_deref().map(inputs::FileId::of).transpose();
    let named = named.map_err(|error| Failure::reading(POLICY, error))?;
    let folders =
        inputs.iter().map(|input| input.file.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new("")));
    let beside: BTreeSet<PathBuf> = folders.map(|folder| folder.join(POLICY)).collect();
    let is_named = |file: &PathBuf| named.is_some() && inputs::FileId::of(file).ok() == named;
    let found = beside.into_iter().filter(|file| file.symlink_metadata().is_ok() && !is_named(file));
    policy.not_read = found.map(|file| file.display().to_string()).collect();
    Ok(policy)
}

/// A form, and the file after `=`.
fn report(text: &str) -> Result<Report, String> {
    let (format, file) = text.split_once('=').map_or((text, None), |(format, file)| (format, Some(file)));
    if file == Some("") {
        return Err("no file after =".to_owned());
    }
    let format = Format::from_str(format, false)
        .map_err(|_| "not markdown, text, html, json or sarif, alone or with =FILE".to_owned())?;
    Ok(Report { format, file: file.map(PathBuf::from) })
}

/// A name that cannot end the comment around it.
fn id(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ' ');
    if name.is_empty() || name.len() > 100 || !name.chars().all(is_plain) || name.contains("--") {
        return Err("not a name of letters, digits, spaces and -_./ (at most 100, without --)".to_owned());
    }
    Ok(name.to_owned())
}

/// A unit: a currency's code, or one sign.
fn currency(unit: &str) -> Result<String, String> {
    let is_code = (1..=8).contains(&unit.len()) && unit.chars().all(|c| c.is_ascii_alphabetic());
    let is_sign = matches!(unit, "$" | "¢" | "£" | "¤" | "¥" | "฿" | "₫" | "€" | "₩" | "₹" | "₽" | "₿" | "￥");
    if is_code || is_sign {
        Ok(unit.to_owned())
    } else {
        Err("not 1 to 8 letters from A to Z, nor one currency sign".to_owned())
    }
}
