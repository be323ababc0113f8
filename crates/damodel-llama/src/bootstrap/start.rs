//! The settings of a run, everything that the detached work gets, and the record of them.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    super::options::{self, API_KEY_FILE, DEVICE, PLAIN_ARGUMENTS, spelling},
    facts,
    job::{Build, Fingerprint, Job},
    kinds::{FailureKind, JobFailure},
    shell::{ProgramSettings, path, quote, quoted},
};

/// The beginning of a run.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The job.
    pub job: &'a Job,
    /// Which binary serves, and where it comes from.
    pub binary: &'a Binary,
    /// Whether the work outlives its login.
    pub login: &'a LoginLifetime,
    /// The text of a warning.
    pub note: Option<&'a String>,
    /// Why it is not the prebuilt one, for the apply that resumes this run.
    pub because: Option<&'a JobFailure>,
    /// The token of the resource: from now on only this resource ends the server.
    pub owner: &'a str,
    /// Whether the previous server can be started again after its successor has been started.
    pub rolls_back: bool,
    /// The llama-server that was started by hand on the port, and is ended: [`super::PortHolder::identity`].
    pub ends_rival: Option<&'a str>,
    /// The run that was seen, which this one replaces: [`super::JobReport::run`].
    pub seen: &'a str,
}

/// Which binary serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binary {
    /// A prebuilt one.
    Prebuilt(Prebuilt),
    /// One that is compiled in the instance.
    Source(Box<Recipe>),
}

/// A prebuilt server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prebuilt {
    /// Its path.
    pub path: String,
    /// The archive to unpack first.
    pub provided: Option<Provided>,
    /// A hash of everything that decides whether it runs: the GPUs, their driver, the file.
    pub hardware: String,
}

/// The settings of a compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The source.
    pub source: Tree,
    /// CUDA architectures as cmake takes them.
    pub architectures: String,
    /// The compiler of the toolkit.
    pub nvcc: String,
    /// How many files are compiled at once.
    pub jobs: u32,
    /// The name of the build folder, made of all that decides its content.
    pub key: String,
    /// The arguments of cmake.
    pub cmake: Vec<String>,
    /// [`Prebuilt::hardware`] of the prebuilt server that this one replaces.
    pub hardware: String,
    /// The text of a warning.
    pub note: Option<String>,
}

/// A source tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Its path.
    pub folder: String,
    /// Its version: a commit, or a hash of its content.
    pub name: String,
    /// The source to fetch or unpack first.
    pub provided: Option<Provided>,
}

/// Files that are fetched or unpacked once for all servers of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// The folder with the result.
    pub folder: String,
    /// Its origin.
    pub from: Supply,
}

/// An origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supply {
    /// A file in the instance.
    Archive(String),
    /// A repository.
    Git {
        /// As git takes it.
        url: String,
        /// The reference of the configuration.
        reference: String,
        /// Its commit.
        commit: String,
        /// The file that keeps the commit.
        file: String,
    },
}

/// The properties of a login that decide which processes outlive it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginLifetime {
    /// The command of systemd that runs the work outside the login's own scope, or nothing.
    pub scope: String,
    /// The text of a warning.
    pub note: Option<String>,
}

impl Binary {
    /// Its kind.
    pub fn build(&self) -> Build {
        match self {
            Self::Prebuilt(_) => Build::Prebuilt,
            Self::Source(_) => Build::Source,
        }
    }
}

/// A job that was begun. It holds no secret.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct JobRecord {
    /// The [`Fingerprint`], as it displays itself.
    pub(super) fingerprint: Option<String>,
    /// The word of the [`Build`].
    build: String,
    /// Why it is not the prebuilt one: the word of the [`FailureKind`], and its text.
    because: Option<(String, String)>,
    /// [`super::Job::downloads_hash`].
    pub(super) downloads: Option<String>,
    /// [`super::Prebuilt::hardware`].
    pub(super) hardware: Option<String>,
    /// The prebuilt server.
    pub(super) package: Option<String>,
    /// The source of a compile, for people.
    pub(super) source: String,
    /// The failure of the fetch, for people.
    pub(super) supply: String,
    /// Texts of warnings.
    pub(super) notes: Vec<String>,
    /// The flags that a server gets if it has them.
    pub(super) flags: Vec<String>,
    /// Whether the server asks its clients for a key.
    pub(super) has_key: bool,
    /// Whether it may use a GPU.
    pub(super) wants_gpu: bool,
    /// Whether the work ends with the last login.
    pub(super) ends_at_logout: bool,
}

