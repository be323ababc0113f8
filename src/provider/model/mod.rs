//! The data source `damodel_model` and the function `model_memory`: the header of a model file, and the memory that the
//! model needs.

mod memory;
mod record;

use std::future::Future;

use serde::Deserialize;
use tokio::time::timeout_at;

pub(super) use self::memory::ModelMemory;
use self::record::attributes;
use super::{
    NoHome, ProviderClient, StepContext,
    login::{Access, InstanceFiles, Login, Ssh, SshFailure, WriteOnly, schema},
    meanings::{PROXY, UNUSABLE_PROXY, certificate_advice},
    model_files::{FileError, LocalFiles, RemoteFiles},
};
use crate::{
    api::{RemoteError, RemoteFile},
    framework::{
        Attr, DataSource, Diagnostic, Diagnostics, Outcome, Path, Private, Result, Schema, Type, Value, from_value,
        schema::{Attribute, Validator},
        to_value,
    },
    llama::{self, GgufModel, ModelError},
};

#[derive(Debug)]
pub(super) struct File;

/// The arguments of the data source.
#[derive(Debug, Deserialize)]
struct ModelPlace {
    path: Attr<String>,
    url: Attr<String>,
    instance_id: Attr<String>,
    ssh: Attr<Ssh>,
    host_key: Attr<String>,
}

impl DataSource for File {
    type Client = ProviderClient;
    type Model = Value;

    fn type_name(&self) -> &'static str {
        "damodel_model"
    }

    fn schema(&self) -> Schema {
        let mut all = vec![
            Attribute::optional(
                "path",
                Type::String,
                "The GGUF file: on the computer that runs Terraform, or, with `instance_id` or `ssh`, in the \
                 instance. `~/` is the user's home.",
            )
            .validate(Validator::text("a path", |path| !path.trim().is_empty() && !path.contains(['\n', '\r', '\0']))),
            Attribute::optional(
                "url",
                Type::String,
                "The address of the GGUF file: `https`, or `http` on a loopback address. The server must support \
                 range requests. Redirects are followed, and no credentials are sent.",
            ),
        ];
        all.extend(schema::visit(schema::Visitor::DataSource));
        all.extend(attributes());
        Schema::new(
            "The header of a GGUF model file. Only the header is read, and at most 256 MiB; of a split model \
             (`…-00001-of-00003.gguf`) the headers of all files are read. The function `model_memory` computes from it \
             how much memory a server needs.",
            all,
        )
    }

    fn validate(&self, config: &Value, diagnostics: &mut Diagnostics) {
        let config: ModelPlace = match from_value(config) {
            Ok(config) => config,
            Err(bug) => return diagnostics.extend(bug.into()),
        };
        let may_be_in_an_instance = !config.instance_id.is_null() || !config.ssh.is_null();
        let is_in_an_instance = config.instance_id.is_known() || config.ssh.is_known();
        match (&config.path, &config.url) {
            (Attr::Null, Attr::Null) => {
                diagnostics.error_at(Path::to("path"), "Missing required argument", "Set path or url.")
            }
            (Attr::Known(_), Attr::Known(_)) => {
                diagnostics.error_at(Path::to("url"), "Conflicting arguments", "Set either path or url, not both.");
            }
            (Attr::Null, _) if is_in_an_instance => diagnostics.error_at(
                Path::to("url"),
                "Conflicting arguments",
                "instance_id and ssh need path, a file in an instance. Set path, or remove them.",
            ),
            _ => {}
        }
        if let Some(Err(error)) = config.url.as_str().map(RemoteFile::address) {
            diagnostics.push(*unreadable("at url", &error.into(), "url"));
        }
        if may_be_in_an_instance {
            Login::validate(&config.ssh, !config.instance_id.is_null(), &WriteOnly::default(), diagnostics);
        } else if config.host_key.is_known() {
            let text = "host_key needs instance_id or ssh. Set one of them, or remove host_key.";
            diagnostics.error_at(Path::to("host_key"), "Conflicting arguments", text);
        }
    }

    async fn read(&self, mut config: Value, context: StepContext) -> Result<Outcome<Value>> {
        let place = from_value(&config)?;
        let mut warnings = Diagnostics::new();
        let read = Box::pin(read(&place, &context, &mut warnings)).await;
        let model = to_value(&read.map_err(|failed| Diagnostics::from(failed).with(warnings.clone()))?)?;
        for attribute in attributes() {
            config.set_attribute(&attribute.name, model.attribute(&attribute.name).clone());
        }
        Ok(Outcome::present(config, Private::default()).with(warnings))
    }
}

