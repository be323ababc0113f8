//! Arguments of several commands: the access to the service, and the directory of pending records.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser},
};

use super::Failure;
use crate::{
    api::{BaseUrl, PlainHttp, Settings},
    creation::Journal,
    provider::{Environment, NoHome, loggable_fields, rules::certificates, token_of_environment},
};

/// How the service is reached. The token comes from the environment: other users can read command lines.
#[derive(Clone, Debug, Args)]
pub struct ServiceArguments {
    /// The service's base address.
    #[arg(long, env = "DAMODEL_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// Allows plain http to any address, as the provider's argument of this name.
    #[arg(long)]
    pub allow_http: bool,
    /// An extra root certificate (PEM), as the provider's argument of this name.
    #[arg(long, value_name = "FILE")]
    pub ca_certificate_file: Option<PathBuf>,
}

impl ServiceArguments {
    /// The client's settings.
    pub(super) fn settings(&self, environment: &Environment) -> Result<Settings, Failure> {
        let plain_http = if self.allow_http { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly };
        let address = self.base_url.as_deref().filter(|address| !address.trim().is_empty());
        let base_url = address.map(|address| BaseUrl::parse(address, plain_http)).transpose();
        let token = token_of_environment(environment).map_err(Failure::new)?;
        let roots = self.ca_certificate_file.as_deref().map(|file| {
            let path = environment.path(file)?;
            let content = fs::read(&path).map_err(|error| Failure::reading(path.display(), error))?;
            let text = "contains no line -----BEGIN CERTIFICATE-----. Pass root certificates in PEM format";
            certificates(&content).ok_or_else(|| Failure::new(format!("{} {text}", path.display())))
        });
        Ok(Settings {
            base_url: base_url.map_err(|error| Failure::because("cannot use the base address", error))?,
            token,
            max_retries: 2,
            extra_roots_pem: roots.transpose()?,
            proxies: environment.proxies(),
            loggable: loggable_fields(),
            ..Settings::default()
        })
    }
}

/// The default name of Terraform's data directory.
pub(super) const DATA_DIRECTORY: &str = ".terraform";

/// The pending records of a folder.
#[derive(Debug)]
pub(super) struct PendingFolder {
    pub(super) journal: Journal,
    /// Whether the user named the directory: then it must exist.
    pub(super) are_named: bool,
}

impl PendingFolder {
    /// The records in the named directory, or else below Terraform's data directory. Paths are resolved as in the
    /// provider, which ignores white space around the name; an empty one counts as unset.
    ///
    /// # Errors
    ///
    /// The home directory is not known.
    pub(super) fn find(named: Option<&Path>, data: &Path, environment: &Environment) -> Result<Self, NoHome> {
        let is_set = |path: &&Path| !path.as_os_str().is_empty();
        let named = named.map(|path| path.to_str().map_or(path, |text| Path::new(text.trim()))).filter(is_set);
        let directory = match named {
            Some(named) => environment.path(named)?,
            None => {
                let data = Some(data).filter(is_set).unwrap_or_else(|| Path::new(DATA_DIRECTORY));
                environment.directory().join(data).join("damodel-pending")
            }
        };
        Ok(Self { journal: Journal::new(directory), are_named: named.is_some() })
    }

    /// Their directory.
    pub(super) fn directory(&self) -> &Path {
        self.journal.directory()
    }
}

/// A parser that also accepts an empty variable.
pub(super) fn path_or_nothing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_what_it_means_to_the_provider() {
        let environment = Environment::made_of([("HOME", "/home/me")], PathBuf::from("/stack"));
        for (named, data, expected, are_named) in [
            (None, ".terraform", "/stack/.terraform/damodel-pending", false),
            (None, "", "/stack/.terraform/damodel-pending", false),
            (Some(""), "../data", "/stack/../data/damodel-pending", false),
            (Some("notes"), "data", "/stack/notes", true),
            (Some(" notes\r\n"), "data", "/stack/notes", true),
            (Some("\n"), "data", "/stack/data/damodel-pending", false),
            (Some("/notes"), "data", "/notes", true),
            (Some("~/notes"), "data", "/home/me/notes", true),
            (Some("~other/notes"), "data", "/stack/~other/notes", true),
        ] {
            let notes = PendingFolder::find(named.map(Path::new), Path::new(data), &environment).unwrap();
            assert_eq!((notes.directory(), notes.are_named), (Path::new(expected), are_named), "{named:?}");
        }
        let there = environment.within("inner");
        assert_eq!(
            PendingFolder::find(None, Path::new("x"), &there).unwrap().directory(),
            Path::new("/stack/inner/x/damodel-pending")
        );
    }
}