impl JobRecord {
    /// The record of a start.
    pub(super) fn of(start: &Start<'_>) -> Self {
        let (hardware, provided) = match start.binary {
            Binary::Prebuilt(prebuilt) => (&prebuilt.hardware, &prebuilt.provided),
            Binary::Source(recipe) => (&recipe.hardware, &recipe.source.provided),
        };
        let record = Self {
            fingerprint: Some(Fingerprint::of(start.job).to_string()),
            downloads: start.job.downloads_hash(),
            build: start.binary.build().as_str().to_owned(),
            because: start.because.map(|failure| (failure.kind.as_str().to_owned(), failure.text.clone())),
            hardware: Some(hardware.clone()).filter(|hardware| !hardware.is_empty()),
            supply: match provided.as_ref().map(|provided| &provided.from) {
                Some(Supply::Archive(archive)) => format!("the archive {archive} cannot be unpacked"),
                Some(Supply::Git { url, reference, commit, .. }) => {
                    format!("{url} at {reference} (commit {commit}) could not be fetched")
                }
                None => String::new(),
            },
            notes: start.login.note.iter().chain(start.note).cloned().collect(),
            ends_at_logout: start.login.note.is_some(),
            flags: flags(start.job).into_iter().map(str::to_owned).collect(),
            has_key: start.job.api_key.is_some(),
            wants_gpu: wants_gpu(start.job),
            ..Self::default()
        };
        match start.binary {
            Binary::Prebuilt(prebuilt) => Self { package: Some(prebuilt.path.clone()), ..record },
            Binary::Source(recipe) => Self {
                source: format!(
                    "{} ({}) for CUDA architecture {}",
                    recipe.source.folder, recipe.source.name, recipe.architectures
                ),
                notes: recipe.note.iter().cloned().chain(record.notes).collect(),
                ..record
            },
        }
    }

    /// Reads a record. One that a power cut damaged is empty.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// The first binary of the job.
    pub(super) fn begun(&self) -> Option<Build> {
        [Build::Prebuilt, Build::Source].into_iter().find(|build| build.as_str() == self.build)
    }

    /// Why that is not the prebuilt one.
    pub(super) fn because(&self) -> Option<JobFailure> {
        let (kind, text) = self.because.as_ref()?;
        Some(JobFailure { kind: kind.parse::<FailureKind>().ok()?, text: text.clone() })
    }
}

impl fmt::Display for JobRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// The settings of a check, which tries the servers of the instance as a start would run them.
pub(super) fn try_servers(job: &Job, settings: &mut ProgramSettings) {
    settings.set("WANTS_GPU", yes(wants_gpu(job)));
    settings.set("CUDA_LIBRARIES", CUDA_LIBRARIES);
    settings.set("LIBRARIES", job.environment.get(LIBRARIES).map(ExposeSecret::expose_secret).unwrap_or_default());
    settings.set("ENVIRONMENT", &environment(job));
}

/// Whether the name of a specification's GPU is that of a CPU, as one without a GPU has it.
pub fn is_processor(gpu_name: Option<&str>) -> bool {
    gpu_name.is_some_and(|name| name.to_ascii_uppercase().contains("CPU"))
}

/// Whether specification, options and environment let the server use a GPU.
pub(crate) fn wants_gpu(job: &Job) -> bool {
    if is_processor(job.gpu_name.as_deref()) {
        return false;
    }
    let hides = |name: &str| job.environment.get(name).is_some_and(|cards| !begins_with_card(cards.expose_secret()));
    let mut layers = job.options.get("gpu_layers").map(String::as_str);
    for (option, _, value) in options::with_values(&job.extra_args) {
        match option.argument() {
            Some("gpu_layers") => layers = Some(value),
            _ if option.is(DEVICE) && value == "none" => return false,
            _ => {}
        }
    }
    layers != Some("0") && !["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"].into_iter().any(hides)
}

