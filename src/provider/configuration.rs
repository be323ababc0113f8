//! The provider's configuration: its arguments, the environment variables behind them, and the client built from both.

use std::{collections::BTreeSet, num::NonZeroUsize, path::PathBuf, sync::Arc};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{DestroyFallback, Environment, OnLeftover, ProviderClient, account_budget::AccountBudget, rules};
use crate::{
    api::{self, BaseUrl, Context, InvalidBaseUrl, PlainHttp, Settings, TokenSource, UserAgent},
    creation::{Journal, progress},
    framework::{
        Attr, ConfigureContext, Diagnostics, Path, Schema, Secret, Type,
        schema::{Attribute, Validator},
        timeouts::{parse_duration, print_duration},
        value::Number,
    },
};

/// The typed form of the provider's configuration. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Configuration {
    pub(super) base_url: Attr<String>,
    pub(super) allow_http: Attr<bool>,
    pub(super) api_token: Attr<Secret>,
    pub(super) api_token_command: Attr<Vec<Attr<String>>>,
    pub(super) chat_api_key: Attr<Secret>,
    pub(super) default_max_age: Attr<String>,
    pub(super) region: Attr<String>,
    pub(super) request_timeout: Attr<String>,
    pub(super) max_retries: Attr<i64>,
    pub(super) max_concurrent_requests: Attr<i64>,
    pub(super) ca_certificate_file: Attr<String>,
    pub(super) preflight: Attr<bool>,
    pub(super) max_hourly_price: Attr<Number>,
    pub(super) max_account_hourly_price: Attr<Number>,
    pub(super) max_prepaid_total: Attr<Number>,
    pub(super) on_leftover: Attr<String>,
    pub(super) unique_names: Attr<bool>,
    pub(super) stack: Attr<String>,
}

pub(super) fn schema() -> Schema {
    let defaults = Settings::default();
    let timeout = print_duration(defaults.request_timeout);
    Schema::new(
        "Manages GPU instances, disks and images of the damodel service.\n\n\
         The provider contacts the service only when a resource or data source needs it, so a missing address or \
         credential is reported by the first one that does.",
        vec![
            Attribute::optional(
                "base_url",
                Type::String,
                "The service's base address; a trailing `/v1` or `/` is accepted. `https`, or `http` on a loopback \
                 address. Redirects are refused. Environment: `DAMODEL_BASE_URL`.",
            ),
            Attribute::optional(
                "allow_http",
                Type::Bool,
                "Whether plain `http` is allowed for any address, such as a private gateway; the token is then sent \
                 unencrypted. Default: `false`.",
            ),
            Attribute::optional(
                "api_token",
                Type::String,
                "The API token. Environment: `DAMODEL_API_TOKEN`, which keeps it out of configurations and plan files.",
            )
            .sensitive(),
            Attribute::optional(
                "api_token_command",
                Type::list(Type::String),
                "A program, with its arguments, that prints the API token as its first line. It runs without a shell \
                 or standard input, for at most 30 seconds. It runs again only if the service refuses the token. \
                 Environment: `DAMODEL_API_TOKEN_COMMAND` (one program without arguments).",
            ),
            Attribute::optional(
                "chat_api_key",
                Type::String,
                "The key of the chat endpoint. Environment: `DAMODEL_CHAT_API_KEY`.",
            )
            .sensitive(),
            Attribute::optional(
                "default_max_age",
                Type::String,
                "The default `max_age` of hourly instances. Environment: `DAMODEL_DEFAULT_MAX_AGE`.",
            )
            .validate(Validator::duration()),
            Attribute::optional("region", Type::String, "The default region. Environment: `DAMODEL_REGION`."),
            Attribute::optional(
                "request_timeout",
                Type::String,
                format!("How long one request may take. Default: `{timeout}`."),
            )
            .validate(Validator::duration()),
            Attribute::optional(
                "max_retries",
                Type::Number,
                format!("Maximum number of retries of a failed request. Default: `{}`.", defaults.max_retries),
            )
            .validate(Validator::between(0..=100)),
            Attribute::optional(
                "max_concurrent_requests",
                Type::Number,
                format!("How many requests may run at the same time. Default: `{}`.", defaults.max_concurrent_requests),
            )
            .validate(Validator::between(1..=1000)),
            Attribute::optional(
                "ca_certificate_file",
                Type::String,
                "A PEM file with additional root certificates, for example of a private gateway.",
            ),
            Attribute::optional(
                "preflight",
                Type::Bool,
                "Whether plans are checked against the live service: stock, limits, prices, images, disks and names, \
                 and a model against the GPU memory of its instance. Environment: `DAMODEL_PREFLIGHT`. Default: \
                 `true`.",
            ),
            Attribute::optional(
                "max_hourly_price",
                Type::Number,
                "The maximum hourly price of one instance, spot included. Checked in the plan and again before the \
                 instance is bought.",
            )
            .validate(Validator::positive()),
            Attribute::optional(
                "max_account_hourly_price",
                Type::Number,
                "The maximum hourly cost of the whole account: all instances that are not Released, at live prices, \
                 and those that this run creates. An instance that exceeds it, or has no known price, fails the plan, \
                 and the apply before it buys anything. Aliases, units and runs that start together can exceed it: \
                 give each a share, or run them one after the other.",
            )
            .validate(Validator::positive()),
            Attribute::optional(
                "max_prepaid_total",
                Type::Number,
                "The maximum total price of a prepaid term (`period_total`). A higher or unknown price (`Weekly`) \
                 fails the plan. Renewals are not limited.",
            )
            .validate(Validator::positive()),
            Attribute::optional(
                "on_leftover",
                Type::String,
                "What happens if an earlier run of this stack left an instance or disk of the same name that no state \
                 has shown. `fail` (default): the apply stops before it buys anything and prints the import command. \
                 `warn`: it creates another one. An unfinished create with the same arguments is always resumed.",
            )
            .validate(Validator::one_of(&["fail", "warn"])),
            Attribute::optional(
                "unique_names",
                Type::Bool,
                "If `true`, a create fails if the account already has an object of the same kind and name, for an \
                 instance in the plan already; the error has the import command. For pipelines on fresh runners. \
                 `create_before_destroy` then needs a name that changes. Default: `false`.",
            ),
            Attribute::optional(
                "stack",
                Type::String,
                "A name for this configuration, used in markers and pending records. Default: the backend, if \
                 its state is not in the working directory, else that directory. Set it if neither is the same in \
                 each run. Environment: `DAMODEL_STACK`.",
            )
            .validate(rules::non_empty()),
        ],
    )
}

