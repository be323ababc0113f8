//! Arguments of the commands that ask the service, and the client's settings from them.

use std::{fs, io, path::PathBuf};

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    api::{BaseUrl, InvalidBaseUrl, PlainHttp, Settings, TokenSource},
    provider::Environment,
};

/// How the service is reached.
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
    /// The API token. Better left to the variable than written on a command line.
    #[arg(long, env = "DAMODEL_API_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub token: Option<SecretString>,
}

impl ServiceArguments {
    /// The client's settings. `unreadable` makes the error of a certificate file that cannot be read.
    pub(super) fn settings<E: From<InvalidBaseUrl>>(
        &self,
        environment: &Environment,
        unreadable: impl FnOnce(PathBuf, io::Error) -> E,
    ) -> Result<Settings, E> {
        let plain_http = if self.allow_http { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly };
        let address = self.base_url.as_deref().filter(|address| !address.is_empty());
        let token = self.token.as_ref().filter(|token| !token.expose_secret().is_empty());
        let roots = self.ca_certificate_file.as_deref().map(|file| {
            let path = environment.path(file);
            fs::read(&path).map_err(|error| unreadable(path, error))
        });
        Ok(Settings {
            base_url: address.map(|address| BaseUrl::parse(address, plain_http)).transpose()?,
            token: token.cloned().map(TokenSource::Value),
            max_retries: 2,
            extra_roots_pem: roots.transpose()?,
            ..Settings::default()
        })
    }
}
