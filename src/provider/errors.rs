//! Diagnostics for errors of the service.

use std::{collections::BTreeSet, sync::atomic::Ordering};

use super::{
    PlanContext, ProviderClient,
    client::planning_limits,
    meanings::{attribute_of, meaning},
    words::title,
};
use crate::{
    api::{Code, Context, Error, InstanceUid, Missing},
    framework::{Attr, Diagnostic, Diagnostics, Path},
};

/// A failed call, with the context for its diagnostic.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    /// The error.
    pub(super) error: &'a Error,
    /// The attempted action, as text after "Cannot": `create instance "trainer"`.
    pub(super) tried: String,
    /// The resulting state, in a sentence.
    pub(super) now: String,
}

impl Failure<'_> {
    /// The same with [`database_id_advice`]. The service refuses an object of another kind with another code.
    pub(super) fn on_instance(mut self, instance_id: &str) -> Self {
        if let Some(advice) = database_id_advice(self.error, instance_id) {
            let separator = if self.now.is_empty() { "" } else { " " };
            self.now = format!("{}{separator}{advice}", self.now);
        }
        self
    }

    /// The diagnostic, at the first blamed attribute that is set in the configuration.
    pub(super) fn diagnostic(&self, is_set: impl Fn(&str) -> bool) -> Diagnostic {
        let meaning = meaning(self.error);
        let mut detail = String::new();
        for part in [meaning.advice, &self.now, &self.account()] {
            if !part.is_empty() {
                if !detail.is_empty() {
                    detail.push_str("\n\n");
                }
                detail.push_str(part);
            }
        }
        let diagnostic = Diagnostic::error(format!("Cannot {}: {}", self.tried, meaning.title), detail);
        let named = self.named_attributes().into_iter();
        match named.chain(meaning.attributes.iter().copied()).find(|name| is_set(name)) {
            Some(name) => diagnostic.at(Path::to(name)),
            None => diagnostic,
        }
    }

    /// The diagnostic about the whole object.
    pub(super) fn whole(&self) -> Diagnostic {
        self.diagnostic(|_| false)
    }

    /// The diagnostic as a warning: the step continues.
    pub(super) fn warning(&self) -> Diagnostic {
        let error = self.whole();
        Diagnostic::warning(error.summary, error.detail)
    }

    /// The diagnostic of a plan's check that failed: a warning, or an error if the provider is misconfigured.
    pub(super) fn of_a_check(&self, client: &ProviderClient) -> Diagnostics {
        self.misconfigured(client).unwrap_or_else(|| self.warning().into())
    }

    /// The diagnostic of a failed refresh, which leaves the state unchanged.
    pub(super) fn of_a_refresh(&self, client: &ProviderClient) -> Diagnostics {
        self.misconfigured(client).unwrap_or_else(|| self.whole().into())
    }

    /// The error of a provider with a missing or wrong address or token; `None` if the reason is another. All calls
    /// fail alike then, so only the first one reports it in a run.
    fn misconfigured(&self, client: &ProviderClient) -> Option<Diagnostics> {
        let is_misconfigured = matches!(
            self.error,
            Error::Missing(_) | Error::NeverSent { .. } | Error::Token(_) | Error::Transport { .. }
        );
        if !is_misconfigured && !self.error.refuses_token() {
            return None;
        }
        if client.has_reported_misconfiguration.swap(true, Ordering::Relaxed) {
            return Some(Diagnostics::new());
        }
        let meaning = meaning(self.error);
        let summary = format!("Provider damodel: {}", meaning.title);
        let is_bare = matches!(self.error, Error::Missing(Missing::BaseUrl)) && client.api.settings().token.is_none();
        let token = Error::Missing(Missing::ApiToken);
        let also = if is_bare { self::meaning(&token).advice } else { "" };
        let account = self.account();
        let parts = [meaning.advice, also, "The state is unchanged.", &account];
        let detail = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        Some(Diagnostic::error(summary, detail).into())
    }

    /// The service's response, with its code and ids.
    fn account(&self) -> String {
        match self.error.service() {
            Some(service) => format!(
                "Service response: {} ({}, endpoint {}){}.",
                if service.message.is_empty() { "no message" } else { service.message.trim_end_matches('.') },
                match (service.code.number(), &service.name) {
                    (0, Some(name)) => format!("code {name}"),
                    (0, None) => "no code".to_owned(),
                    (number, _) => format!("code {number} {}", service.code_name()),
                },
                service.endpoint,
                service.ids,
            ),
            None => format!("The error: {}.", self.error),
        }
    }

    /// The attributes of the service fields in the message of an invalid parameter, in order.
    fn named_attributes(&self) -> Vec<&'static str> {
        let Some(service) = self.error.service() else { return Vec::new() };
        if !matches!(service.code, Code::InvalidParameter | Code::Other(_)) {
            return Vec::new();
        }
        let words = service.message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter_map(attribute_of).collect()
    }
}

