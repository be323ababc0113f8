//! `terraform-provider-damodel adopt`: import blocks and the configuration of what the account already has.
//!
//! It is made of the provider's own pieces, in this process: the list resources find what there is, what generates a
//! configuration for a core generates it here, and the checks that judge every configuration judge it before it is
//! written.

mod draft;
mod folder;
mod hcl;
mod inventory;
mod kind;
mod label;
mod summary;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Parser;
use regex::Regex;

pub use self::kind::Kind;
use self::{
    draft::Draft,
    folder::Folder,
    inventory::{Inventory, LeftOut},
    summary::Summary,
};
use crate::provider::Environment;

/// Writes import blocks and the configuration of what the account already has.
///
/// The plan that follows imports everything and changes nothing. What is Released is left out, and no file is
/// overwritten. The service is that of DAMODEL_BASE_URL and DAMODEL_API_TOKEN. For Terraform from 1.5 and OpenTofu from
/// 1.6; newer ones also have `terraform query`.
#[derive(Clone, Debug, Parser)]
#[command(name = "adopt")]
pub struct Arguments {
    /// Where the files are written; made if it is not there.
    #[arg(long, default_value = ".", value_name = "DIR")]
    pub out: PathBuf,
    /// Only things of this kind. May be repeated.
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<Kind>,
    /// Only things whose name matches this regular expression.
    #[arg(long, value_name = "REGEX")]
    pub name: Option<Regex>,
    /// Only things in this region. Cloud disks have none.
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Allows plain http to any address, as the provider's argument of this name.
    #[arg(long)]
    pub allow_http: bool,
    /// An extra root certificate (PEM), as the provider's argument of this name.
    #[arg(long, value_name = "FILE")]
    pub ca_certificate_file: Option<PathBuf>,
}

/// Why nothing could be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files that would have to be written are there.
    #[error(
        "{} already there, and no file is overwritten: {}. Nothing was written. Move them away, or name another \
         folder with --out",
        if files.len() == 1 { "a file is" } else { "files are" },
        files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Exists {
        /// The files.
        files: Vec<PathBuf>,
    },
    /// A file or folder is out of reach.
    #[error("read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The provider or the service refused.
    #[error("{told}\nNothing was written")]
    Refused {
        /// What it said.
        told: String,
    },
    /// Standard output is out of reach.
    #[error("talk to the terminal")]
    Terminal(#[source] io::Error),
    /// A file cannot be written. Nothing of this run is left.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Where other kinds could be listed, it is this one that the account may not see.
    fn of_kind(self, kind: Kind, listed_before: usize) -> Self {
        match self {
            Self::Refused { told } if listed_before > 0 => {
                let advice = format!("To go on without the {}s, name the other kinds with --kind.", kind.noun());
                Self::Refused { told: format!("{told}\n{advice}") }
            }
            other => other,
        }
    }
}

/// Writes what the account has, and says what was written and what to do next.
///
/// # Errors
///
/// When the service cannot be asked, or a file is there already or cannot be written. Nothing is written then.
pub async fn run(arguments: Arguments) -> Result<(), Error> {
    let said = adopt(&arguments, Environment::of_process(), |_, _| true).await?;
    let mut out = io::stdout();
    out.write_all(said.to_string().as_bytes()).and_then(|()| out.flush()).map_err(Error::Terminal)
}

/// Writes only what is meant of what the account has. Returns what is to be said of it.
///
/// # Errors
///
/// As [`run`].
pub async fn only(
    arguments: &Arguments,
    environment: Environment,
    is_meant: impl Fn(Kind, &str) -> bool,
) -> Result<String, Error> {
    Ok(adopt(arguments, environment, is_meant).await?.to_string())
}

async fn adopt(
    arguments: &Arguments,
    environment: Environment,
    is_meant: impl Fn(Kind, &str) -> bool,
) -> Result<Summary, Error> {
    let inventory = Inventory::open(arguments, environment).await?;
    let mut summary = Summary::new(arguments.out.clone());
    let mut drafts: Vec<Draft> = Vec::new();
    for (position, kind) in Kind::asked(&arguments.kind).into_iter().enumerate() {
        let found = inventory.things(kind, arguments).await.map_err(|error| error.of_kind(kind, position))?;
        summary.without_region += found.without_region;
        for thing in found.things.iter().filter(|thing| is_meant(kind, &thing.id)) {
            match inventory.draft(kind, thing) {
                Ok(draft) => drafts.push(draft),
                Err(why) => summary.left_out.push(LeftOut { kind, id: thing.id.clone(), why }),
            }
        }
    }
    let folder = Folder::open(&arguments.out)?;
    summary.namesakes = label::name(&mut drafts, folder.resources());
    if !drafts.is_empty() {
        summary.lacks_requirement = folder.lacks_requirement();
        summary.files = folder.write(&drafts, &inventory.provider_arguments())?;
    }
    summary.drafts = drafts;
    Ok(summary)
}