/// Whether a list begins with the number or the UUID of a card. CUDA ignores what follows anything else.
fn begins_with_card(cards: &str) -> bool {
    let first = cards.trim_start();
    first.starts_with(|c: char| c.is_ascii_digit()) || ["GPU-", "MIG-"].iter().any(|kind| first.starts_with(kind))
}

/// The program's word for "true".
fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "" }
}

/// The program's word for the restart policy.
pub(super) fn policy(restarts: bool) -> &'static str {
    if restarts { "on_failure" } else { "" }
}

/// All settings of a start. Key and environment are one text that the work reads from its standard input.
pub(super) fn begin(start: &Start<'_>, settings: &mut ProgramSettings) {
    let job = start.job;
    for (name, value) in [
        ("SECRETS", secrets(job).as_str()),
        ("OWNER", start.owner),
        ("RESTART_POLICY", policy(job.restarts)),
        ("PROBE_ENDPOINT", &job.probe_endpoint),
        ("SCOPE", &start.login.scope),
        ("SEEN", start.seen),
        ("RECORD", &JobRecord::of(start).to_string()),
    ] {
        settings.set(name, value);
    }
    for name in ["WORKSPACE", "PORT"] {
        settings.hand_over(name);
    }
    settings.hand_path("MODEL", &job.model);
    let files = job.additional_files().into_iter().map(|file| format!(" {}", path(file)));
    settings.hand("ADDITIONAL_FILES", &files.collect::<String>());
    settings.hand("BUILD", start.binary.build().as_str());
    settings.hand("ROLLS_BACK", yes(start.rolls_back));
    settings.hand("ARGUMENTS", &arguments(job));
    settings.hand("HAS_KEY", yes(job.api_key.is_some()));
    settings.hand("WANTS_GPU", yes(wants_gpu(job)));
    settings.hand("RIVAL", start.ends_rival.unwrap_or_default());
    settings.hand("LISTENERS", &facts::listeners(job.place.port).command());
    match start.binary {
        Binary::Prebuilt(prebuilt) => {
            settings.hand_path("BINARY", &prebuilt.path);
            settings.hand("CUDA_LIBRARIES", CUDA_LIBRARIES);
            provide(prebuilt.provided.as_ref(), FailureKind::NoPackage, settings);
        }
        Binary::Source(recipe) => {
            settings.hand_path("SOURCE", &recipe.source.folder);
            settings.hand("SOURCE_NAME", &recipe.source.name);
            settings.hand("NVCC", &recipe.nvcc);
            settings.hand("JOBS", &recipe.jobs.to_string());
            settings.hand_path("BUILD_FOLDER", &format!("{}/.damodel/builds/{}", job.place.workspace, recipe.key));
            let toolkit = recipe.nvcc.strip_suffix("/bin/nvcc").unwrap_or(&recipe.nvcc);
            settings.hand("CUDA_LIBRARIES", &format!("{toolkit}/lib64:{CUDA_LIBRARIES}"));
            settings.hand("CMAKE", &quoted(&recipe.cmake));
            settings.hand("CMAKE_WHERE", &CMAKE_WHERE_KNOWN.join(" "));
            provide(recipe.source.provided.as_ref(), FailureKind::NoSource, settings);
        }
    }
}

/// Settings that are given only if the source has the option. The web page, which is not used, would be downloaded. In
/// a source without tools the server is one of the examples.
pub(super) const CMAKE_WHERE_KNOWN: &[&str] = &[
    "LLAMA_CURL:LLAMA_CURL=OFF",
    "LLAMA_BUILD_UI:LLAMA_BUILD_UI=OFF",
    "LLAMA_USE_PREBUILT_UI:LLAMA_USE_PREBUILT_UI=OFF",
    "LLAMA_BUILD_WEBUI:LLAMA_BUILD_WEBUI=OFF",
    "LLAMA_USE_PREBUILT_WEBUI:LLAMA_USE_PREBUILT_WEBUI=OFF",
    "LLAMA_BUILD_TOOLS:LLAMA_BUILD_EXAMPLES=OFF",
];

