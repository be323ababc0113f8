//! What an operator reads of a create that was not accepted.

use std::collections::BTreeMap;

use super::{Managed, ManagedExt as _, noun};
use crate::{
    api::{Context as Limits, Error, Refusal},
    framework::{Diagnostic, Diagnostics, Path},
    provider::{Client, errors::Failure, words::capitalized},
};

/// A create that was not accepted.
pub(super) struct Refused<'a, M> {
    pub(super) planned: &'a M,
    pub(super) error: &'a Error,
    /// Why choices were not asked for, by their place.
    pub(super) withheld: BTreeMap<usize, Diagnostic>,
    /// The names of the choices, where there are several.
    pub(super) candidates: Vec<String>,
}

impl<M: Managed> Refused<'_, M> {
    /// The diagnostics, at the attribute to blame.
    pub(super) async fn diagnostics(
        mut self,
        client: &Client,
        limits: &Limits,
        is_set: impl Fn(&str) -> bool,
    ) -> Diagnostics {
        if let Error::NoneAccepted(refusals) = self.error {
            return self.of_each(refusals, client, limits).await.into();
        }
        if self.candidates.is_empty()
            && let Some(withheld) = self.withheld.remove(&0)
        {
            return withheld.into();
        }
        let more = self.planned.explain_refusal(self.error, client, limits).await;
        self.of_one(client, more, is_set).into()
    }

    fn of_one(&self, client: &Client, more: Option<String>, is_set: impl Fn(&str) -> bool) -> Diagnostic {
        let (noun, error) = (noun::<M>(), self.error);
        let mut now = match error {
            Error::Unsettled(unsettled) => format!(
                "Whether a {noun} was created is not known. If it was, its name is {:?}, and its pending record is in \
                 {}. The next apply looks for it first.",
                unsettled.marker,
                client.journal.directory().display()
            ),
            Error::SeveralMatches { .. } => format!("At least one {noun} too many was created."),
            _ => "Nothing was created.".to_owned(),
        };
        if let Some(more) = more {
            now = format!("{now} {more}");
        }
        Failure { error, tried: format!("create {}", self.planned.title()), now }.diagnostic(is_set)
    }

    /// Says of each candidate why it was not created.
    async fn of_each(&self, refusals: &[Refusal], client: &Client, limits: &Limits) -> Diagnostic {
        let mut more = None;
        let mut lines = Vec::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            let refusal = refusals.iter().find(|refusal| refusal.choice == place).map(|refusal| &refusal.error);
            let reason = match (refusal.and_then(Error::service), self.withheld.get(&place)) {
                (Some(refused), _) => {
                    let message = refused.message.trim_end_matches('.');
                    format!("{message} (code {} {}{}).", refused.code.number(), refused.code_name(), refused.ids)
                }
                (None, Some(withheld)) => format!("{}. {}", withheld.summary, withheld.detail),
                (None, None) => refusal.map_or_else(|| "It was refused before.".to_owned(), ToString::to_string),
            };
            if let (Some(error), None) = (refusal, &more) {
                more = self.planned.explain_refusal(error, client, limits).await;
            }
            lines.push(format!("- {candidate}: {reason}"));
        }
        let more = more.map(|more| format!("\n\n{more}")).unwrap_or_default();
        let summary = format!("No candidate of {} could be created", self.planned.title());
        let detail = format!("Nothing was created.\n\n{}{more}", lines.join("\n"));
        Diagnostic::error(capitalized(&summary), detail).at(Path::to("candidates"))
    }
}
