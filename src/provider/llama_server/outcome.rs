//! The outcome of an operation: from the end of the work to the state that is kept, and the diagnostics.

use super::{
    failure,
    model::{LlamaServer, Process, Records as _},
};
use crate::{
    framework::{Attr, Diagnostic, Diagnostics, Outcome, Private, value::Number},
    llama::{self, End, Ended, FailureKind, InstanceSession, Job, Phase, Previous, Return, Verb},
    provider::words::capitalized,
};

/// An operation whose work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Restart,
}

/// The state that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// None, or the one that an action cannot change.
    Nothing,
    /// That from before the operation.
    Prior,
    /// The planned one.
    Planned,
}

pub(super) const AS_BEFORE: &str = "This resource was not changed. The apply did not stop the server.";
pub(super) const NOTHING_STARTED: &str = "The server was not started and is not in the state.";
pub(super) const NOTHING_RESTARTED: &str = "Nothing was restarted. The action did not stop the server.";
pub(super) const NOT_HEARD: &str = "Whether the instance received the change is unknown. The state keeps the previous \
                                    values; the next apply sends the change again, or resumes it.";

/// What follows from an end of the work.
pub(super) trait Concluded {
    /// The table: what is kept after this end of an operation, and the sentence that says so.
    fn kept(&self, operation: Operation) -> (Keep, &'static str);
    /// The diagnostics of this end. `now` is the sentence of [`Self::kept`].
    fn diagnostics(&self, server: &LlamaServer, now: &str) -> Diagnostics;
}

impl Concluded for Ended {
    fn kept(&self, operation: Operation) -> (Keep, &'static str) {
        use {End::*, Keep::*, Operation::*};
        let has_previous = self.report.previous.is_some();
        let has_ended = self.report.process.as_ref().is_some_and(|process| !process.is_alive);
        // Options are refused before any server is started.
        let kind = self.report.failure.as_ref().map(|failure| failure.kind);
        let is_option = kind == Some(FailureKind::BadOption);
        let is_download = kind.is_some_and(FailureKind::is_of_a_download);
        match (&self.end, operation) {
            (Served(_), Restart) => (Nothing, ""),
            (Served(_), Create | Update) => (Planned, ""),
            (Refused, Create) => (Nothing, NOTHING_STARTED),
            (Failed, Create) if is_option || is_download => (Nothing, NOTHING_STARTED),
            (Refused, Update) if has_ended => (Prior, "The previous server is not running. The next apply starts it."),
            (Refused, Update) => (Prior, AS_BEFORE),
            (Refused, Restart) => (Nothing, NOTHING_RESTARTED),
            (Failed, Create) => {
                (Planned, "The server is in the state and tainted. The next apply stops it and tries again.")
            }
            (Failed, Update) if is_download => (Prior, "The state keeps the previous arguments, and no server runs."),
            (Failed, Update) => (Planned, "The state records the server as failed. The next apply starts it again."),
            (Failed, Restart) => (Nothing, "An apply of damodel_llama_server repairs the server."),
            (RolledBack(_) | Superseded, Create) => (Nothing, "The server is not in the state."),
            (Unproved(_), Create) => (Nothing, "This resource does not own the server."),
            (RolledBack(Return::Fails(_)), Update) => {
                (Prior, "The state keeps the previous arguments. The next apply repairs the server.")
            }
            (RolledBack(_), Update) => {
                (Prior, "The state keeps the previous arguments. Correct the change and apply again.")
            }
            (Superseded, Update) => (Prior, "The state keeps the previous arguments."),
            (Unproved(_), Update) => (Prior, "The state keeps the previous arguments. Correct probe and apply again."),
            (RolledBack(_) | Superseded | Unproved(_), Restart) => {
                (Nothing, "An apply of damodel_llama_server checks and repairs the server.")
            }
            (Unseen(_), Create) => (
                Nothing,
                "The server is not in the state. The work continues in the instance: the next apply resumes it.",
            ),
            (Unseen(_), Update) if !self.is_begun => (Prior, NOT_HEARD),
            // Until the new server is proved, the state holds the arguments of the one to which there is a way back.
            (Unseen(_), Update) => (
                // And a source that turns out to be wrong can be corrected.
                if has_previous || (self.report.downloads.is_some() && self.report.phase <= Phase::Download) {
                    Prior
                } else {
                    Planned
                },
                "The work continues in the instance: the next apply resumes it.",
            ),
            (Unseen(_), Restart) if !self.is_begun => (Nothing, NOTHING_RESTARTED),
            (Unseen(_), Restart) => (
                Nothing,
                "The restart continues in the instance. The next plan of damodel_llama_server shows the result, and an \
                 apply repairs the server.",
            ),
        }
    }

