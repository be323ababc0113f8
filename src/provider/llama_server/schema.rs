//! The attributes of `damodel_llama_server`.

use super::model_source;
use crate::{
    api::trimmed,
    framework::{
        Schema, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, Validator},
    },
    llama::{self, REFERENCE, REPOSITORY},
    provider::{login::schema as ssh, rules},
};

pub(super) fn schema() -> Schema {
    let mut attributes = place();
    attributes.extend(keys());
    attributes.extend(build());
    attributes.extend(options());
    attributes.extend(behaviour());
    attributes.extend(reported());
    Schema::new(
        "Runs llama.cpp's `llama-server` in an instance over SSH, prebuilt or compiled there, with an OpenAI-style \
         chat on its port.\n\nThe work continues in the instance after a lost connection, Ctrl-C or a killed run; the \
         next apply resumes it. A server that exited, runs with other options or serves another model is drift, which \
         the next apply repairs.",
        attributes,
    )
}

/// The arguments whose change restarts the server: those of its start. A change of some makes another server instead, a
/// version stands for a write-only one, and of files that are downloaded only the paths count.
pub(super) fn restarting() -> impl Iterator<Item = Attribute> {
    let all = [keys(), build(), options()].into_iter().flatten();
    all.filter(|argument| {
        argument.replacement == Replacement::Never && !argument.write_only && !DOWNLOADS.contains(&&*argument.name)
    })
}

/// The arguments with addresses.
const DOWNLOADS: [&str; 2] = ["model_source", "additional_files"];

fn place() -> Vec<Attribute> {
    let secret = |name: &'static str, description: &str| {
        Attribute::optional(name, Type::String, format!("{description} {WRITE_ONLY}")).sensitive().write_only()
    };
    vec![
        Attribute::computed("id", Type::String, "The instance's UID (or the host) and the port: `ins-…:8000`."),
        Attribute::optional(
            "instance_id",
            Type::String,
            "The instance. Address, port, password and GPU come from the service, and no secret enters the state.",
        )
        .replaces(Replacement::Always)
        .validate(rules::instance_uid()),
        ssh::attribute(
            ssh::Visitor::Resource,
            "How to log in. With `instance_id`, only what the service does not provide is needed, such as a private \
             key. A change of `host` replaces the server; other changes do not restart it.",
        ),
        secret("ssh_private_key_wo", "As `ssh.private_key`.").validate(ssh::private_key()),
        secret("ssh_password_wo", "As `ssh.password`."),
    ]
}

const WRITE_ONLY: &str = "It never enters plan or state, so it is not available when the resource is \
                          refreshed or destroyed. Without other credentials a refresh keeps the state unchanged, and a \
                          destroyed resource leaves the server running, with a warning.";

fn keys() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "api_key",
            Type::String,
            "The API key that clients must send. It is stored in the state, but in no file, command line or \
             environment of the instance. Without a key anyone who reaches the port can chat.",
        )
        .sensitive()
        .validate(api_key()),
        Attribute::optional(
            "api_key_wo",
            Type::String,
            "Like `api_key`, but never stored in plan or state. A new value takes effect when `api_key_wo_version` \
             changes, or when another change restarts the server.",
        )
        .sensitive()
        .write_only()
        .validate(api_key()),
        Attribute::optional(
            "api_key_wo_version",
            Type::Number,
            "A whole number; a change restarts the server with the current `api_key_wo`.",
        )
        .validate(Validator::whole()),
    ]
}

pub(super) fn api_key() -> Validator {
    Validator::text(llama::API_KEY_RULE, |key| llama::is_api_key(trimmed(key)))
}

/// A path in the instance.
fn path() -> Validator {
    Validator::text("an absolute path in the instance, or one in the home directory (~/…)", |path| {
        (path.starts_with('/') || path.starts_with("~/")) && !path.contains(|c: char| c.is_control())
    })
}

