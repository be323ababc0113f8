//! `terraform-provider-damodel docs`: docs/ in the layout of the registry, made from the schemas and the examples
//! (plugin protocol, documentation layout).
//!
//! A page is a list of paragraphs; what stands in them comes from the schema that the core gets too, so that a new
//! resource needs nothing here. Guides are written by hand and left alone.

mod attribute;
mod examples;
mod folder;
mod function;
mod index;
mod page;
mod schema;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
};

use clap::Parser;

use self::{
    examples::Examples,
    folder::{Difference, Folder},
    page::Kind,
};
use crate::{
    framework::{self, Ends, Server},
    provider::{Damodel, Environment},
};

/// Writes the registry's documentation from the schemas and the examples.
///
/// Run it in the root of the repository.
///
/// Exit codes: 0 the pages were written, or are current; 1 a page cannot be written or, with --check, is not current; 2
/// wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "docs")]
pub struct Arguments {
    /// Fails when the documentation is not current, and writes nothing.
    #[arg(long)]
    pub check: bool,
    /// Where the documentation is. The guides in it are written by hand, and left as they are.
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub dir: PathBuf,
    /// Where the examples are that the pages show.
    #[arg(long, default_value = "examples", value_name = "DIR")]
    pub examples: PathBuf,
}

/// Why the documentation could not be written, or is not current.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is out of reach. Usual cause: another directory than the root of the repository, or a thing without its
    /// example.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The documentation is not what the schemas and examples make.
    #[error("the documentation is not current: {}. Run `terraform-provider-damodel docs`", listed(differences))]
    Stale {
        /// The files that differ, with how.
        differences: Vec<String>,
    },
    /// Standard output is out of reach.
    #[error("cannot write to the terminal")]
    Terminal(#[source] io::Error),
    /// A file cannot be written or removed.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Writes the documentation, or checks that it is current.
///
/// # Errors
///
/// When a file is out of reach; and when the documentation is checked, and is not current.
pub async fn run(arguments: Arguments) -> Result<(), Error> {
    let server = Server::new(Damodel::new(Environment::default()), Ends::default());
    let pages = pages(&server, &Examples::new(arguments.examples))?;
    let folder = Folder::new(arguments.dir);
    let differences = folder.differences(&pages)?;
    let described = differences.iter().map(Difference::to_string).collect();
    if arguments.check {
        return if differences.is_empty() { Ok(()) } else { Err(Error::Stale { differences: described }) };
    }
    for difference in &differences {
        folder.settle(difference, &pages)?;
    }
    let said = format!("{} pages, {} changed\n", pages.len(), described.len());
    io::stdout().write_all(said.as_bytes()).map_err(Error::Terminal)
}

/// All pages, by their path in the folder.
fn pages(server: &Server<Damodel>, examples: &Examples) -> Result<BTreeMap<PathBuf, String>, Error> {
    let mut pages = BTreeMap::from([(PathBuf::from("index.md"), index::page(server, examples)?)]);
    for kind in Kind::ALL {
        for entry in server.registry().of(kind.offered) {
            pages.insert(
                kind.path(entry.name),
                page::page(kind, entry.name, &entry.schema, entry.identity.as_ref(), examples)?,
            );
        }
    }
    for entry in server.registry().of(framework::Kind::Function) {
        if let Some(signature) = &entry.signature {
            pages.insert(function::path(entry.name), function::page(entry.name, signature, examples)?);
        }
    }
    Ok(pages)
}

fn listed(differences: &[String]) -> String {
    differences.join(", ")
}

#[cfg(test)]
mod tests;