/// The variable with the folders of libraries. The program adds further folders to its value.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The default folder of CUDA's libraries.
const CUDA_LIBRARIES: &str = "/usr/local/cuda/lib64";

/// Assignments of the secrets, and of addresses, which may hold some. The last line proves that the text is complete.
fn secrets(job: &Job) -> String {
    let text = |secret: Option<&SecretString>| quote(secret.map(ExposeSecret::expose_secret).unwrap_or_default());
    let (key, libraries) = (text(job.api_key.as_ref()), text(job.environment.get(LIBRARIES)));
    let environment = quote(&environment(job));
    let files = job.downloads.iter().map(|file| {
        let sum = quote(file.sha256.as_deref().unwrap_or_default());
        let (address, token, role) = (quote(&file.address), text(file.token.as_ref()), yes(file.is_model));
        format!(" {} {address} {sum} {token} {}", path(&file.path), quote(role))
    });
    let files = quote(&files.collect::<String>());
    format!(
        "DAMODEL_API_KEY={key}\nDAMODEL_LIBRARIES={libraries}\nDAMODEL_ENVIRONMENT={environment}\n\
         DAMODEL_FILES={files}\n# end"
    )
}

/// Statements that export the server's variables. A few names belong to the shell and cannot be set.
fn environment(job: &Job) -> String {
    let variables = job.environment.iter().filter(|(name, _)| is_name(name) && *name != LIBRARIES);
    let exports = variables.map(|(name, value)| {
        format!("(eval '{name}=') 2>/dev/null && export {name}={}\n", quote(value.expose_secret()))
    });
    exports.collect()
}

/// The settings of a fetch, with the kind of its failure. The commands fill the folder `$provided` without questions,
/// and rename it when it is complete.
fn provide(provided: Option<&Provided>, kind: FailureKind, settings: &mut ProgramSettings) {
    settings.hand_path("PROVIDED", provided.map_or("", |provided| &provided.folder));
    let Some(provided) = provided else { return };
    settings.hand("PROVIDE_KIND", kind.as_str());
    let (fetch, file) = match &provided.from {
        Supply::Archive(archive) if archive.ends_with(".zip") => {
            (format!("unzip -q {} -d \"$provided\"", path(archive)), "")
        }
        Supply::Archive(archive) => (format!("tar -xf {} -C \"$provided\"", path(archive)), ""),
        Supply::Git { url, reference, commit, file } => {
            let git = "GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND='ssh -oBatchMode=yes' git -C \"$provided\" -c \
                       http.lowSpeedLimit=1000 -c http.lowSpeedTime=60";
            let fetch = |what: &str| format!("{git} fetch -q --depth 1 -- {} {}", quote(url), quote(what));
            let (commit, reference) = (fetch(commit), fetch(reference));
            let all = format!("{git} init -q && {{ {commit} || {reference}; }} && {git} checkout -q FETCH_HEAD");
            (all, file.as_str())
        }
    };
    let fetch = format!("mkdir \"$provided\" && {{ {fetch}; }} && mv \"$provided\" \"$DAMODEL_PROVIDED\"");
    settings.hand("FETCH", &fetch);
    settings.hand_path("REFERENCE_FILE", file);
}

