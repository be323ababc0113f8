//! From the attributes to the job of the program in the instance.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

use super::model::LlamaServer;
use crate::{
    framework::{Attr, Diagnostic, Path, Secret, Value, to_value},
    llama::{self, Build, CompileSource, Job, REFERENCE, REPOSITORY, ServerPlace, SourceOrigin, absolute},
    provider::login::{Access, Ssh},
};

impl LlamaServer {
    /// The place of the server's records; `None` if an argument is unknown, as in a damaged state.
    pub(super) fn records(&self) -> Option<ServerPlace> {
        Some(ServerPlace {
            workspace: self.workspace.as_str()?.to_owned(),
            port: u16::try_from(*self.port.known()?).ok()?,
            instance: instance_name(&self.instance_id, &self.ssh)?,
        })
    }

    /// The job. `config` is the configuration, which has the write-only key, or the state itself. Paths begin at the
    /// `home`, if it is known: two spellings of a path are one job.
    ///
    /// # Errors
    /// An argument that is not known: a fault of ours, or a state that was edited.
    pub(super) fn job(&self, config: &Self, access: Option<&Access>, home: Option<&str>) -> Result<Job, Diagnostic> {
        let path = |path: String| home.map_or_else(|| path.clone(), |home| absolute(&path, home));
        let text = |attribute: &Attr<String>, name: &str| attribute.known().cloned().ok_or_else(|| missing(name));
        let option = |(name, value): (_, Option<_>)| Ok((name, value.ok_or_else(|| missing(name))?));
        let triggers = self.triggers.known().into_iter().flatten();
        Ok(Job {
            place: {
                let place = self.records().ok_or_else(|| missing("workspace"))?;
                ServerPlace { workspace: path(place.workspace), ..place }
            },
            model: path(text(&self.model, "model")?),
            downloads: Vec::new(),
            build: self.wanted_build(),
            package: config.package.known().cloned().map(path),
            source: match self.wanted_source() {
                CompileSource { origin: SourceOrigin::Path(tree), cuda_architectures } => {
                    CompileSource { origin: SourceOrigin::Path(path(tree)), cuda_architectures }
                }
                source => source,
            },
            gpu_name: access.and_then(|access| access.gpu_name.clone()),
            host: text(&self.host, "host")?,
            options: self.plain_options().map(option).collect::<Result<_, _>>()?,
            jinja: self.jinja.known() != Some(&false),
            metrics: self.metrics.known() != Some(&false),
            extra_args: self
                .extra_args
                .known()
                .into_iter()
                .flatten()
                .filter_map(|word| word.known().cloned())
                .collect(),
            environment: self.variables(),
            api_key: match self.key(config) {
                Some(key) if !llama::is_api_key(key.expose_secret()) => {
                    let text = format!("The API key has to be {}. This resource was not changed.", llama::API_KEY_RULE);
                    return Err(Diagnostic::error("Invalid API key", text).at(Path::to("api_key")));
                }
                key => key,
            },
            triggers: triggers
                .map(|(name, value)| (name.clone(), value.known().cloned().unwrap_or_default()))
                .collect(),
            probe_endpoint: self.probe.known().and_then(|probe| probe.endpoint.known()).cloned().unwrap_or_default(),
            restarts: self.restart_policy.as_str() != Some("never"),
        })
    }

    /// The plain options, each with its value; `None` if that is unknown.
    pub(super) fn plain_options(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        let server = to_value(self).unwrap_or(Value::Null);
        llama::PLAIN_ARGUMENTS.into_iter().map(move |name| {
            let value = match server.attribute(name) {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            };
            (name, value)
        })
    }

    /// The port that the server listens on.
    pub(super) fn listens(&self) -> u16 {
        self.port.known().and_then(|port| u16::try_from(*port).ok()).unwrap_or(llama::DEFAULT_PORT)
    }

    /// The key that the server asks of its clients.
    pub(super) fn key(&self, config: &Self) -> Option<SecretString> {
        self.api_key.known().or_else(|| config.api_key_wo.known()).map(Secret::trimmed)
    }

    /// The environment variables of the server.
    pub(super) fn variables(&self) -> BTreeMap<String, SecretString> {
        let variables = self.environment.known().into_iter().flatten();
        variables.filter_map(|(name, value)| Some((name.clone(), value.known()?.clone().into_inner()))).collect()
    }

    fn wanted_build(&self) -> Build {
        match self.build.as_str() {
            Some("prebuilt") => Build::Prebuilt,
            Some("source") => Build::Source,
            _ => Build::Auto,
        }
    }

    fn wanted_source(&self) -> CompileSource {
        let Some(source) = self.source.known() else {
            return CompileSource { origin: SourceOrigin::Default, cuda_architectures: Vec::new() };
        };
        let origin = match (source.path.as_str(), source.url.as_str(), source.reference.as_str()) {
            (Some(path), _, _) => SourceOrigin::Path(path.to_owned()),
            (None, None, None) => SourceOrigin::Default,
            (None, url, reference) => SourceOrigin::Git {
                url: url.unwrap_or(REPOSITORY).to_owned(),
                reference: match (url, reference) {
                    (_, Some(reference)) => reference.to_owned(),
                    (None, None) => REFERENCE.to_owned(),
                    // Another repository has other tags.
                    (Some(_), None) => llama::DEFAULT_BRANCH.to_owned(),
                },
            },
        };
        let architectures = source.cuda_architectures.known().into_iter().flatten();
        CompileSource {
            origin,
            cuda_architectures: architectures.filter_map(|architecture| architecture.known().cloned()).collect(),
        }
    }
}

/// The name of an instance by which its servers' records are kept: its uid, or the host and port of SSH.
fn instance_name(id: &Attr<String>, ssh: &Attr<Ssh>) -> Option<String> {
    let address = || Some(ssh.known()?.address()?.replace(':', "-"));
    if id.is_null() { address() } else { id.known().cloned() }
}

fn missing(name: &str) -> Diagnostic {
    Diagnostic::error("Missing required argument", format!("{name} has no value. This resource was not changed."))
        .at(Path::to(name))
}