async fn read(
    config: &ModelPlace,
    context: &StepContext,
    warnings: &mut Diagnostics,
) -> Result<GgufModel, Box<Diagnostic>> {
    if let Some(url) = config.url.as_str() {
        let file = RemoteFile::new(url, context.client.api.settings());
        let file = file.map_err(|error| unreadable("at url", &error.into(), "url"))?.until(context.deadline);
        let path = file.path().to_owned();
        return in_time(RemoteFiles(file).read(), &path, "url", context).await;
    }
    let path = config.path.as_str().unwrap_or_default();
    if config.instance_id.is_null() && config.ssh.is_null() {
        let file = context.client.environment.path(path);
        let homeless = |error: NoHome| Diagnostic::error(format!("Cannot read model {path}"), error.to_string());
        let file = file.map_err(|error| Box::new(homeless(error).at(Path::to("path"))))?;
        let file = file.to_str().ok_or_else(|| unreadable(path, &FileError::NotAFile, "path"))?;
        return in_time(llama::read_model(&LocalFiles, file), file, "path", context).await;
    }
    let access = Access::of_configured(&config.instance_id, context).await.map_err(Box::new)?;
    let login = Login::visit(&config.ssh, &config.host_key);
    let tried = format!("read model {path}");
    let (_link, session) = login.open(access.as_ref(), &tried, context, warnings).await?;
    in_time(llama::read_model(&InstanceFiles(&session), path), path, "path", context).await
}

/// Reads until the operation ends.
async fn in_time(
    reading: impl Future<Output = Result<GgufModel, ModelError<FileError>>>,
    name: &str,
    argument: &str,
    context: &StepContext,
) -> Result<GgufModel, Box<Diagnostic>> {
    let stopped = |why: &str| {
        let text = "Run the plan again.";
        Box::new(Diagnostic::error(format!("Cannot read model {name}: {why}"), text).at(Path::to(argument)))
    };
    tokio::select! {
        biased;
        () = context.stopping.cancelled() => Err(stopped("the operation was stopped")),
        read = timeout_at(context.deadline, reading) => match read {
            Err(_) => Err(stopped("timed out")),
            Ok(read) => read.map_err(|error| failed(name, &error, argument)),
        },
    }
}

fn failed(name: &str, error: &ModelError<FileError>, argument: &str) -> Box<Diagnostic> {
    match error {
        ModelError::Source { file, error } if file == name => unreadable(name, error, argument),
        ModelError::Source { file, error } => unreadable(&format!("{name}, part {file}"), error, argument),
        ModelError::Fault { .. } => {
            let text = format!(
                "{}. Check that this is a complete GGUF file of a language model.",
                super::words::capitalized(&error.to_string())
            );
            Box::new(Diagnostic::error(format!("Cannot read model {name}"), text).at(Path::to(argument)))
        }
    }
}

fn unreadable(name: &str, error: &FileError, argument: &str) -> Box<Diagnostic> {
    if let FileError::Ssh(error) = error {
        let tried = format!("read model {name}");
        return Box::new(SshFailure { error, tried, now: String::new() }.diagnostic());
    }
    let advice = match error {
        FileError::Remote(error) => match error {
            RemoteError::NoRanges => {
                "A file is never downloaded whole for its header. Use a server that supports range requests, or a \
                 local copy with path."
            }
            RemoteError::Impossible(_) => "Check ca_certificate_file of the provider.",
            RemoteError::Connection(cause) | RemoteError::Lookup(cause) if cause.proxy().is_some() => PROXY,
            RemoteError::Connection(cause) | RemoteError::Lookup(cause) if cause.unusable_proxy().is_some() => {
                UNUSABLE_PROXY
            }
            RemoteError::Lookup(_) => "Check the host name in url, and the DNS of this computer.",
            RemoteError::Untrusted(cause) => certificate_advice(cause.connect_failure()).unwrap_or(
                "Set ca_certificate_file of the provider to the certificate authority that signed the server's \
                 certificate.",
            ),
            RemoteError::Connection(_) => "Check host and port in url, the network and proxies.",
            RemoteError::Limited { .. } => "Run it again later, or with a lower -parallelism.",
            RemoteError::Redirect(_) => "Set url to the final address, with https.",
            RemoteError::Changed => {
                "Set url to the address of a single server, or path to a copy. If the file is being replaced, run the \
                 plan again when it is complete."
            }
            _ => "Check url, and that the file can be read without credentials.",
        },
        _ => "Check path.",
    };
    let text = format!("{}. {advice}", super::words::capitalized(&error.to_string()));
    Box::new(Diagnostic::error(format!("Cannot read model {name}"), text).at(Path::to(argument)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_pace_is_no_matter_of_credentials() {
        let error = FileError::Remote(RemoteError::Limited { wait: None });
        let text = unreadable("m.gguf", &error, "url").detail;
        assert!(text.contains("it limits the number of requests. Run it again later"), "{text}");
    }
}
