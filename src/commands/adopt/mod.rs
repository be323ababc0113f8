//! `terraform-provider-damodel adopt`: import blocks and configuration for existing objects of the account.
//!
//! It uses the provider in this process: list resources find the objects, the framework generates their configuration
//! as it does for a core, and the provider's validation checks the configuration before it is written.

mod draft;
mod folder;
mod provider;

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
};

use clap::{Parser, ValueEnum, builder::PossibleValue};
use regex::Regex;

use self::{
    draft::Draft,
    provider::{ConfiguredProvider, LeftOut},
};
use super::Failure;
use crate::{api::ObjectKind, provider::Environment, review::visible};

/// Writes import blocks and the configuration of the objects that the account already has.
///
/// The next plan imports all of them and changes nothing. Released objects are left out. Set DAMODEL_BASE_URL and
/// DAMODEL_API_TOKEN. Needs Terraform 1.5 or OpenTofu 1.6; Terraform 1.14 and newer have `terraform query` for this
/// too.
///
/// Exit codes: 0 the files were written; 1 the account cannot be read or the folder has a configuration; 2 wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "adopt")]
pub struct Arguments {
    /// The folder for the files, without a configuration; created if it does not exist.
    #[arg(long, default_value = "adopted", value_name = "DIR")]
    pub out: PathBuf,
    /// Only objects of this kind. May be repeated.
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<ObjectKind>,
    /// Only objects whose name matches this regular expression.
    #[arg(long, value_name = "REGEX")]
    pub name: Option<Regex>,
    /// Only objects in this region. Cloud disks have no region.
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Allows plain http to any address, as the provider's argument of this name.
    #[arg(long)]
    pub allow_http: bool,
    /// An extra root certificate (PEM), as the provider's argument of this name.
    #[arg(long, value_name = "FILE")]
    pub ca_certificate_file: Option<PathBuf>,
}

/// Writes the account's objects, and prints the written files and the next steps.
///
/// # Errors
///
/// If the folder has a configuration, the service does not answer, or a file cannot be written. No file is written
/// then.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let said = adopt(&arguments, Environment::of_process(), |_, _| true).await?;
    let mut out = io::stdout();
    out.write_all(said.to_string().as_bytes()).and_then(|()| out.flush()).map_err(Failure::terminal)
}

/// Writes only the objects that `is_meant` selects. Returns the summary.
///
/// # Errors
///
/// As [`run`].
pub async fn only(
    arguments: &Arguments,
    environment: Environment,
    is_meant: impl Fn(ObjectKind, &str) -> bool,
) -> Result<String, Failure> {
    Ok(adopt(arguments, environment, is_meant).await?.to_string())
}

async fn adopt(
    arguments: &Arguments,
    environment: Environment,
    is_meant: impl Fn(ObjectKind, &str) -> bool,
) -> Result<Summary, Failure> {
    // Other paths are shown as they were given.
    let is_in_home = arguments.out.starts_with("~");
    let out = if is_in_home { environment.path(&arguments.out)? } else { arguments.out.clone() };
    folder::check(&out)?;
    let provider = ConfiguredProvider::new(arguments, environment).await?;
    let mut summary = Summary::new(out.clone());
    let mut drafts: Vec<Draft> = Vec::new();
    for (position, kind) in asked(&arguments.kind).enumerate() {
        let found = provider.objects(kind, arguments).await.map_err(|told| {
            // If other kinds could be listed before, the account may not list this one.
            let advice = format!("To continue without the {}s, select the other kinds with --kind.", kind.noun());
            refused(&if position > 0 { format!("{told}\n{advice}") } else { told })
        })?;
        summary.without_region += found.without_region;
        for object in found.objects.iter().filter(|object| is_meant(kind, &object.id)) {
            match provider.draft(kind, object) {
                Ok(draft) => drafts.push(draft),
                Err(why) => summary.left_out.push(LeftOut { kind, id: object.id.clone(), why }),
            }
        }
    }
    draft::name(&mut drafts);
    if !drafts.is_empty() {
        summary.files = folder::write(&out, &drafts, &provider.arguments)?;
    }
    summary.drafts = drafts;
    Ok(summary)
}