/// The advice for an instance that the service does not have, if its `instance_id` is a number.
pub(super) fn database_id_advice(error: &Error, instance_id: &str) -> Option<String> {
    let is_missing = error.code() == Some(Code::InstanceNotExistOrNoPrivilege);
    is_missing.then(|| database_id_hint(instance_id)).flatten().map(|hint| hint + ".")
}

/// The error of a replacement for an instance that does not exist: what it replaces would end first. `now` is the
/// state, in a sentence.
pub(super) async fn missing_instance(
    instance_id: &Attr<String>,
    replace: &[Path],
    now: &str,
    context: &PlanContext<'_>,
) -> Option<Diagnostic> {
    let path = Path::to("instance_id");
    let client = context.client.filter(|client| client.preflight && replace.contains(&path))?;
    let id = instance_id.as_str()?;
    let error = client.api.instances().detail(&InstanceUid::new(id), &planning_limits(context)).await.err()?;
    let tried = format!("find {}", title("instance", None, Some(id)));
    let failure = Failure { error: &error, tried, now: now.to_owned() };
    let is_missing = error.code() == Some(Code::InstanceNotExistOrNoPrivilege);
    is_missing.then(|| failure.on_instance(id).whole().at(path))
}

/// A sentence without its full stop, if an instance was looked for by a number: no UID is one.
pub(crate) fn database_id_hint(instance_id: &str) -> Option<String> {
    let is_number = !instance_id.is_empty() && instance_id.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| {
        format!("{instance_id} looks like the database_id of an instance: use its id, damodel_instance.<name>.id")
    })
}

/// The error of a region without specifications, with the regions that the account uses: the service has no list of
/// regions.
pub(super) async fn unknown_region(region: &str, client: &ProviderClient, limits: &Context) -> Diagnostic {
    let mut used = BTreeSet::new();
    if let Ok(instances) = client.api.instances().snapshot(limits).await {
        used.extend(instances.records.iter().filter_map(|instance| instance.region.clone()));
    }
    if let Ok(images) = client.api.private_images().snapshot(limits).await {
        used.extend(images.records.iter().filter_map(|image| image.region.clone()));
    }
    used.remove(region);
    let used: Vec<String> = used.into_iter().collect();
    let advice = if used.is_empty() {
        "The console shows the regions.".to_owned()
    } else {
        format!("The regions of this account's instances and images: {}.", used.join(", "))
    };
    let detail =
        format!("Region {region:?} has no specifications. Check the spelling of `region` or DAMODEL_REGION. {advice}");
    Diagnostic::error("The region has no specifications", detail).at(Path::to("region"))
}