fn build() -> Vec<Attribute> {
    vec![
        Attribute::required(
            "model",
            Type::String,
            "The GGUF file in the instance, such as `~/public-storage/model/…`; `~/` is the home of the user that \
             logs in.",
        )
        .validate(path()),
        Attribute::optional(
            "model_source",
            AttributeType::Nested(Nesting::Single, address_and_sum("`model`")),
            "If the file is not at `model`, the instance downloads it with `curl` or `python3` before the previous \
             server is stopped. An interrupted download is continued. An existing file is never overwritten, and a \
             `destroy` leaves it.",
        ),
        Attribute::optional(
            "model_source_token_wo",
            Type::String,
            "The token for the downloads, such as one of a hub where the model's terms were accepted; only the server \
             of `model_source.url` gets it, or without `model_source`, that of the first entry of `additional_files`. \
             It never enters plan or state. Default for `https://huggingface.co/…`: the environment variable \
             `DAMODEL_MODEL_TOKEN`.",
        )
        .sensitive()
        .write_only()
        .validate(Validator::text(model_source::TOKEN, |token| model_source::is_token(trimmed(token)))),
        Attribute::optional(
            "additional_files",
            AttributeType::Nested(Nesting::List, additional_file()),
            "Further files that must exist before the server starts, such as a projector, a draft model or a LoRA. \
             They are downloaded as `model_source` downloads the model, and named in `extra_args`. A missing or \
             replaced file is drift. A removed entry restarts the server, and its file stays.",
        ),
        Attribute::with_default(
            "build",
            Type::String,
            "auto",
            "`prebuilt`, `source` (compiled in the instance: ten minutes or more, needs a CUDA toolkit) or `auto`: \
             prebuilt, then source if it fails for another reason than memory or a damaged model. On a V100 or P40 \
             `auto` always uses source.",
        )
        .validate(Validator::one_of(&["auto", "prebuilt", "source"])),
        Attribute::optional_computed(
            "package",
            Type::String,
            "The prebuilt server's path in the instance. Default: the one in `~/public-storage/package`, then in \
             `/root/public-storage/package`.",
        )
        .validate(path()),
        Attribute::with_default(
            "workspace",
            Type::String,
            llama::DEFAULT_WORKSPACE,
            "The folder for logs, builds and records.",
        )
        .replaces(Replacement::IfKnown)
        .validate(path()),
        Attribute::optional(
            "source",
            AttributeType::Nested(Nesting::Single, source()),
            format!(
                "The source to compile. Default: a source tree or archive where `package` is found by default, else \
                 the public repository of llama.cpp at `{REFERENCE}`. A finished build is reused while source, \
                 architectures and toolkit stay the same."
            ),
        ),
    ]
}

fn additional_file() -> Vec<Attribute> {
    let at = Attribute::required(
        "path",
        Type::String,
        "The path in the instance; `~/` is the home of the user that logs in. Options in `extra_args` need it without \
         `~`: as an absolute path, or relative to `workspace`.",
    );
    [vec![at.validate(path())], address_and_sum("`path`")].concat()
}

/// `place` is the argument with the path.
fn address_and_sum(place: &str) -> Vec<Attribute> {
    vec![
        Attribute::required(
            "url",
            Type::String,
            format!(
                "The address of the file. One that ends in `-00001-of-00003.gguf` stands for all files of a split \
                 model; {place} must end in the same way."
            ),
        )
        .validate(Validator::text(model_source::ADDRESS, model_source::is_address)),
        Attribute::optional(
            "sha256",
            Type::String,
            "The SHA-256 that the file must have, downloaded or existing. Not for a split model. Without it, a sum \
             that is sent with a download (`X-Linked-ETag`) is compared.",
        )
        .validate(Validator::text("a SHA-256 in 64 hexadecimal digits", |sum| {
            sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
        })),
    ]
}

fn source() -> Vec<Attribute> {
    vec![
        Attribute::optional("url", Type::String, format!("The repository. Default: `{REPOSITORY}`.")).validate(
            Validator::text("the address of a git repository", |url| {
                !url.is_empty() && !url.starts_with('-') && !url.contains(char::is_whitespace)
            }),
        ),
        Attribute::optional(
            "ref",
            Type::String,
            "The branch, tag or commit to compile. Default: the default branch of `url`.",
        )
        .validate(Validator::text("a git branch, tag or commit", |reference| {
            !reference.is_empty() && !reference.starts_with('-') && !reference.contains(char::is_whitespace)
        })),
        Attribute::optional("path", Type::String, "A directory or archive with the source, in the instance.")
            .validate(path()),
        Attribute::optional(
            "cuda_architectures",
            Type::list(Type::String),
            "The CUDA architectures to compile for, as cmake names them. Default: those of the GPUs.",
        )
        .validate(Validator::text(
            "a CUDA architecture such as \"70\", \"90a\" or \"89-real\", or \"native\", \"all\" or \"all-major\"",
            is_architecture,
        )),
    ]
}