/// The failure when the provider or the service returned errors.
fn refused(told: &str) -> Failure {
    Failure::new(format!("{told}\nNothing was written"))
}

/// The written objects and files, and the next steps.
#[derive(Debug)]
struct Summary {
    directory: PathBuf,
    drafts: Vec<Draft>,
    /// The names of the files.
    files: Vec<String>,
    left_out: Vec<LeftOut>,
    /// The number of objects left out because they have no region.
    without_region: usize,
}

impl Summary {
    /// An empty summary.
    fn new(directory: PathBuf) -> Self {
        Self { directory, drafts: Vec::new(), files: Vec::new(), left_out: Vec::new(), without_region: 0 }
    }

    fn counts(&self) -> String {
        let count = |kind: ObjectKind| (kind, self.drafts.iter().filter(|draft| draft.kind == kind).count());
        let some = ObjectKind::ALL.into_iter().map(count).filter(|(_, count)| *count > 0);
        some.map(|(kind, count)| counted(count, kind.noun())).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display();
        if self.drafts.is_empty() {
            writeln!(formatter, "Nothing to adopt: no object in the account matches. No file was written.")?;
        } else {
            writeln!(formatter, "Wrote {} to {directory}: {}.", self.counts(), self.files.join(", "))?;
        }
        for draft in self.drafts.iter().filter(|draft| !draft.untold.is_empty()) {
            let names: Vec<&str> = draft.untold.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            writeln!(formatter, "{}: the service does not report {names}; set the true values.", draft.address())?;
        }
        if self.without_region > 0 {
            let objects = counted(self.without_region, "object");
            writeln!(formatter, "Left out {objects}: their region is unknown, and --region was given.")?;
        }
        for left in &self.left_out {
            writeln!(
                formatter,
                "Left out {} {}: {}",
                left.kind.noun(),
                visible(&left.id, LONGEST),
                visible(&left.why, LONGEST)
            )?;
        }
        if !self.drafts.is_empty() {
            let number = self.drafts.len();
            writeln!(
                formatter,
                "\nNext, in {directory}:\n  terraform init\n  terraform plan    # {number} to import, 0 to add, 0 to \
                 change, 0 to destroy\n  terraform apply\nAfter that, imports.tf can be deleted."
            )?;
        }
        Ok(())
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The longest text of the service in a line, in characters.
const LONGEST: usize = 400;

/// The requested kinds without duplicates; all if none is named.
fn asked(named: &[ObjectKind]) -> impl Iterator<Item = ObjectKind> {
    ObjectKind::ALL.into_iter().filter(|kind| named.is_empty() || named.contains(kind))
}

impl ValueEnum for ObjectKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        framework::{self, Ends, Server},
        provider::{Damodel, words::type_name},
    };

    #[test]
    fn what_was_left_out_is_told_and_obeyed_by_no_terminal() {
        let left = LeftOut { kind: ObjectKind::CloudDisk, id: "801".to_owned(), why: "size\u{1b}[2J".to_owned() };
        let summary =
            Summary { left_out: vec![left], without_region: 2, ..Summary::new(PathBuf::from("out")) }.to_string();
        let expected = "Nothing to adopt: no object in the account matches. No file was written.\nLeft out 2 objects: \
                        their region is unknown, and --region was given.\nLeft out cloud disk 801: size\u{fffd}[2J\n";
        assert_eq!(summary, expected);
    }

    #[test]
    fn everything_that_can_be_listed_can_be_adopted() {
        let server = Server::new(Damodel::new(Environment::default()), Ends::default());
        let mut kinds: Vec<_> = ObjectKind::ALL.into_iter().map(type_name).collect();
        kinds.sort_unstable();
        let listed = server.registry().of(framework::OfferKind::ListResource);
        assert_eq!(kinds, listed.map(|entry| entry.name).collect::<Vec<_>>());
    }

    #[test]
    fn a_kind_is_asked_for_once() {
        assert_eq!(
            asked(&[ObjectKind::CloudDisk, ObjectKind::Instance, ObjectKind::CloudDisk]).collect::<Vec<_>>(),
            [ObjectKind::Instance, ObjectKind::CloudDisk]
        );
    }
}