    fn diagnostics(&self, server: &LlamaServer, now: &str) -> Diagnostics {
        match &self.end {
            End::Served(_) => failure::notes(server, &self.report).into_iter().collect(),
            End::Refused => failure::refused(server, &self.report, now).into(),
            End::Failed => failure::failed(server, &self.report, now).into(),
            End::RolledBack(returned) => failure::rolled_back(server, &self.report, &self.now, returned, now).into(),
            End::Superseded => failure::superseded(server, &self.report, now).into(),
            End::Unproved(failure) => failure::unproved(server, failure, &self.now, now).into(),
            End::Unseen(trouble) => {
                failure::unseen(server, trouble, Some(&self.report).filter(|_| self.is_begun), now).into()
            }
        }
    }
}

/// A create or an update whose work ended.
pub(super) struct Conclusion<'a> {
    pub(super) operation: Operation,
    /// The state from before an update.
    pub(super) prior: Option<LlamaServer>,
    pub(super) planned: LlamaServer,
    pub(super) private: Private,
    pub(super) instance: &'a mut InstanceSession,
    pub(super) job: &'a Job,
    pub(super) owner: &'a str,
}

impl Conclusion<'_> {
    /// The state and the diagnostics.
    pub(super) async fn outcome(mut self, ended: &Ended) -> Outcome<LlamaServer> {
        let (keep, now) = ended.kept(self.operation);
        let (mut now, mut warnings) = (now.to_owned(), Diagnostics::new());
        match (keep, &mut self.prior) {
            (Keep::Planned, prior) => {
                self.private.note_job(self.job);
                self.planned.take_end(ended);
                self.planned.set_owner(Some(self.owner.to_owned()));
                // A refresh cannot see whether the probe was answered: the previous one stays, for an apply to ask it.
                if let (End::Unseen(_), Some(prior)) = (&ended.end, prior) {
                    self.planned.probe = prior.probe.clone();
                }
                if matches!(ended.end, End::Failed) {
                    let runs = ended.now.process.as_ref().is_some_and(|process| process.is_alive);
                    (now, warnings) = self.leave_or_stop(runs, &now).await;
                }
            }
            (Keep::Prior, Some(prior)) => prior.take_end(ended),
            (Keep::Nothing | Keep::Prior, _) => {}
        }
        let diagnostics = ended.diagnostics(&self.planned, &now);
        let state = match keep {
            Keep::Planned => Some(self.planned),
            Keep::Prior => self.prior,
            Keep::Nothing => None,
        };
        let outcome = state.map_or_else(Outcome::absent, |state| Outcome::present(state, self.private));
        outcome.with(diagnostics).with(warnings)
    }

    /// Leaves a server that failed, or stops it if the configuration says so: what is said about it.
    async fn leave_or_stop(&mut self, runs: bool, next: &str) -> (String, Diagnostics) {
        if self.planned.on_failure.as_str() != Some("stop") {
            return (failure::left_alone(self.job, runs, next), Diagnostics::new());
        }
        let why = match self.instance.run(&Verb::Stop { owner: self.owner }).await {
            Ok(stopped) if !stopped.is_refused => {
                self.planned.take_report(&stopped);
                let how = if runs { "on_failure = \"stop\" has stopped the server" } else { "The server has exited" };
                return (format!("{how}; its logs remain. {next}"), Diagnostics::new());
            }
            Ok(refused) => refused.failure.map(|failure| failure.text).unwrap_or_default(),
            Err(trouble) => trouble.to_string(),
        };
        let warning = Diagnostic::warning(
            "on_failure = \"stop\" did not stop the server",
            format!("{}. The server still runs; the next apply stops it.", capitalized(&why)),
        );
        (next.to_owned(), warning.into())
    }
}

