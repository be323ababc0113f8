//! The typed model of `damodel_llama_server`, and its private data, which has no secret.

use std::{collections::BTreeMap, time::Duration};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::{
    framework::{
        Attr, Private, Secret,
        timeouts::{Timeouts, parse_duration},
        value::Number,
    },
    llama::{Fingerprint, Job, JobReport, Trial, TrialProbe},
    provider::login::{Access, Login, Ssh, WriteOnly},
};

/// How long a start may take if the state does not say.
const READY: Duration = Duration::from_secs(10 * 60);

/// A `damodel_llama_server`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct LlamaServer {
    pub(super) id: Attr<String>,
    pub(super) instance_id: Attr<String>,
    pub(super) ssh: Attr<Ssh>,
    pub(super) ssh_private_key_wo: Attr<Secret>,
    pub(super) ssh_password_wo: Attr<Secret>,
    pub(super) api_key: Attr<Secret>,
    pub(super) api_key_wo: Attr<Secret>,
    pub(super) api_key_wo_version: Attr<i64>,
    pub(super) model: Attr<String>,
    pub(super) model_source: Attr<FileSource>,
    pub(super) model_source_token_wo: Attr<Secret>,
    pub(super) additional_files: Attr<Vec<Attr<AdditionalFile>>>,
    pub(super) build: Attr<String>,
    pub(super) package: Attr<String>,
    pub(super) workspace: Attr<String>,
    pub(super) source: Attr<BuildSource>,
    pub(super) ready_timeout: Attr<String>,
    pub(super) host: Attr<String>,
    pub(super) port: Attr<i64>,
    pub(super) context_size: Attr<i64>,
    pub(super) parallel: Attr<i64>,
    pub(super) gpu_layers: Attr<i64>,
    pub(super) flash_attention: Attr<String>,
    pub(super) cache_type_k: Attr<String>,
    pub(super) cache_type_v: Attr<String>,
    pub(super) jinja: Attr<bool>,
    pub(super) metrics: Attr<bool>,
    pub(super) extra_args: Attr<Vec<Attr<String>>>,
    pub(super) environment: Attr<BTreeMap<String, Attr<Secret>>>,
    pub(super) triggers: Attr<BTreeMap<String, Attr<String>>>,
    pub(super) probe: Attr<Probe>,
    pub(super) on_unreachable: Attr<String>,
    pub(super) on_failure: Attr<String>,
    pub(super) restart_policy: Attr<String>,
    pub(super) status: Attr<String>,
    pub(super) endpoint: Attr<String>,
    pub(super) base_url: Attr<String>,
    pub(super) model_name: Attr<String>,
    pub(super) build_used: Attr<String>,
    pub(super) host_key: Attr<String>,
    pub(super) process: Attr<Process>,
    pub(super) timeouts: Attr<Timeouts>,
}

/// The server that runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Process {
    pub(super) pid: Attr<i64>,
    pub(super) command_line: Attr<String>,
    pub(super) log_path: Attr<String>,
    pub(super) started_at: Attr<String>,
    pub(super) server_version: Attr<String>,
    pub(super) restarts: Attr<i64>,
    pub(super) supervised: Attr<bool>,
    pub(super) owner: Attr<String>,
    pub(super) last_exit: Attr<String>,
    pub(super) model_fingerprint: Attr<String>,
    pub(super) model_verified: Attr<bool>,
    pub(super) tokens_per_second: Attr<Number>,
}

/// Where a file is downloaded from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct FileSource {
    pub(super) url: Attr<String>,
    pub(super) sha256: Attr<String>,
}

/// A file beside the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct AdditionalFile {
    pub(super) path: Attr<String>,
    pub(super) url: Attr<String>,
    pub(super) sha256: Attr<String>,
}

/// Where a source build comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct BuildSource {
    pub(super) url: Attr<String>,
    #[serde(rename = "ref")]
    pub(super) reference: Attr<String>,
    pub(super) path: Attr<String>,
    pub(super) cuda_architectures: Attr<Vec<Attr<String>>>,
}

