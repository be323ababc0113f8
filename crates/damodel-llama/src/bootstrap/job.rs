//! The job of the program, and its fingerprint.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// The default source if the public storage has none.
pub const REPOSITORY: &str = "https://github.com/ggml-org/llama.cpp";

/// The state of [`REPOSITORY`] that is compiled: a released tag, so that a second compile is the same one.
pub const REFERENCE: &str = "b9803";

/// The place of a server's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPlace {
    /// The folder to work in; `~/` means the home of the user who logs in.
    pub workspace: String,
    /// The port that the server listens on, 1 to 65535.
    pub port: u16,
    /// The name of the instance, known before a login: its uid, or the host and port of SSH.
    pub instance: String,
}

/// Everything that decides what runs. Paths may begin with `~/`; texts may contain anything except NUL
/// ([`super::is_passable`]).
#[derive(Debug, Clone)]
pub struct Job {
    /// Its place.
    pub place: ServerPlace,
    /// The GGUF file.
    pub model: String,
    /// The files that are downloaded if they are missing. Only the paths of those beside the model are part of the
    /// fingerprint.
    pub downloads: Vec<FileOrigin>,
    /// Which binary serves.
    pub build: Build,
    /// The prebuilt server, a file or a folder that holds it; `None`: looked for in the public storage.
    pub package: Option<String>,
    /// The source of a compile.
    pub source: CompileSource,
    /// The GPU in the service's words, beside those of `nvidia-smi`. No part of the fingerprint.
    pub gpu_name: Option<String>,
    /// The address that the server binds.
    pub host: String,
    /// The value of each plain option, by its argument.
    pub options: BTreeMap<&'static str, String>,
    /// `--jinja`, or `--no-jinja` if the server has it.
    pub jinja: bool,
    /// `--metrics`.
    pub metrics: bool,
    /// Appended as they are.
    pub extra_args: Vec<String>,
    /// Variables of the server, beside the login's. Names that a shell does not accept are left out.
    pub environment: BTreeMap<String, SecretString>,
    /// The key that the server asks of its clients.
    pub api_key: Option<SecretString>,
    /// A change restarts the server.
    pub triggers: BTreeMap<String, String>,
    /// The `probe.endpoint` that the restart action asks. No part of the fingerprint.
    pub probe_endpoint: String,
    /// Whether a server that ends is started again in the instance. No part of the fingerprint.
    pub restarts: bool,
}

/// Where a file is downloaded from.
#[derive(Debug, Clone)]
pub struct FileOrigin {
    /// Its path in the instance.
    pub path: String,
    /// Its address.
    pub address: String,
    /// The SHA-256 that it must have, in lower case.
    pub sha256: Option<String>,
    /// The token for the server of the address.
    pub token: Option<SecretString>,
    /// Whether it is the model, or a part of it.
    pub is_model: bool,
}

/// Which binary serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Compiled on a V100 or P40; otherwise prebuilt, and compiled if that one does not serve.
    Auto,
    /// The prebuilt one.
    Prebuilt,
    /// Compiled in the instance.
    Source,
}

impl Build {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Prebuilt => "prebuilt",
            Self::Source => "source",
        }
    }
}

/// The source and the settings of a compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileSource {
    /// Its origin.
    pub origin: SourceOrigin,
    /// CUDA architectures as cmake takes them ("70", "86-real"); empty: the card's.
    pub cuda_architectures: Vec<String>,
}

/// The origin of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceOrigin {
    /// A tree or archive under the public storage's package folder; else [`REPOSITORY`] at [`REFERENCE`].
    Default,
    /// A repository.
    Git {
        /// As git takes it.
        url: String,
        /// A branch, tag or commit.
        reference: String,
    },
    /// A folder or an archive in the instance.
    Path(String),
}

#[cfg(test)]
impl Job {
    /// A job for tests.
    pub fn sample() -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            place: ServerPlace { workspace: text("~/workspace"), port: 8000, instance: text("ins-1") },
            model: text("~/public-storage/model/tiny.gguf"),
            downloads: Vec::new(),
            build: Build::Auto,
            package: None,
            source: CompileSource { origin: SourceOrigin::Default, cuda_architectures: Vec::new() },
            gpu_name: None,
            host: text("127.0.0.1"),
            options: [("flash_attention", text("on")), ("gpu_layers", text("999")), ("parallel", text("1"))].into(),
            jinja: true,
            metrics: true,
            extra_args: Vec::new(),
            environment: BTreeMap::new(),
            api_key: None,
            triggers: BTreeMap::new(),
            probe_endpoint: String::new(),
            restarts: false,
        }
    }
}

