//! The create of all kinds: sent once, waited for, and renamed.
//!
//! After the acceptance the object is in the state on every path. Only a failed creation and a timeout are errors,
//! which make Terraform taint the object; everything else is a warning (plugin protocol, ApplyResourceChange).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    absence, leftovers,
    managed::{Choice, CreateEnd, Managed, ManagedCreate, ManagedExt as _, noun},
};
use crate::{
    api::{self, Context, Error, Object as _, Refusal, Sighting},
    creation::{self, Accepted, Attempt, Choices, CreateOptions, Entry, Leftover, Origin, Permission},
    framework::{Attr, Create, Diagnostic, Diagnostics, Outcome, Path, Result, is_set},
    provider::{
        ProviderClient, StepContext,
        client::limits,
        errors::Failure,
        words::{capitalized, with_article},
    },
};

/// The time for the last calls of a create whose wait has used up its timeout.
const LAST_CALLS: Duration = Duration::from_secs(5);

pub(super) async fn create<M: Managed>(change: Create<M>, context: &StepContext) -> Result<Outcome<M>> {
    let Create { config, planned, mut private } = change;
    let (client, limits) = (context.client.as_ref(), limits(context));
    let mut choices = M::choices(&config, &planned, &private, client);
    M::forget_plan(&mut private, client);
    let requests = requests(&mut choices, client, &limits).await?;
    let candidates: Vec<String> = requests.iter().filter_map(api::Creation::candidate).collect();
    let mut requests = requests.into_iter();
    let Some(first) = requests.next() else {
        return Err(Diagnostic::error("No candidates", "The list of candidates is empty.").into());
    };
    let guard = Guard::new(choices, &planned, &context.client);
    let options = CreateOptions {
        wait_for_capacity: planned.wait_for_capacity(),
        while_busy: M::KIND.while_busy,
        unique_names: client.unique_names,
        caller_gone: context.caller_gone.clone(),
    };
    let requests = Choices::new(first, requests.collect());
    let (guard, accepted) = creation::create(&client.api, requests, guard, &client.journal, options, &limits).await;
    let Guard { mut choices, confirmed, withheld, marker, mut diagnostics, .. } = guard;
    let made = accepted.as_ref().ok().map(Accepted::id);
    let ended = CreateEnd {
        marker: marker.as_deref().filter(|_| !matches!(accepted, Err(Error::Unsettled(_)))),
        made: made.as_deref(),
    };
    M::create_ended(ended, client);
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            if !diagnostics.has_errors() {
                let refused = Refused { planned: &planned, error: &error, withheld, candidates };
                diagnostics.extend(refused.diagnostics(client, &limits, |name| is_set(&config, name)).await);
            }
            return Err(diagnostics);
        }
    };
    client.shows(M::Object::KIND, &accepted.id());
    let is_choice = accepted.choice < choices.len();
    let state = confirmed.or_else(|| is_choice.then(|| choices.swap_remove(accepted.choice).object));
    let limits = Context { deadline: accepted.deadline, ..limits };
    let mut creation = ManagedCreate {
        state: state.unwrap_or_else(|| planned.clone()),
        private,
        diagnostics,
        client,
        limits,
        caller_gone: context.caller_gone.clone(),
    };
    creation.follow(accepted).await;
    creation.state.keep_plan(&planned, &mut creation.private);
    creation.state.keep_spelling(planned.common().name);
    Ok(Outcome::present(creation.state, creation.private).with(creation.diagnostics))
}

/// The request of each choice.
async fn requests<M: Managed>(
    choices: &mut [Choice<M>],
    client: &ProviderClient,
    limits: &Context,
) -> Result<Vec<M::Request>, Diagnostic> {
    let mut requests = Vec::new();
    for choice in choices {
        requests.push(choice.object.request(client, limits).await?);
    }
    Ok(requests)
}

/// The guard before each request of a create: leftovers of earlier runs, then price and budgets. Also its results.
struct Guard<M> {
    client: Arc<ProviderClient>,
    planned: M,
    choices: Vec<Choice<M>>,
    /// The object to create, as it was last confirmed.
    confirmed: Option<M>,
    /// Why choices were not requested in the last round, by index.
    withheld: BTreeMap<usize, Diagnostic>,
    /// The marker of the confirmed requests.
    marker: Option<String>,
    diagnostics: Diagnostics,
}

impl<M: Managed> Guard<M> {
    fn new(choices: Vec<Choice<M>>, planned: &M, client: &Arc<ProviderClient>) -> Self {
        Self {
            client: Arc::clone(client),
            planned: planned.clone(),
            choices,
            confirmed: None,
            withheld: BTreeMap::new(),
            marker: None,
            diagnostics: Diagnostics::new(),
        }
    }
}

