//! From what the instance reports to the attributes.

use super::{
    argv::{as_text, take_path},
    bootstrap::{Kind, Phase, Report},
    model::LlamaServer,
    status,
};
use crate::{framework::Attr, provider::words::time};

impl LlamaServer {
    /// What follows from the arguments.
    pub(super) fn take_place(&mut self) {
        self.id = self.place().into();
        self.endpoint = self.port.known().map(|port| format!("http://127.0.0.1:{port}/v1")).into();
    }

    /// Takes over what a report shows, but for the options and for `status`. A server that is not there has no process.
    pub(super) fn take_report(&mut self, report: &Report) {
        let process = report.process.as_ref().filter(|process| process.is_alive);
        self.pid = process.map(|process| i64::from(process.pid)).into();
        self.started_at = process.and_then(|process| time(Some(process.started))).into();
        self.command_line = process.map(|process| as_text(&process.command_line)).into();
        self.build_used = report.build_used.clone().into();
        self.server_version = report.server_version.clone().into();
        self.log_path = report.log_path.clone().into();
        self.model_fingerprint = report.model_fingerprint.clone().into();
        self.restarts = Attr::Known(report.restarts);
        self.last_exit = report.last_exit.clone().into();
        if self.package.known().is_none() {
            self.package = report.package.clone().into();
        }
    }

    /// Takes over the options with which the server runs, as far as its command line tells them.
    pub(super) fn take_options(&mut self, report: &Report) {
        let home = self.home(report);
        if let Some(process) = report.process.as_ref().filter(|process| process.is_alive) {
            self.take_command_line(&process.command_line, home.as_deref());
        }
        if let Some(package) = &report.package {
            take_path(&mut self.package, package, None);
        }
    }

    /// The home directory there: what stands for `~` in the path of the log.
    fn home(&self, report: &Report) -> Option<String> {
        let in_home = self.workspace.as_str()?.strip_prefix('~')?.trim_end_matches('/');
        let (home, _) = report.log_path.as_deref()?.split_once(&format!("{in_home}/.damodel/"))?;
        Some(home.to_owned())
    }
}

/// The status of a server that a look found so; [`status::READY`] is what its health check has yet to confirm.
pub(super) fn status_of(report: &Report) -> &'static str {
    let is_alive = report.process.as_ref().is_some_and(|process| process.is_alive);
    let kind = report.failure.as_ref().map(|failure| failure.kind);
    if let Some(rival) = report.rival.as_ref().filter(|_| !is_alive && is_over(report)) {
        return if rival.command_line.is_empty() { status::BLOCKED } else { status::DISPLACED };
    }
    match report.phase {
        Phase::Absent => status::STOPPED,
        // Started again by itself: whether it serves shows when it is asked.
        Phase::Load if is_alive && report.is_proved => status::READY,
        Phase::Find | Phase::Compile | Phase::Start | Phase::Load => status::STARTING,
        Phase::Ready if !is_alive => status::STOPPED,
        Phase::Ready if report.model_now != report.model_fingerprint => status::OUTDATED,
        Phase::Ready => status::READY,
        Phase::Failed if !is_alive && matches!(kind, Some(Kind::Died | Kind::Interrupted)) => status::STOPPED,
        Phase::Failed => status::FAILED,
    }
}

/// Whether nothing is under way any more.
fn is_over(report: &Report) -> bool {
    matches!(report.phase, Phase::Absent | Phase::Ready | Phase::Failed)
}

impl LlamaServer {
    /// There is no process any more.
    pub(super) fn take_stop(&mut self) {
        self.status = status::STOPPED.into();
        self.pid = Attr::Null;
        self.started_at = Attr::Null;
        self.command_line = Attr::Null;
    }
}