/// Statements that set the parameters of the shell to the server's arguments: those of every server, and those that
/// the help of this one contains. A build that lacks a required option is a failure.
fn arguments(job: &Job) -> String {
    let port = job.place.port.to_string();
    let plain = PLAIN_ARGUMENTS.iter().filter_map(|argument| Some([spelling(argument), job.options.get(argument)?]));
    let named = [[spelling("host"), job.address()], [spelling("port"), &port]].into_iter().chain(plain);
    let named = quoted(&named.flatten().collect::<Vec<_>>());
    let adds = |words: &str| format!("set -- \"$@\"{words}");
    let offers = |pattern: &str, then: &str| format!("if offers {}; then {then}", quote(pattern));
    let requires = |pattern: &str, what: &str| {
        let text = format!("its help shows no {what}");
        format!("offers {} || {{ fail unsupported {}; return; }}", quote(pattern), quote(&text))
    };
    // After its names comes the value, in brackets that differ between the forks: [on|off|auto], (auto|on|off|0|1).
    let flash = spelling("flash_attention");
    let value = format!(r"(^|[ ,]){flash}(,? +--?[a-z-]+)*[ =][[(<{{][^])>}}]*off");
    let mut lines = vec![
        requires(&value, &format!("value for {flash}")),
        format!("set -- {} \"$server_model\"{named}", spelling("model")),
    ];
    for flag in flags(job) {
        lines.push(offers(&format!("(^|[ ,]){flag}([ ,]|$)"), &format!("{}; fi", adds(&format!(" {flag}")))));
    }
    // On by default in newer servers.
    if !job.jinja {
        lines.push(offers("--no-jinja", &format!("{}; fi", adds(" --no-jinja"))));
    }
    if job.api_key.is_some() {
        lines.push(requires(API_KEY_FILE, &format!("option {API_KEY_FILE}")));
        lines.push(adds(&format!(" {API_KEY_FILE} \"$key_file\"")));
    }
    lines.push(adds(&quoted(&job.extra_args)));
    lines.join("\n")
}

/// The flags that a server gets if its help contains them.
fn flags(job: &Job) -> Vec<&'static str> {
    let flags = [("jinja", job.jinja), ("metrics", job.metrics)];
    flags.into_iter().filter(|(_, is_set)| *is_set).map(|(argument, _)| spelling(argument)).collect()
}

/// Whether this is a valid name of a shell variable.
fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_may_ask_for_the_cpu() {
        for (name, value, expected) in [
            ("CUDA_VISIBLE_DEVICES", "", false),
            ("CUDA_VISIBLE_DEVICES", "-1", false),
            ("CUDA_VISIBLE_DEVICES", "none", false),
            ("CUDA_VISIBLE_DEVICES", "NoDevFiles", false),
            ("HIP_VISIBLE_DEVICES", "", false),
            ("CUDA_VISIBLE_DEVICES", "0", true),
            ("CUDA_VISIBLE_DEVICES", "1,-1", true),
            ("CUDA_VISIBLE_DEVICES", "GPU-8932f937", true),
            ("CUDA_VISIBLE_DEVICES", "MIG-41b35396", true),
            ("OTHER", "", true),
        ] {
            let environment = [(name.to_owned(), value.into())].into();
            assert_eq!(wants_gpu(&Job { environment, ..Job::sample() }), expected, "{name}={value}");
        }
    }

    /// A specification without a GPU names its CPU.
    #[test]
    fn an_instance_may_have_only_a_cpu() {
        for (gpu_name, expected) in [(Some("CPU-Intel-8358P"), false), (Some("NVIDIA-A100-80G"), true), (None, true)] {
            let job = Job { gpu_name: gpu_name.map(str::to_owned), ..Job::sample() };
            assert_eq!(wants_gpu(&job), expected, "{gpu_name:?}");
        }
    }

    #[test]
    fn options_may_ask_for_the_cpu() {
        for (layers, words, expected) in [
            ("999", "", true),
            ("0", "", false),
            ("0", "-ngl 1", true),
            ("999", "--gpu_layers 0", false),
            ("999", "-ngl auto", true),
            ("999", "-dev none", false),
            ("999", "--device=none", false),
            ("999", "--device CUDA0", true),
        ] {
            let options = [("gpu_layers", layers.to_owned())].into();
            let extra_args = words.split_whitespace().map(str::to_owned).collect();
            assert_eq!(wants_gpu(&Job { options, extra_args, ..Job::sample() }), expected, "{words}");
        }
    }
}
