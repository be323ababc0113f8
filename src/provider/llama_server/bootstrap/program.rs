//! The text that is sent.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::{
    facts::Recipe,
    fingerprint::Fingerprint,
    job::{Build, Job, Origin, Place, REFERENCE, REPOSITORY},
    report::{Failure, NO_PROGRAM},
};

/// The program, part by part in the order in which it is read.
pub(super) const SCRIPT: &str = concat!(
    include_str!("script/basics.sh"),
    include_str!("script/records.sh"),
    include_str!("script/processes.sh"),
    include_str!("script/look.sh"),
    include_str!("script/find.sh"),
    include_str!("script/source.sh"),
    include_str!("script/compile.sh"),
    include_str!("script/former.sh"),
    include_str!("script/serve.sh"),
    include_str!("script/worker.sh"),
    include_str!("script/verbs.sh"),
);

/// What the program shall do. Each answers with a [`super::Report`] of what is then.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verb<'a> {
    /// Whether [`Verb::Ensure`] of this would be refused, as far as that can be judged while an older server holds its port, and which cards there are.
    /// Changes nothing.
    Check(&'a Job),
    /// Stops as [`Verb::Stop`] does, and removes the records, the key's file and the logs; builds, sources and packages stay.
    Destroy {
        /// [`Start::owner`].
        owner: &'a str,
    },
    /// Makes the job so: resumes what is under way or runs with this fingerprint, else begins anew. Answers at once: what takes long goes on
    /// detached. A server that has served goes on until its successor is about to start, and can be brought back with [`Verb::RollBack`] until
    /// [`Verb::Ready`]. What is refused at once (a missing model, a port in use, a full disk) leaves everything as it was, and is the report's failure.
    Ensure(&'a Start<'a>),
    /// Records that this process does not infer, as the caller saw, and leaves it alone. Without effect when the server is another process by now.
    Failed {
        /// [`super::Process::identity`] of the process that was asked.
        process: &'a str,
        /// What was seen, for people.
        reason: &'a str,
    },
    /// What is there now. Changes nothing.
    Look,
    /// This process infers: the end of the work, and of the way back. Without effect when it is another or dead by now.
    Ready {
        /// [`super::Process::identity`].
        process: &'a str,
    },
    /// Ends this process and starts the server again as it was, with the options and the environment that its supervisor holds. Without effect when
    /// another process serves by now, so that a restart whose answer was lost is not made twice. Refused before anything is ended where the server could
    /// not come back: its model is gone, or the disk is full. A server that nobody supervises any more (a reboot) is [`super::Kind::NotRunning`]: it takes
    /// an apply.
    Restart {
        /// [`super::Process::identity`]; empty where none was seen.
        process: &'a str,
    },
    /// Ends what an update has begun. The server that served before goes on, or is started again with the options, the environment and the key that it had.
    /// Without effect where there is none.
    RollBack,
    /// Ends the work and the server: TERM, 10 s, TERM, 2 s, KILL, and waits until the process is gone. Logs stay. A server that another resource
    /// owns is [`super::Kind::Foreign`], and goes on.
    Stop {
        /// [`Start::owner`].
        owner: &'a str,
    },
}

/// How a job is begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// What shall run.
    pub(crate) job: &'a Job,
    /// Which binary: prebuilt or source. [`Build::Auto`] is decided before.
    pub(crate) build: Build,
    /// With what it is compiled, where it is.
    pub(crate) recipe: Option<&'a Recipe>,
    /// Why it is not the prebuilt one, for who resumes this.
    pub(crate) because: Option<&'a Failure>,
    /// The token of the resource: from now on no other ends the server.
    pub(crate) owner: &'a str,
    /// Whether a server that served before stays at hand after its successor has been started.
    pub(crate) rolls_back: bool,
    /// Whether a llama-server that was started by hand on the port is ended.
    pub(crate) ends_rival: bool,
}

/// What is sent of the program itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its hash: the one that an earlier run has left is taken, and where another one lies, or none, the answer is [`super::Malformed::NoProgram`].
    Hash,
    /// All of it.
    Whole,
}

/// The text for the standard input of `sh -s`. It holds the job's secrets. Cut off in transit it does nothing.
pub(crate) fn program(place: &Place, verb: &Verb<'_>, form: Form) -> SecretString {
    let mut text = UNSET.to_owned();
    let mut set = |name: &str, value: &str| {
        for part in ["DAMODEL_", name, "=", &quote(value), "\n"] {
            text.push_str(part);
        }
    };
    set("WORKSPACE", &place.workspace);
    set("PORT", &place.port.to_string());
    if form == Form::Whole {
        set("PROGRAM", SCRIPT.trim_end());
    }
    let word = match verb {
        Verb::Check(job) => {
            settings(job, &mut set);
            set("BUILD", job.build.as_str());
            "check"
        }
        Verb::Destroy { owner } => {
            set("OWNER", owner);
            "destroy"
        }
        Verb::Ensure(start) => {
            settings(start.job, &mut set);
            begin(start, &mut set);
            "ensure"
        }
        Verb::Failed { process, reason } => {
            set("PROCESS", process);
            set("REASON", reason);
            "failed"
        }
        Verb::Look => "look",
        Verb::Ready { process } => {
            set("PROCESS", process);
            "ready"
        }
        Verb::Restart { process } => {
            set("PROCESS", process);
            "restart"
        }
        Verb::RollBack => "rollback",
        Verb::Stop { owner } => {
            set("OWNER", owner);
            "stop"
        }
    };
    for part in ["set -- ", word, "\n"] {
        text.push_str(part);
    }
    match form {
        Form::Hash => text.push_str(&run_by_hash(place)),
        Form::Whole => text.push_str("eval \"$DAMODEL_PROGRAM\"\n"),
    }
    text.into()
}

