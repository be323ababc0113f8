//! What tells one job from another.

use std::fmt;

use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::job::{Job, Origin};

/// The version of what is hashed; it changes only when the same job would have to be started anew.
const VERSION: &str = "1";

/// The hash of a job, in two halves: a refresh does not know write-only secrets, and compares the first half alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// Of everything that is no secret, as hexadecimal digits.
    pub(crate) settings: String,
    /// Of the API key and the environment, as hexadecimal digits.
    pub(crate) secrets: String,
}

impl Fingerprint {
    /// The fingerprint of a job.
    pub(crate) fn of(job: &Job) -> Self {
        Self { settings: settings(job), secrets: secrets(job) }
    }
}

/// `settings-secrets`, as the state directory keeps it.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.settings, self.secrets)
    }
}

fn settings(job: &Job) -> String {
    let Job {
        place,
        public_storage,
        model,
        build,
        package,
        source,
        gpu_name: _,
        host,
        context_size,
        parallel,
        gpu_layers,
        flash_attention,
        cache_type_k,
        cache_type_v,
        jinja,
        metrics,
        extra_args,
        environment: _,
        api_key: _,
        triggers,
        restarts: _,
    } = job;
    let mut hash = Parts::new("settings");
    for text in [&place.workspace, public_storage, model, host, flash_attention, cache_type_k, cache_type_v] {
        hash.add(text);
    }
    hash.add(build.as_str());
    hash.all(package);
    match &source.origin {
        Origin::Default => hash.add("default"),
        Origin::Git { url, reference } => hash.all(["git", url, reference]),
        Origin::Path(path) => hash.all(["path", path]),
    }
    hash.all(&source.cuda_architectures);
    for number in [i64::from(place.port), *context_size, *parallel, *gpu_layers] {
        hash.add(&number.to_string());
    }
    for flag in [jinja, metrics] {
        hash.add(if *flag { "true" } else { "false" });
    }
    hash.all(extra_args);
    hash.all(triggers.iter().flat_map(|(key, value)| [key, value]));
    hash.end()
}

fn secrets(job: &Job) -> String {
    let mut hash = Parts::new("secrets");
    hash.all(job.api_key.iter().map(ExposeSecret::expose_secret));
    hash.all(job.environment.iter().flat_map(|(name, value)| [name.as_str(), value.expose_secret()]));
    hash.end()
}

/// A hash over texts, each with its length, so that no two lists of texts run together.
struct Parts(Sha256);

impl Parts {
    fn new(what: &str) -> Self {
        let mut parts = Self(Sha256::new());
        parts.add(VERSION);
        parts.add(what);
        parts
    }

    fn add(&mut self, text: &str) {
        self.0.update(text.len().to_be_bytes());
        self.0.update(text);
    }

    fn all(&mut self, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        let texts: Vec<_> = texts.into_iter().collect();
        self.0.update(texts.len().to_be_bytes());
        for text in texts {
            self.add(text.as_ref());
        }
    }

    /// 16 of the 32 bytes: enough to tell jobs apart.
    fn end(self) -> String {
        self.0.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}