impl LlamaServer {
    /// Takes over the end of an operation.
    fn take_end(&mut self, ended: &Ended) {
        match &ended.end {
            End::Refused => {
                if ended.report.process.as_ref().is_some_and(|process| !process.is_alive) {
                    self.take_stop();
                }
                return;
            }
            // The previous server serves, as the state has it.
            End::Unseen(_) if ended.is_begun && ended.report.previous == Some(Previous::Serving) => return,
            End::Unseen(_) if !ended.is_begun => {
                self.status = llama::STARTING.into();
                return;
            }
            // A refresh may have seen the successor's options.
            End::RolledBack(_) if self.status.as_str() == Some(llama::STARTING) => {
                self.take_options(&ended.now);
                self.take_report(&ended.now);
            }
            End::Served(answers) => {
                if self.model_name.is_unknown() {
                    self.model_name = answers.model_name.clone().into();
                }
                // The plan of a mere probe names the rest, and the next refresh sees what has changed since.
                if self.process.is_unknown() {
                    self.take_report(&ended.now);
                }
                let tokens_per_second = answers.speed.clone().map(Number::from).into();
                self.process = Attr::Known(Process { tokens_per_second, ..self.process() });
            }
            _ => self.take_report(&ended.now),
        }
        self.status = match &ended.end {
            End::Served(_) | End::RolledBack(Return::AsksForKey | Return::GoesOn | Return::Serves) => llama::READY,
            End::Failed | End::RolledBack(Return::Fails(_)) => llama::FAILED,
            End::Superseded => llama::status_of(&ended.now),
            End::Unseen(_) => llama::STARTING,
            End::Unproved(_) | End::Refused => return,
        }
        .into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llama::{JobFailure, JobReport, Process, TrialAnswers};

    fn ended(end: End, is_begun: bool, previous: Option<Previous>, is_alive: Option<bool>, kind: FailureKind) -> Ended {
        let process = is_alive.map(|is_alive| Process {
            pid: 1,
            identity: "1".to_owned(),
            started: 0,
            is_alive,
            model: "/m".to_owned(),
            command_line: Vec::new(),
        });
        let failure = Some(JobFailure { kind, text: String::new() });
        let report = JobReport { previous, process, failure, ..JobReport::default() };
        Ended { end, is_begun, now: report.clone(), report }
    }

    fn unseen() -> End {
        End::Unseen(crate::ssh::Error::TimedOut { doing: String::new(), last: None }.into())
    }

    /// Each end of each operation: what is kept, and words of the sentence.
    #[test]
    fn what_is_kept_follows_from_the_end() {
        use FailureKind::{BadOption, Exited};
        use Keep::{Nothing, Planned, Prior};
        use Operation::{Create, Restart, Update};
        let failure = || JobFailure { kind: FailureKind::NoInference, text: String::new() };
        let previous = Some(Previous::Ended);
        for (end, kind, is_begun, previous, is_alive, expected) in [
            (
                End::Served(TrialAnswers::default()),
                Exited,
                true,
                None,
                Some(true),
                [(Planned, ""), (Planned, ""), (Nothing, "")],
            ),
            (
                End::Refused,
                Exited,
                false,
                None,
                None,
                [(Nothing, "was not started"), (Prior, "was not changed"), (Nothing, "Nothing was restarted")],
            ),
            (
                End::Refused,
                Exited,
                false,
                None,
                Some(false),
                [(Nothing, "was not started"), (Prior, "is not running"), (Nothing, "Nothing was restarted")],
            ),
            (
                End::Failed,
                Exited,
                true,
                None,
                Some(false),
                [(Planned, "tainted"), (Planned, "as failed"), (Nothing, "repairs the server")],
            ),
            (
                End::Failed,
                BadOption,
                true,
                None,
                None,
                [(Nothing, "was not started"), (Planned, "as failed"), (Nothing, "repairs the server")],
            ),
            (
                End::RolledBack(Return::GoesOn),
                Exited,
                true,
                previous,
                Some(true),
                [(Nothing, "not in the state"), (Prior, "Correct the change"), (Nothing, "repairs the server")],
            ),
            (
                End::RolledBack(Return::Fails(String::new())),
                Exited,
                true,
                previous,
                None,
                [(Nothing, "not in the state"), (Prior, "The next apply repairs"), (Nothing, "repairs the server")],
            ),
            (
                End::Superseded,
                Exited,
                true,
                None,
                Some(true),
                [(Nothing, "not in the state"), (Prior, "keeps the previous"), (Nothing, "repairs the server")],
            ),
            (
                End::Unproved(failure()),
                Exited,
                true,
                None,
                Some(true),
                [(Nothing, "does not own the server"), (Prior, "keeps the previous"), (Nothing, "repairs the server")],
            ),
            (
                unseen(),
                Exited,
                false,
                None,
                None,
                [(Nothing, "the next apply resumes"), (Prior, "is unknown"), (Nothing, "Nothing was restarted")],
            ),
            (
                unseen(),
                Exited,
                true,
                previous,
                None,
                [(Nothing, "the next apply resumes"), (Prior, "resumes it"), (Nothing, "restart continues")],
            ),
            (
                unseen(),
                Exited,
                true,
                None,
                None,
                [(Nothing, "the next apply resumes"), (Planned, "resumes it"), (Nothing, "restart continues")],
            ),
        ] {
            let ended = ended(end, is_begun, previous, is_alive, kind);
            for (operation, (keep, words)) in [Create, Update, Restart].into_iter().zip(expected) {
                let (kept, now) = ended.kept(operation);
                assert!(kept == keep && now.contains(words), "{operation:?} {ended:?}: {kept:?} {now}");
            }
        }
    }
}