/// Checks the arguments without the service.
pub(super) fn validate(configuration: &Configuration, diagnostics: &mut Diagnostics) {
    if let (Some(url), false) = (configuration.base_url.as_str(), configuration.allow_http.is_unknown()) {
        parse_base_url(url, configuration, Path::to("base_url"), diagnostics);
    }
    if let Some(region) = configuration.region.as_str() {
        usable_region(region, diagnostics);
    }
    if configuration.api_token_command.known().is_some_and(|argv| argv.iter().all(|word| word.as_str() == Some(""))) {
        diagnostics.error_at(
            Path::to("api_token_command"),
            "Invalid value",
            "api_token_command must name a program: [\"program\", \"argument\", …].",
        );
    }
    if configuration.api_token.is_known() && configuration.api_token_command.is_known() {
        diagnostics.error_at(
            Path::to("api_token_command"),
            "Two sources of the API token",
            "Set either api_token or api_token_command, not both.",
        );
    }
}

/// Builds the client, whose logs may show the values of the `loggable` fields. Malformed values are rejected here;
/// missing values are reported by the first call that needs them.
pub(super) async fn configure(
    configuration: Configuration,
    environment: &Environment,
    loggable: BTreeSet<&'static str>,
    context: &ConfigureContext<'_>,
    limits: &Context,
) -> Result<(Arc<ProviderClient>, Diagnostics), Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let text = |argument: &Attr<String>, variable: &str| {
        argument.as_str().map(str::trim).or_else(|| environment.variable(variable)).map(str::to_owned)
    };
    let defaults = Settings::default();
    let base_url = text(&configuration.base_url, "DAMODEL_BASE_URL")
        .and_then(|url| parse_base_url(&url, &configuration, Path::to("base_url"), &mut diagnostics));
    let token = match (&configuration.api_token_command, &configuration.api_token) {
        (Attr::Known(argv), _) => Some(TokenSource::Command(argv.iter().filter_map(Attr::known).cloned().collect())),
        (_, Attr::Known(_)) => credential(&configuration.api_token, ["api_token"; 2], environment, &mut diagnostics)
            .map(TokenSource::Value),
        _ => token_of_environment(environment).unwrap_or_else(|reason| {
            diagnostics.error("Invalid credential", format!("{reason}."));
            None
        }),
    };
    let pending = match environment.variable("DAMODEL_PENDING_DIR") {
        Some(directory) => environment.path(directory).unwrap_or_else(|error| {
            diagnostics.error("No home directory for DAMODEL_PENDING_DIR", error.to_string());
            PathBuf::new()
        }),
        None => environment.data_directory().join("damodel-pending"),
    };
    let stack = text(&configuration.stack, "DAMODEL_STACK");
    let place = environment.clone();
    // A file that stalls holds up no other call. A run that was stopped meanwhile creates nothing.
    let scope = limits.blocking(move || place.scope(stack.as_deref())).await.unwrap_or_default();
    let journal = Journal::new(pending).within(scope);
    let settings = Settings {
        base_url,
        token,
        api_key: credential(
            &configuration.chat_api_key,
            ["chat_api_key", "DAMODEL_CHAT_API_KEY"],
            environment,
            &mut diagnostics,
        ),
        request_timeout: configuration
            .request_timeout
            .as_str()
            .and_then(parse_duration)
            .unwrap_or(defaults.request_timeout),
        max_retries: whole(&configuration.max_retries).unwrap_or(defaults.max_retries),
        max_concurrent_requests: whole(&configuration.max_concurrent_requests)
            .and_then(NonZeroUsize::new)
            .unwrap_or(defaults.max_concurrent_requests),
        extra_roots_pem: extra_roots(&configuration, environment, limits, &mut diagnostics).await,
        proxies: environment.proxies(),
        user_agent: UserAgent {
            core: Some(format!("Terraform/{}", context.core_version)).filter(|_| !context.core_version.is_empty()),
            append: environment.variable("TF_APPEND_USER_AGENT").map(str::to_owned),
            ..defaults.user_agent
        },
        random: defaults.random,
        progress: progress::beside(&journal),
        work: context.work.clone(),
        loggable,
    };
    let region = text(&configuration.region, "DAMODEL_REGION").filter(|region| usable_region(region, &mut diagnostics));
    let on_unreleasable = destroy_fallback("DAMODEL_ON_UNRELEASABLE", environment, &mut diagnostics);
    let on_unreachable = destroy_fallback("DAMODEL_ON_UNREACHABLE", environment, &mut diagnostics);
    let preflight = configuration.preflight.into_known().or_else(|| preflight(environment, &mut diagnostics));
    let default_max_age =
        configuration.default_max_age.into_known().or_else(|| default_max_age(environment, &mut diagnostics));
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let client = ProviderClient {
        region,
        default_max_age,
        preflight: preflight.unwrap_or(true),
        max_hourly_price: configuration.max_hourly_price.known().cloned(),
        max_prepaid_total: configuration.max_prepaid_total.known().cloned(),
        account_budget: configuration.max_account_hourly_price.into_known().map(AccountBudget::new),
        on_unreleasable,
        on_unreachable,
        on_leftover: configuration.on_leftover.as_str().and_then(OnLeftover::parse).unwrap_or_default(),
        unique_names: configuration.unique_names.known() == Some(&true),
        environment: environment.clone(),
        ..ProviderClient::new(api::Client::new(settings), journal)
    };
    Ok((Arc::new(client), diagnostics))
}