impl<M: Managed> creation::Guard for Guard<M> {
    fn judge(&mut self, found: Result<Vec<Leftover>, Error>) -> Permission {
        self.diagnostics.extend(leftovers::judge(found, &self.planned, &self.client));
        if self.diagnostics.has_errors() { Permission::Refuse } else { Permission::Send }
    }

    async fn permit(&mut self, attempt: Attempt) -> Permission {
        let Some(choice) = self.choices.get(attempt.choice) else { return Permission::Refuse };
        let confirmed = match &choice.ruled_out {
            Some(reason) => Err(Diagnostic::error("The plan ruled it out", reason.clone())),
            None => choice.object.confirm(&attempt, &self.client, &attempt.context).await,
        };
        match confirmed {
            Ok(confirmed) => {
                self.withheld.remove(&attempt.choice);
                self.confirmed = Some(confirmed);
                self.marker = Some(attempt.marker);
                Permission::Send
            }
            Err(diagnostic) => {
                self.withheld.insert(attempt.choice, diagnostic);
                Permission::Refuse
            }
        }
    }
}

impl<M: Managed> ManagedCreate<'_, M> {
    async fn follow(&mut self, accepted: Accepted<M::Object>) {
        tracing::info!(kind = M::Object::KIND.as_str(), id = accepted.id(), "accepted");
        self.state.take_record(&accepted.made);
        if let Some(name) = accepted.rename_to.clone().or_else(|| accepted.made.name().map(str::to_owned)) {
            *self.state.name_mut() = Attr::Known(name);
        }
        absence::made(&mut self.private, self.client, &self.limits).await;
        if accepted.origin == Origin::Adopted {
            self.diagnostics.push(adopted(&self.state));
        }
        self.wait(&accepted).await;
        self.rename(&accepted).await;
        M::look_after_create(self, &accepted).await;
        if let Some(name) = accepted.rename_to.clone() {
            *self.state.name_mut() = Attr::Known(name);
        }
        self.finish(accepted.entry).await;
    }

    /// Waits until the object is ready.
    async fn wait(&mut self, accepted: &Accepted<M::Object>) {
        let objects = self.client.api.objects::<M::Object>();
        let creation_ended = |seen: &Sighting<M::Object>| seen.record().is_some_and(M::creation_ended);
        match objects.wait(&api::Record::key(&accepted.made), &self.limits, creation_ended).await {
            Ok(seen) => {
                let Some(record) = seen.record() else { return };
                self.state.take_record(record);
                self.diagnostics.extend(self.state.unfit(record, accepted).map(Into::into).unwrap_or_default());
            }
            Err(error) => self.diagnostics.push(wait_ended(&error, &self.state, accepted)),
        }
    }

    /// Gives the object its configured name instead of the one with the marker, which means an unfinished create. As
    /// late as possible: until then the name identifies the object if the run is killed and the record is lost.
    async fn rename(&mut self, accepted: &Accepted<M::Object>) {
        let Some(name) = accepted.rename_to.as_deref().filter(|_| !self.caller_gone.is_cancelled()) else { return };
        if let Some(error) = &accepted.not_noted {
            self.diagnostics.push(not_noted(&self.state, &accepted.sent_name, error));
            return;
        }
        let limits = if self.limits.cancel.is_cancelled() {
            Context::within(LAST_CALLS, &CancellationToken::new())
        } else {
            self.last_calls()
        };
        let objects = self.client.api.objects::<M::Object>();
        if let Err(error) = objects.rename(&api::Record::key(&accepted.made), name, &limits).await {
            self.diagnostics.push(not_renamed(&error, &self.state, &accepted.sent_name));
        }
    }

    /// The limits of a last call, with some time even if the wait has used up the timeout.
    pub(in crate::provider) fn last_calls(&self) -> Context {
        Context { deadline: self.limits.deadline.max(Instant::now() + LAST_CALLS), ..self.limits.clone() }
    }

    /// Finishes the record of the create: Terraform gets the object now. If the answer will not reach Terraform, the
    /// record stays, and the next run's same create adopts the object.
    async fn finish(&mut self, entry: Entry) {
        if self.caller_gone.is_cancelled() || self.client.journal.core_has_ended() {
            tracing::warn!("the answer cannot reach Terraform: the next apply adopts the {}", noun::<M>());
            return;
        }
        let finished = tokio::task::spawn_blocking(move || entry.finish()).await;
        if let Err(error) = finished.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())) {
            let title = self.state.title();
            self.diagnostics.push(Diagnostic::warning(
                format!("The pending record of {title} was not closed"),
                format!(
                    "{error}. When the state contains {title}, remove the file: otherwise a later create of an equal \
                     {} adopts it.",
                    noun::<M>()
                ),
            ));
        }
    }
}