/// The error of a call that needs a region and has none, with what else is missing: nothing can be asked then.
pub(super) fn missing_region(client: &ProviderClient) -> Diagnostic {
    let settings = client.api.settings();
    let others = [(settings.base_url.is_none(), Missing::BaseUrl), (settings.token.is_none(), Missing::ApiToken)];
    let mut detail = "Set region here, in the provider block, or in DAMODEL_REGION.".to_owned();
    for (_, other) in others.into_iter().filter(|(is_missing, _)| *is_missing) {
        detail = format!("{detail}\n\n{}", meaning(&Error::Missing(other)).advice);
    }
    Diagnostic::error("Missing region", detail).at(Path::to("region"))
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Arc};

    use super::*;
    use crate::{
        api::{
            self, Cause, Endpoint, HeldElsewhere, JournalError, RequestIds, ServiceError, Settings, TokenError,
            UnreadAnswer, Unsettled, WaitEnded,
        },
        creation::Journal,
    };

    const ENDPOINT: Endpoint = Endpoint::InstanceRelease;

    fn ids() -> RequestIds {
        RequestIds { request_id: Some("req-9".to_owned()), trace_id: Some("trace-9".to_owned()) }
    }

    fn service(code: i64, endpoint: Endpoint) -> Error {
        Error::Service(Box::new(ServiceError {
            endpoint,
            code: Code::from_number(code),
            name: None,
            message: "a line\nand another".to_owned(),
            status: 200,
            ids: ids(),
            retry_after: None,
            server_time: None,
        }))
    }

    fn unread() -> Box<UnreadAnswer> {
        let reason = "not JSON".to_owned();
        Box::new(UnreadAnswer { endpoint: ENDPOINT, status: 401, reason, ids: ids(), retry_after: None })
    }

    /// Whether the service answered, and with its own error. A new kind of error must be decided here.
    fn answered(error: &Error) -> (bool, bool) {
        match error {
            Error::Service(_) => (true, true),
            Error::Undecodable(_) | Error::UndocumentedStatus(_) => (true, false),
            Error::Unsettled(unsettled) => (unsettled.cause.is_some(), false),
            Error::WaitEnded(ended) => (ended.cause.is_some(), false),
            Error::Cancelled { .. }
            | Error::DeadlinePassed { .. }
            | Error::HeldElsewhere(_)
            | Error::Journal(_)
            | Error::Missing(_)
            | Error::NeverSent { .. }
            | Error::NoAnswer { .. }
            | Error::NoneAccepted(_)
            | Error::Redirected { .. }
            | Error::SeveralMatches { .. }
            | Error::Token(_)
            | Error::Transport { .. }
            | Error::Unsendable { .. }
            | Error::Withdrawn { .. } => (false, false),
        }
    }

    fn all() -> Vec<Error> {
        let io = || Arc::new(std::io::Error::other("full"));
        let wait = |cause| {
            let (what, last) = ("instance ins-1".to_owned(), Some("Creating".to_owned()));
            Error::WaitEnded(Box::new(WaitEnded { what, last, age: None, cause, cancelled: false }))
        };
        let unsettled =
            |cause| Error::Unsettled(Box::new(Unsettled { marker: "web-1".to_owned(), cause, cancelled: false }));
        let codes = [0, 100_002, 100_006, 130_005, 160_001, 160_003, 160_012, 199_999];
        let mut all: Vec<Error> = codes.map(|code| service(code, ENDPOINT)).to_vec();
        all.extend([
            service(100_006, Endpoint::ChatCompletions),
            Error::Cancelled { endpoint: ENDPOINT },
            Error::DeadlinePassed { endpoint: ENDPOINT },
            Error::HeldElsewhere(Box::new(HeldElsewhere { process: Some(7), directory: PathBuf::from("/x") })),
            Error::Journal(JournalError { path: PathBuf::from("/x"), action: "write", cause: io() }),
            Error::Missing(Missing::ApiKey),
            Error::Missing(Missing::ApiToken),
            Error::Missing(Missing::BaseUrl),
            Error::Missing(Missing::BaseUrlAndToken),
            Error::NoneAccepted(Vec::new()),
            Error::NeverSent {
                endpoint: ENDPOINT,
                address: "https://api.example.com".to_owned(),
                cause: Cause::new("refused"),
            },
            Error::NoAnswer { endpoint: ENDPOINT, cause: Cause::new("reset") },
            Error::Redirected { endpoint: ENDPOINT, status: 302 },
            Error::SeveralMatches { marker: "web-1".to_owned(), found: vec!["1".to_owned(), "2".to_owned()] },
            Error::Token(TokenError::NoProgram),
            Error::Transport { reason: "no certificate store".to_owned() },
            Error::Undecodable(unread()),
            Error::UndocumentedStatus(unread()),
            Error::Unsendable { credential: "token" },
            unsettled(None),
            unsettled(Some(service(100_014, ENDPOINT))),
            wait(None),
            wait(Some(service(100_014, ENDPOINT))),
            Error::Withdrawn { endpoint: ENDPOINT },
        ]);
        all
    }

    #[test]
    fn code_and_ids_are_the_last_line_of_a_detail_and_stand_only_where_the_service_answered() {
        for error in all() {
            let failure = Failure { error: &error, tried: "release it".to_owned(), now: "It is kept.".to_owned() };
            let failure = failure.on_instance("17");
            let client = || ProviderClient::new(api::Client::new(Settings::default()), Journal::new("/none"));
            let mut said = vec![failure.whole(), failure.warning()];
            said.extend(failure.of_a_check(&client()));
            said.extend(failure.of_a_refresh(&client()));
            assert_eq!(said.len(), 4, "{error:?}");
            for said in said {
                let (has_ids, has_code) = answered(&error);
                let (rest, last) = said.detail.rsplit_once('\n').unwrap();
                assert_eq!(last.contains("request_id req-9, trace_id trace-9)"), has_ids, "{said:#?}");
                assert_eq!(last.contains(" (code ") || last.contains(" (no code"), has_code, "{said:#?}");
                assert!(!["request_id", "(code", "trace_id"].iter().any(|word| rest.contains(word)), "{said:#?}");
            }
        }
    }
}