/// The API token of the environment: a value, or a program that prints it.
pub(crate) fn token_of_environment(environment: &Environment) -> Result<Option<TokenSource>, String> {
    match (environment.variable("DAMODEL_API_TOKEN"), environment.variable("DAMODEL_API_TOKEN_COMMAND")) {
        (Some(_), Some(_)) => {
            Err("DAMODEL_API_TOKEN and DAMODEL_API_TOKEN_COMMAND are both set: unset one of them".to_owned())
        }
        (None, Some(program)) => Ok(Some(TokenSource::Command(vec![program.to_owned()]))),
        (Some(token), None) => match api::credential(&token.into()) {
            Some(token) => Ok(Some(TokenSource::Value(token))),
            None => Err(unsendable("DAMODEL_API_TOKEN")),
        },
        (None, None) => Ok(None),
    }
}

fn unsendable(place: &str) -> String {
    format!(
        "{place} contains a line break or another character that cannot be sent: it must be one line of printable \
         ASCII. White space around it is ignored"
    )
}

/// The token or key of an argument, else of its environment variable.
fn credential(
    argument: &Attr<Secret>,
    [name, variable]: [&str; 2],
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> Option<SecretString> {
    let (given, place) = match argument.known() {
        Some(secret) => (secret.clone().into_inner(), name),
        None => (environment.variable(variable)?.into(), variable),
    };
    let credential = api::credential(&given);
    if credential.is_none() {
        diagnostics.error_at(Path::to(name), "Invalid credential", format!("{}.", unsendable(place)));
    }
    credential
}

/// Whether a region can be sent, after white space around it is removed. Otherwise this is an error.
fn usable_region(region: &str, diagnostics: &mut Diagnostics) -> bool {
    let region = region.trim();
    let is_usable = rules::is_one_word(region);
    if !is_usable {
        let text = format!("The region (region or DAMODEL_REGION) must be one word; it is {region:?}.");
        diagnostics.error_at(Path::to("region"), "Invalid region", text);
    }
    is_usable
}

/// The variable of this name.
fn destroy_fallback(name: &str, environment: &Environment, diagnostics: &mut Diagnostics) -> Option<DestroyFallback> {
    parsed_variable(name, DestroyFallback::parse, r#""fail" or "abandon""#, environment, diagnostics)
}

fn preflight(environment: &Environment, diagnostics: &mut Diagnostics) -> Option<bool> {
    parsed_variable("DAMODEL_PREFLIGHT", yes_or_no, r#""true", "1", "false" or "0""#, environment, diagnostics)
}

fn yes_or_no(word: &str) -> Option<bool> {
    match word {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn default_max_age(environment: &Environment, diagnostics: &mut Diagnostics) -> Option<String> {
    let parse = |text: &str| parse_duration(text).map(|_| text.to_owned());
    parsed_variable("DAMODEL_DEFAULT_MAX_AGE", parse, Validator::DURATION, environment, diagnostics)
}

fn parsed_variable<T>(
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
    valid: &str,
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let word = environment.variable(name)?;
    let parsed = parse(word);
    if parsed.is_none() {
        let text = format!("{name} is {word:?}. The value must be {valid}, or not set.");
        diagnostics.error("Invalid environment variable", text);
    }
    parsed
}

fn parse_base_url(
    url: &str,
    configuration: &Configuration,
    path: Path,
    diagnostics: &mut Diagnostics,
) -> Option<BaseUrl> {
    let allowed = configuration.allow_http.known() == Some(&true);
    let plain_http = if allowed { PlainHttp::Anywhere } else { PlainHttp::LoopbackOnly };
    match BaseUrl::parse(url, plain_http) {
        Ok(url) => Some(url),
        Err(error) => {
            diagnostics.error_at(
                path,
                "Invalid base address",
                format!(
                    "The service's base address (base_url or DAMODEL_BASE_URL) cannot be used: {error}.{}",
                    match error {
                        InvalidBaseUrl::PlainHttp => " For a private gateway without TLS set allow_http = true.".into(),
                        // The text before an @ may contain a password.
                        InvalidBaseUrl::NoAddress if !url.contains('@') => format!(" Its value is {url:?}."),
                        _ => String::new(),
                    }
                ),
            );
            None
        }
    }
}

/// The additional certificates. A configure that is stopped goes on without them.
async fn extra_roots(
    configuration: &Configuration,
    environment: &Environment,
    limits: &Context,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<u8>> {
    let file = environment.path(configuration.ca_certificate_file.as_str()?);
    let file = file
        .map_err(|error| {
            diagnostics.error_at(Path::to("ca_certificate_file"), "No home directory", error.to_string());
        })
        .ok()?;
    let path = file.clone();
    let reason = match limits.blocking(move || std::fs::read(path)).await {
        Some(Ok(content)) => {
            if let Some(pem) = rules::certificates(&content) {
                return Some(pem);
            }
            diagnostics.error_at(
                Path::to("ca_certificate_file"),
                "Not a PEM file",
                format!(
                    "{} contains no line -----BEGIN CERTIFICATE-----. Set ca_certificate_file to root certificates in \
                     PEM format.",
                    file.display()
                ),
            );
            return None;
        }
        Some(Err(error)) => error.to_string(),
        None if limits.cancel.is_cancelled() => return None,
        None => "reading timed out".to_owned(),
    };
    diagnostics.error_at(
        Path::to("ca_certificate_file"),
        "Unreadable certificate file",
        format!("{} could not be read: {reason}.", file.display()),
    );
    None
}

fn whole(number: &Attr<i64>) -> Option<usize> {
    number.known().and_then(|number| usize::try_from(*number).ok())
}