/// The request that decides whether the server serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Probe {
    pub(super) endpoint: Attr<String>,
    pub(super) prompt: Attr<String>,
    pub(super) max_tokens: Attr<i64>,
    pub(super) expect: Attr<String>,
}

impl LlamaServer {
    /// How an error names it: `llama server ins-…:8000`.
    pub(super) fn title(&self) -> String {
        match self.place() {
            Some(place) => format!("llama server {place}"),
            None => "the llama server".to_owned(),
        }
    }

    /// Its id: the instance or the host, and the port.
    pub(super) fn place(&self) -> Option<String> {
        let host = self.ssh.known().and_then(|ssh| ssh.host());
        let instance = self.instance_id.as_str().or(host)?;
        Some(format!("{instance}:{}", self.port.known()?))
    }

    /// Whether it has a `base_url` if its instance has a public address.
    pub(super) fn may_have_base_url(&self) -> bool {
        !self.instance_id.is_null() && (self.host.is_unknown() || matches!(self.host.as_str(), Some("0.0.0.0" | "::")))
    }

    /// The `base_url`, with this access to its instance.
    pub(super) fn base_url_at(&self, access: Option<&Access>) -> Option<String> {
        let address = access?.external_ip.as_deref()?.trim();
        let port = self.port.known().filter(|_| self.may_have_base_url())?;
        let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        Some(format!("http://{host}:{port}/v1"))
    }

    /// The login. Write-only credentials come from `secrets`: the configuration, or the state, which has none.
    pub(super) fn login(&self, secrets: &Self, known_bastion: Option<String>) -> Login {
        Login {
            ssh: self.ssh.known().cloned().unwrap_or_default(),
            write_only: secrets.write_only(),
            known_host: self.host_key.known().cloned(),
            known_bastion,
        }
    }

    /// What is known of its process.
    pub(super) fn process(&self) -> Process {
        self.process.known().cloned().unwrap_or_default()
    }

    /// The requests to it, with this key, that decide whether it serves.
    pub(super) fn trial(&self, api_key: Option<SecretString>) -> Trial<'_> {
        let probe = self.probe.known().map(|probe| TrialProbe {
            endpoint: probe.endpoint.as_str(),
            prompt: probe.prompt.as_str(),
            max_tokens: probe.max_tokens.known().copied(),
            expect: probe.expect.as_str(),
        });
        let ready = self.ready_timeout.as_str().and_then(parse_duration).unwrap_or(READY);
        Trial::new(self.listens(), self.model.as_str().unwrap_or_default(), probe.unwrap_or_default(), ready, api_key)
    }

    /// The token by which the instance knows this resource, if it is known.
    pub(super) fn owner(&self) -> Option<String> {
        self.process().owner.into_known().filter(|owner| !owner.is_empty())
    }

    pub(super) fn set_owner(&mut self, owner: Option<String>) {
        self.process = Attr::Known(Process { owner: owner.into(), ..self.process() });
    }

    pub(super) fn write_only(&self) -> WriteOnly {
        WriteOnly { private_key: self.ssh_private_key_wo.clone(), password: self.ssh_password_wo.clone() }
    }
}

/// A new token by which an instance knows a resource.
pub(super) fn new_owner() -> String {
    format!("{:032x}", rand::random::<u128>())
}

const FINGERPRINT: &str = "settings";
const BASTION: &str = "bastion_host_key";
const BASTION_ADDRESS: &str = "bastion_address";
const IMPORTED: &str = "imported";
const FOUND: &str = "found_package";
const HOME: &str = "home";

