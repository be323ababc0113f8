//! From an error of the service to what the operator reads.

use std::sync::atomic::Ordering;

use super::{
    Client,
    meanings::{attribute_of, meaning},
};
use crate::{
    api::{Code, Error, Missing},
    framework::{Diagnostic, Diagnostics, Path},
};

/// A call that failed, and what the operator needs to know around it.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    /// What went wrong.
    pub(super) error: &'a Error,
    /// What was tried, as it reads after "Cannot": `create instance "trainer"`.
    pub(super) tried: String,
    /// What state things are in now, in a sentence.
    pub(super) now: String,
}

impl Failure<'_> {
    /// The diagnostic, at the first attribute to blame that the configuration sets.
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

    /// The diagnostic about the whole thing.
    pub(super) fn whole(&self) -> Diagnostic {
        self.diagnostic(|_| false)
    }

    /// The same as a warning: the step goes on.
    pub(super) fn warning(&self) -> Diagnostic {
        let error = self.whole();
        Diagnostic::warning(error.summary, error.detail)
    }

    /// The same for a check of a plan that could not be made: a warning, or the error that the provider is not
    /// configured well enough for any call.
    pub(super) fn of_a_check(&self, client: &Client) -> Diagnostics {
        self.misconfigured(client).unwrap_or_else(|| self.warning().into())
    }

    /// The same for a refresh, which leaves the state as it is.
    pub(super) fn of_a_refresh(&self, client: &Client) -> Diagnostics {
        self.misconfigured(client).unwrap_or_else(|| self.whole().into())
    }

    /// The error of a provider whose address or token is missing or wrong; none if that is not the reason. All calls
    /// fail alike then, so the first one reports it for the whole run, and the others nothing.
    fn misconfigured(&self, client: &Client) -> Option<Diagnostics> {
        let is_misconfigured = matches!(
            self.error,
            Error::Missing(_) | Error::NeverSent { .. } | Error::Token(_) | Error::Transport { .. }
        );
        if !is_misconfigured && self.error.code() != Some(Code::InvalidToken) {
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

    /// The error in the service's own words, with its code and ids.
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

    /// The attributes whose service fields the message of an invalid parameter names, in its order.
    fn named_attributes(&self) -> Vec<&'static str> {
        let Some(service) = self.error.service() else { return Vec::new() };
        if !matches!(service.code, Code::InvalidParameter | Code::Other(_)) {
            return Vec::new();
        }
        let words = service.message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter_map(attribute_of).collect()
    }
}