/// Whether cmake takes this for an architecture (its documentation of `CUDA_ARCHITECTURES`).
fn is_architecture(text: &str) -> bool {
    let number = text.strip_suffix("-real").or_else(|| text.strip_suffix("-virtual")).unwrap_or(text);
    let digits = number.strip_suffix(['a', 'f']).unwrap_or(number);
    let is_number = (2..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number || matches!(text, "native" | "all" | "all-major")
}

/// The options of the server itself (service API, In-instance inference server guide).
fn options() -> Vec<Attribute> {
    let cache = |name: &'static str, whose: &str| {
        Attribute::with_default(name, Type::String, "q8_0", format!("The type of the {whose} cache."))
            .validate(Validator::one_of(llama::CACHE_TYPES))
    };
    vec![
        Attribute::with_default(
            "host",
            Type::String,
            "0.0.0.0",
            "The address that the server listens on. The provider checks the server on the loopback address, so this \
             must include it: `0.0.0.0`, `::`, `127.0.0.1` or `localhost`.",
        )
        .validate(Validator::one_of(&["0.0.0.0", "::", "127.0.0.1", "localhost"])),
        port("The port that the server listens on.").replaces(Replacement::Always),
        Attribute::with_default(
            "context_size",
            Type::Number,
            32768,
            "The context in tokens, shared by the `parallel` chats; 0 is the context that the model was trained with.",
        )
        .validate(Validator::between(0..=i64::from(i32::MAX))),
        Attribute::with_default(
            "parallel",
            Type::Number,
            1,
            "How many chats are served at once. They share the context.",
        )
        .validate(Validator::between(1..=4096)),
        Attribute::with_default(
            "gpu_layers",
            Type::Number,
            999,
            "How many layers of the model are put on the GPU; 999 is all, 0 runs it on the CPU.",
        )
        .validate(Validator::between(0..=i64::from(i32::MAX))),
        Attribute::with_default("flash_attention", Type::String, "on", "`on`, `off` or `auto`.")
            .validate(Validator::one_of(&["on", "off", "auto"])),
        cache("cache_type_k", "key"),
        cache("cache_type_v", "value"),
        Attribute::with_default(
            "jinja",
            Type::Bool,
            true,
            "Whether the model's own chat template is used (`--jinja`).",
        ),
        Attribute::with_default("metrics", Type::Bool, true, "Whether `/metrics` is served."),
        Attribute::optional(
            "extra_args",
            Type::list(Type::String),
            "Further options, appended unchanged. `--api-key`, `--api-prefix`, options for TLS, \
             the listening address and the model (a download too) are refused, and files that options name must exist.",
        )
        .validate(Validator::text("one word of a command line, without NUL", |word| !word.contains('\0'))),
        Attribute::optional("environment", Type::map(Type::String), "Environment variables of the server.").sensitive(),
        Attribute::optional("triggers", Type::map(Type::String), "Arbitrary values. Changing one restarts the server."),
    ]
}

/// The argument `port`.
pub(super) fn port(description: &str) -> Attribute {
    Attribute::with_default("port", Type::Number, i64::from(llama::DEFAULT_PORT), description)
        .validate(Validator::between(1..=65535))
}

/// The arguments for the provider's own behaviour: a change restarts nothing.
fn behaviour() -> Vec<Attribute> {
    vec![
        Attribute::with_default(
            "ready_timeout",
            Type::String,
            "10m",
            "How long a start may take until the probe is answered. A longer start counts as failed; with `build = \
             \"auto\"` a build from source follows.",
        )
        .validate(Validator::duration()),
        Attribute::optional(
            "probe",
            AttributeType::Nested(
                Nesting::Single,
                vec![
                    Attribute::with_default(
                        "endpoint",
                        Type::String,
                        "chat",
                        "The request to send: `chat`, `embeddings`, `rerank` or `health`.",
                    )
                    .validate(Validator::one_of(&["chat", "embeddings", "rerank", "health"])),
                    Attribute::with_default("prompt", Type::String, llama::DEFAULT_PROMPT, "The question to ask.")
                        .validate(rules::non_empty()),
                    Attribute::with_default("max_tokens", Type::Number, 64, "The longest answer in tokens.")
                        .validate(Validator::between(1..=i64::from(i32::MAX))),
                    Attribute::optional("expect", Type::String, "A regular expression that the answer must match.")
                        .validate(Validator::regular_expression()),
                ],
            ),
            "The request that a server must answer to count as ready. An apply sends it; a refresh only checks \
             `/health`. Default: a chat of one token.",
        ),
        Attribute::with_default(
            "on_unreachable",
            Type::String,
            "fail",
            "What a destroy does if the login fails, the workspace does not answer, or the server does not stop: \
             `fail`, or `abandon`: remove the server from the state and leave it running. The environment variable \
             `DAMODEL_ON_UNREACHABLE` overrides it.",
        )
        .validate(Validator::one_of(&["fail", "abandon"])),
        Attribute::with_default(
            "on_failure",
            Type::String,
            "rollback",
            "What happens if a started server fails. `rollback`: an update stops it, starts the previous server with \
             its previous options, and fails; the state keeps the previous arguments. A new server without a previous \
             one is left with its logs. `keep` leaves the failed one, `stop` stops it. The previous server is stopped \
             only when the new one is found or built and accepts its options.",
        )
        .validate(Validator::one_of(&["rollback", "keep", "stop"])),
        Attribute::with_default(
            "restart_policy",
            Type::String,
            "on_failure",
            "`on_failure`: a server that exits after it has served is restarted in the instance, after pauses that \
             double up to ten minutes; a server that was stopped on purpose, as with `kill`, is not. `never`: the \
             next apply starts it.",
        )
        .validate(Validator::one_of(&["on_failure", "never"])),
    ]
}