/// The notes of a server in its private data.
pub(super) trait Records {
    /// The fingerprint of the settings of the last start.
    fn settings(&self) -> Option<String>;
    /// Records the job that the instance has accepted. The server no longer counts as imported.
    fn note_job(&mut self, job: &Job);
    /// Whether that job named no package: the instance finds one at each start.
    fn finds_package(&self) -> bool;
    /// Records that it was imported: its key is not known.
    fn note_import(&mut self);
    /// Whether it was, and no apply has confirmed it since.
    fn is_imported(&self) -> bool;
    /// The home of the user that logs in.
    fn home(&self) -> Option<String>;
    /// Records the home that a report shows.
    fn note_home(&mut self, report: &JobReport);
    /// The last host key of the bastion at this address.
    fn bastion(&self, address: &str) -> Option<String>;
    /// Records the bastion's address and host key; `None` without a bastion.
    fn note_bastion(&mut self, seen: Option<(String, String)>);
}

impl Records for Private {
    fn settings(&self) -> Option<String> {
        self.entry(FINGERPRINT)
    }

    fn note_job(&mut self, job: &Job) {
        self.insert(FINGERPRINT, Fingerprint::of(job).settings);
        self.insert(FOUND, job.package.is_none());
        self.remove(IMPORTED);
    }

    fn finds_package(&self) -> bool {
        self.entry(FOUND) == Some(true)
    }

    fn note_import(&mut self) {
        self.insert(IMPORTED, true);
    }

    fn is_imported(&self) -> bool {
        self.entry(IMPORTED) == Some(true)
    }

    fn home(&self) -> Option<String> {
        self.entry(HOME)
    }

    fn note_home(&mut self, report: &JobReport) {
        if let Some(home) = &report.home {
            self.insert(HOME, home.as_str());
        }
    }

    fn bastion(&self, address: &str) -> Option<String> {
        let seen_at: Option<String> = self.entry(BASTION_ADDRESS);
        self.entry(BASTION).filter(|_| seen_at.as_deref() == Some(address))
    }

    fn note_bastion(&mut self, seen: Option<(String, String)>) {
        match seen {
            Some((address, key)) => {
                self.insert(BASTION_ADDRESS, address);
                self.insert(BASTION, key);
            }
            None => {
                self.remove(BASTION_ADDRESS);
                self.remove(BASTION);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_an_instance_whose_port_is_open() {
        let base_url = |instance_id: &str, host: &str, external_ip: serde_json::Value| {
            let instance_id = Some(instance_id.to_owned()).filter(|id| !id.is_empty()).into();
            let server =
                LlamaServer { instance_id, host: host.into(), port: Attr::Known(8000), ..LlamaServer::default() };
            let record = serde_json::json!({ "instance_uid": "ins-1", "external_ip": external_ip });
            server.base_url_at(Some(&Access::of(&serde_json::from_value(record).unwrap())))
        };
        let address = || "203.0.113.7".into();
        let expected = Some("http://203.0.113.7:8000/v1".to_owned());
        assert_eq!(
            (base_url("ins-1", "0.0.0.0", address()), base_url("ins-1", "::", address())),
            (expected.clone(), expected)
        );
        assert_eq!(base_url("ins-1", "::", "2001:db8::7".into()), Some("http://[2001:db8::7]:8000/v1".to_owned()));
        for (instance_id, host, external_ip) in [
            ("ins-1", "127.0.0.1", address()),
            ("ins-1", "localhost", address()),
            ("", "0.0.0.0", address()),
            ("ins-1", "0.0.0.0", " ".into()),
            ("ins-1", "0.0.0.0", serde_json::Value::Null),
        ] {
            assert_eq!(base_url(instance_id, host, external_ip.clone()), None, "{instance_id} {host} {external_ip}");
        }
    }

    #[test]
    fn the_key_of_one_bastion_is_none_of_another() {
        let mut private = Private::default();
        private.note_bastion(Some(("a:22".to_owned(), "key".to_owned())));
        assert_eq!((private.bastion("a:22").as_deref(), private.bastion("b:22")), (Some("key"), None));
        private.note_bastion(None);
        assert_eq!((private.bastion("a:22"), private), (None, Private::default()));
    }
}