/// The warning that an earlier run's object was adopted.
fn adopted<M: Managed>(state: &M) -> Diagnostic {
    Diagnostic::warning(
        format!("Adopted {}", state.title()),
        format!(
            "An earlier run created this {} and ended before Terraform stored it. The object was found by its pending \
             record or its name, and nothing was created again.",
            noun::<M>()
        ),
    )
}

/// The diagnostic for a wait that ended before the object was ready: an error after a timeout, which taints the object;
/// otherwise a warning.
fn wait_ended<M: Managed>(error: &Error, state: &M, accepted: &Accepted<M::Object>) -> Diagnostic {
    let (noun, title, ids) = (noun::<M>(), state.title(), &accepted.ids);
    if is_stop(error) {
        return Diagnostic::warning(
            format!("Stopped waiting for {title}"),
            format!(
                "The run was stopped. The {noun} exists, is billed, and is in the state. The next plan shows its \
                 status."
            ),
        );
    }
    match error {
        Error::WaitEnded(ended) => Diagnostic::error(
            format!("{} is not ready in time", capitalized(&title)),
            format!(
                "timeouts.create was exceeded: {ended}. The {noun} exists, is billed, and is tainted in the state: \
                 the next apply would replace it. To keep it: terraform untaint <address>, then apply again. To wait \
                 longer set timeouts {{ create = \"…\" }}{ids}."
            ),
        ),
        error => {
            let now = format!("The {noun} exists, is billed, and is in the state. The next plan shows its status.");
            Failure { error, tried: format!("wait for {title}"), now }.warning()
        }
    }
}

/// Whether the operator stopped the run.
fn is_stop(error: &Error) -> bool {
    match error {
        Error::WaitEnded(ended) => ended.cancelled,
        Error::Cancelled { .. } => true,
        _ => false,
    }
}

/// The warning that an object still has the name with the marker.
fn not_renamed<M: Managed>(error: &Error, state: &M, sent_name: &str) -> Diagnostic {
    let now = format!("The {} exists under the name {sent_name:?}. The next plan repairs the name.", noun::<M>());
    Failure { error, tried: format!("rename {}", state.title()), now }.warning()
}

/// The warning that the acceptance could not be recorded, so that the marker must stay in the name.
fn not_noted<M: Managed>(state: &M, sent_name: &str, error: &Error) -> Diagnostic {
    Diagnostic::warning(
        format!("{} keeps the name {sent_name:?}", capitalized(&state.title())),
        format!(
            "The pending record could not be written ({error}). Until the state is saved, the object (id {}) can be \
             found only by its name. Free space in the pending directory, then apply again: the next plan repairs the \
             name.",
            state.id().unwrap_or_default()
        ),
    )
}

/// A create that was not accepted.
pub(super) struct Refused<'a, M> {
    pub(super) planned: &'a M,
    pub(super) error: &'a Error,
    /// Why choices were not requested, by index.
    pub(super) withheld: BTreeMap<usize, Diagnostic>,
    /// The names of the choices, if there are several.
    pub(super) candidates: Vec<String>,
}

impl<M: Managed> Refused<'_, M> {
    /// The diagnostics, at the blamed attribute.
    pub(super) async fn diagnostics(
        mut self,
        client: &ProviderClient,
        limits: &Context,
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

    fn of_one(&self, client: &ProviderClient, more: Option<String>, is_set: impl Fn(&str) -> bool) -> Diagnostic {
        let (noun, error) = (noun::<M>(), self.error);
        let mut now = match error {
            Error::Unsettled(unsettled) => format!(
                "Whether {} was created is unknown. If it was, its name is {:?}, and its pending record is in \
                 {}. The next apply looks for it first.",
                with_article(noun),
                unsettled.marker,
                client.journal.directory().display()
            ),
            Error::SeveralMatches { .. } => format!("More than one {noun} was created."),
            _ => format!("This {noun} was not created."),
        };
        if let Some(more) = more {
            now = format!("{now} {more}");
        }
        Failure { error, tried: format!("create {}", self.planned.title()), now }.diagnostic(is_set)
    }

    /// The error with the reason for each candidate.
    async fn of_each(&self, refusals: &[Refusal], client: &ProviderClient, limits: &Context) -> Diagnostic {
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
                (None, None) => refusal.map_or_else(|| "Refused before.".to_owned(), ToString::to_string),
            };
            if let (Some(error), None) = (refusal, &more) {
                more = self.planned.explain_refusal(error, client, limits).await;
            }
            lines.push(format!("- {candidate}: {reason}"));
        }
        let more = more.map(|more| format!("\n\n{more}")).unwrap_or_default();
        let summary = format!("No candidate of {} could be created", self.planned.title());
        let detail = format!("This {} was not created.{more}\n\n{}", noun::<M>(), lines.join("\n"));
        Diagnostic::error(capitalized(&summary), detail).at(Path::to("candidates"))
    }
}