fn reported() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    vec![
        text(
            "status",
            "`ready`, `stopped`, `starting` (the work in the instance continues), `failed`, `unresponsive` (no correct \
             answer), `outdated` (the model's file was replaced), `displaced` (a llama-server that was started by hand \
             uses the port), `blocked` (another program uses the port) or `unsupervised` (nothing would restart the \
             server, although `restart_policy` is `on_failure`). The next apply repairs every status except `ready` \
             and `blocked`. A slow answer only causes a warning.",
        ),
        text("endpoint", "The base address of an OpenAI-style client inside the instance: `http://127.0.0.1:8000/v1`."),
        text(
            "base_url",
            "The base address for clients outside the instance: `http://<external_ip>:<port>/v1` if the instance has \
             an `external_ip` and `host` is `0.0.0.0` or `::`; otherwise null. The API key is sent unencrypted there. \
             For encryption, use a `damodel_llama_tunnel`, or a proxy with TLS in front of the server.",
        ),
        text(
            "model_name",
            "The name of the model in requests: the one that `/v1/models` reported when the server was started with \
             this `model`, `extra_args` and `environment`. Null if there was no answer.",
        ),
        text("build_used", "`prebuilt` or `source`."),
        text("host_key", "The pinned SSH host key: `ssh.host_key`, or the key of the first login."),
        Attribute::computed("process", AttributeType::Nested(Nesting::Single, process()), "The server that runs."),
    ]
}

fn process() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    vec![
        Attribute::computed("pid", Type::Number, "The process id."),
        text("command_line", "The command line, without secrets."),
        text("log_path", "The log file in the instance."),
        text("started_at", "When it was started (RFC 3339, UTC)."),
        text("server_version", "The version that it reports."),
        Attribute::computed(
            "restarts",
            Type::Number,
            "How often the server was restarted automatically since the last apply.",
        ),
        Attribute::computed(
            "supervised",
            Type::Bool,
            "Whether the server is restarted automatically if it exits. Null while it is not running.",
        ),
        text("owner", "Identifies the resource that manages the server. Not a secret."),
        text("last_exit", "Exit status before the last automatic restart."),
        text("model_fingerprint", "Size, time of the last change, and a hash of the header of the model's file."),
        Attribute::computed(
            "model_verified",
            Type::Bool,
            "Whether the model had the right SHA-256 when the server was started: `model_source.sha256`, or the sum \
             that was sent with the download.",
        ),
        Attribute::computed(
            "tokens_per_second",
            Type::Number,
            "The speed of the last probe's answer; null for a probe of one token.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::schema::Requirement;

    /// A new argument has to be added to one of the two lists.
    #[test]
    fn each_argument_restarts_the_server_or_does_not() {
        const RESTARTING: &str = "api_key api_key_wo_version model build package source host context_size parallel \
                                  gpu_layers flash_attention cache_type_k cache_type_v jinja metrics extra_args \
                                  environment triggers";
        const OTHERS: &str = "instance_id ssh ssh_private_key_wo ssh_password_wo api_key_wo model_source \
                              model_source_token_wo additional_files workspace port ready_timeout probe on_unreachable \
                              on_failure restart_policy";
        let restarting: Vec<_> = restarting().map(|argument| argument.name).collect();
        assert_eq!(restarting, RESTARTING.split(' ').collect::<Vec<_>>());
        let others = schema().attributes.into_iter().filter(|it| it.requirement != Requirement::Computed);
        let others: Vec<_> = others.map(|argument| argument.name).filter(|name| !restarting.contains(name)).collect();
        assert_eq!(others, OTHERS.split(' ').collect::<Vec<_>>());
    }
}