impl Job {
    /// The address that the server listens on: "localhost" may be ::1, and the probe uses 127.0.0.1.
    pub fn address(&self) -> &str {
        if self.host == "localhost" { "127.0.0.1" } else { &self.host }
    }

    /// A hash of the addresses and the sums of the downloads, without the tokens; `None` without downloads.
    pub fn downloads_hash(&self) -> Option<String> {
        let mut hash = Parts::new("downloads");
        for file in &self.downloads {
            hash.all([&file.path, &file.address]);
            hash.all(&file.sha256);
        }
        (!self.downloads.is_empty()).then(|| hash.end())
    }

    /// The paths of the downloads beside the model, sorted.
    pub(super) fn additional_files(&self) -> Vec<&String> {
        let files = self.downloads.iter().filter(|file| !file.is_model);
        let mut paths: Vec<_> = files.map(|file| &file.path).collect();
        paths.sort();
        paths
    }
}

/// The version of the hash. A change restarts all servers.
const VERSION: &str = "1";

/// The hash of a job, in two halves: a refresh does not know write-only secrets, and compares the first half alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of everything except secrets, as hexadecimal digits.
    pub settings: String,
    /// Of the API key and the environment, as hexadecimal digits.
    pub secrets: String,
}

impl Fingerprint {
    /// The fingerprint of a job.
    pub fn of(job: &Job) -> Self {
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
        model,
        downloads: _,
        build,
        package,
        source,
        gpu_name: _,
        host: _,
        options,
        jinja,
        metrics,
        extra_args,
        environment: _,
        api_key: _,
        triggers,
        probe_endpoint: _,
        restarts: _,
    } = job;
    let mut hash = Parts::new("settings");
    for text in [&place.workspace, model, job.address(), build.as_str(), &place.port.to_string()] {
        hash.add(text);
    }
    hash.all(package);
    match &source.origin {
        SourceOrigin::Default => hash.add("default"),
        SourceOrigin::Git { url, reference } => hash.all(["git", url, reference]),
        SourceOrigin::Path(path) => hash.all(["path", path]),
    }
    hash.all(&source.cuda_architectures);
    hash.all(options.iter().flat_map(|(argument, value)| [*argument, value]));
    for flag in [jinja, metrics] {
        hash.add(if *flag { "true" } else { "false" });
    }
    hash.all(extra_args);
    hash.all(triggers.iter().flat_map(|(key, value)| [key, value]));
    hash.all(job.additional_files());
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
        self.0.finalize().get(..16).map(hex::encode).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_is_of_what_decides_the_result() {
        let of = |change: &dyn Fn(&mut Job)| {
            let mut changed = Job::sample();
            change(&mut changed);
            Fingerprint::of(&changed)
        };
        let same = of(&|_| ());
        let file = |path: &str, address: &str, is_model| {
            let (path, address) = (path.to_owned(), address.to_owned());
            FileOrigin { path, address, sha256: None, token: None, is_model }
        };
        assert_eq!(of(&|job| job.downloads.push(file("/m", "https://x/m", true))), same);
        let (a, b) = (file("/a", "https://x/a", false), file("/b", "https://x/b", false));
        let both = of(&|job| job.downloads = vec![a.clone(), b.clone()]);
        assert_eq!(of(&|job| job.downloads = vec![b.clone(), file("/a", "https://y", false)]), both);
        assert_eq!(of(&|job| job.gpu_name = Some("V100".to_owned())), same);
        assert_eq!(of(&|job| job.host = "localhost".to_owned()), same);
        let others = [
            both,
            of(&|job| job.downloads.push(a.clone())),
            of(&|job| job.model.push('x')),
            of(&|job| job.place.port += 1),
            of(&|job| drop(job.options.insert("parallel", "2".to_owned()))),
            of(&|job| job.jinja = false),
            of(&|job| job.extra_args = vec!["a b".to_owned()]),
            of(&|job| job.extra_args = vec!["a".to_owned(), "b".to_owned()]),
            of(&|job| job.package = Some(String::new())),
            of(&|job| job.source.origin = SourceOrigin::Path("a".to_owned())),
            of(&|job| job.source.cuda_architectures = vec!["70".to_owned()]),
            of(&|job| drop(job.triggers.insert("a".to_owned(), "b".to_owned()))),
            of(&|job| job.api_key = Some(SecretString::from("a"))),
            of(&|job| drop(job.environment.insert("a".to_owned(), SecretString::from("b")))),
        ];
        for (index, one) in others.iter().enumerate() {
            assert_ne!(*one, same, "{index}");
            assert_eq!(others.iter().filter(|other| *other == one).count(), 1, "{index}");
        }
        assert!(others[12..].iter().all(|other| other.settings == same.settings));
    }
}