/// Runs the program that lies in the state directory, if it is this one.
fn run_by_hash(place: &Place) -> String {
    let hash: String = Sha256::new()
        .chain_update(SCRIPT.trim_end())
        .chain_update("\n")
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // As the program itself finds the folder.
    let folder = match place.workspace.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("\"${{HOME:-/root}}\"{}", quote(rest)),
        _ if place.workspace.starts_with('/') => quote(&place.workspace),
        _ => format!("\"${{HOME:-/root}}\"/{}", quote(&place.workspace)),
    };
    let port = place.port;
    format!(
        "damodel_file={folder}/.damodel/{port}/bootstrap.sh\n\
         if [ \"$({{ sha256sum <\"$damodel_file\"; }} 2>/dev/null)\" = '{hash}  -' ]; then\n\
         DAMODEL_PROGRAM=$(cat \"$damodel_file\")\neval \"$DAMODEL_PROGRAM\"\n\
         else printf '\\n%s\\n' '{NO_PROGRAM}'\nfi\n"
    )
}

/// What a login exports under a name of ours would reach compilers, and be believed.
const UNSET: &str =
    "for damodel_name in $(env | sed -n 's/^\\(DAMODEL_[A-Za-z0-9_]*\\)=.*/\\1/p'); do unset \"$damodel_name\"; done\n";

/// What decides how the job is begun. What the detached work is given is named in `HANDED_OVER`, which the job has set.
fn begin(start: &Start<'_>, set: &mut impl FnMut(&str, &str)) {
    let yes = |flag: bool| if flag { "yes" } else { "" };
    set("BUILD", start.build.as_str());
    if let Some(recipe) = start.recipe {
        set("ARCHITECTURES", &recipe.architectures);
        set("NVCC", &recipe.nvcc);
        set("NVCC_VERSION", &recipe.nvcc_version);
        set("JOBS", &recipe.jobs.to_string());
    }
    set("BECAUSE", start.because.map_or("", |failure| failure.kind.as_str()));
    set("BECAUSE_TEXT", start.because.map_or("", |failure| &failure.text));
    set("OWNER", start.owner);
    set("ON_UPDATE_FAILURE", if start.rolls_back { "rollback" } else { "" });
    set("END_RIVAL", yes(start.ends_rival));
    set("RESTART_POLICY", if start.job.restarts { "on_failure" } else { "" });
}

/// The job, and the names of all that the detached work is given of it, through its environment. The API key is not among them: the program
/// writes it to its file, and the work reads that.
fn settings(job: &Job, set: &mut impl FnMut(&str, &str)) {
    set("API_KEY", job.api_key.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default());
    let mut handed_over = vec!["WORKSPACE".to_owned(), "PORT".to_owned()];
    let mut hand = |name: &str, value: &str| {
        set(name, value);
        handed_over.push(name.to_owned());
    };
    let list = |texts: &[String]| texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" ");
    let word = |flag: bool| if flag { "yes" } else { "" };
    hand("FINGERPRINT", &Fingerprint::of(job).to_string());
    hand("PUBLIC_STORAGE", &job.public_storage);
    hand("MODEL", &job.model);
    hand("PACKAGE", job.package.as_deref().unwrap_or_default());
    hand("DEFAULT_URL", REPOSITORY);
    hand("DEFAULT_REF", REFERENCE);
    let (url, reference, path) = match &job.source.origin {
        Origin::Default => ("", "", ""),
        Origin::Git { url, reference } => (url.as_str(), reference.as_str(), ""),
        Origin::Path(path) => ("", "", path.as_str()),
    };
    hand("SOURCE_URL", url);
    hand("SOURCE_REF", reference);
    hand("SOURCE_PATH", path);
    hand("GPU_NAME", job.gpu_name.as_deref().unwrap_or_default());
    hand("HOST", &job.host);
    hand("CONTEXT_SIZE", &job.context_size.to_string());
    hand("PARALLEL", &job.parallel.to_string());
    hand("GPU_LAYERS", &job.gpu_layers.to_string());
    hand("FLASH_ATTENTION", &job.flash_attention);
    hand("CACHE_TYPE_K", &job.cache_type_k);
    hand("CACHE_TYPE_V", &job.cache_type_v);
    hand("JINJA", word(job.jinja));
    hand("METRICS", word(job.metrics));
    hand("EXTRA_ARGS", &list(&job.extra_args));
    let variables = || job.environment.iter().filter(|(name, _)| is_name(name));
    hand("VARIABLES", &variables().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" "));
    for (name, value) in variables() {
        hand(&format!("VARIABLE_{name}"), value.expose_secret());
    }
    let of_the_start = ["BUILD", "BECAUSE", "BECAUSE_TEXT", "ON_UPDATE_FAILURE"];
    let of_the_recipe = ["ARCHITECTURES", "NVCC", "NVCC_VERSION", "JOBS"];
    handed_over.extend(of_the_start.into_iter().chain(of_the_recipe).map(str::to_owned));
    set("HANDED_OVER", &handed_over.join(" "));
}

/// Whether a text reaches the instance as it is: no shell and no process takes a NUL.
pub(crate) fn is_passable(text: &str) -> bool {
    !text.contains('\0')
}

/// Whether a shell takes this as the name of a variable.
fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// One word of the shell, whatever is in it. NULs are left out.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}
