//! One login to the instance, which is repeated if the connection is lost, and the program that runs in the instance.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::bootstrap::{JobReport, Malformed, ServerPlace, Verb, no_room, program, room_question};
use crate::{
    api::Progress,
    ssh::{self, Pin, Session, Target},
};

/// How often an incomplete answer is requested.
const ATTEMPTS: usize = 3;
/// How often the report is requested again after the server has just ended.
const SETTLING: usize = 4;
/// The wait between two reports.
const BETWEEN: Duration = Duration::from_millis(500);

/// The silence after which a model server may hang. Tests wait less.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    /// The wait for an answer before a second request is sent.
    pub before_second: Duration,
    /// The silence of each of the two requests.
    pub of_each: Duration,
}

impl Default for Silence {
    fn default() -> Self {
        Self { before_second: Duration::from_secs(10), of_each: Duration::from_secs(30) }
    }
}

/// A login to an instance.
#[derive(Debug)]
pub struct InstanceSession {
    session: Session,
    target: Target,
    limits: ssh::SessionLimits,
    /// How long a login may take: the first, and each that follows.
    login: Duration,
    place: ServerPlace,
    secrets: Vec<SecretString>,
    /// The time limit of the operation.
    pub deadline: Instant,
    /// The end of the run.
    pub cancel: CancellationToken,
    /// Receives the progress of the work.
    pub progress: Progress,
    /// The silence after which the server may hang.
    pub silence: Silence,
}

/// Why a command in the instance failed.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The answer is no report.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// SSH failed.
    #[error(transparent)]
    Ssh(#[from] ssh::Error),
}

impl Trouble {
    /// Whether the operator ended it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Ssh(ssh::Error::Cancelled { .. }))
    }

    /// Whether the instance cannot be asked any more.
    pub fn is_out_of_reach(&self) -> bool {
        matches!(self, Self::Ssh(error) if !matches!(error, ssh::Error::Cancelled { .. }))
    }

    /// Whether the time ran out.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Ssh(ssh::Error::TimedOut { .. }))
    }
}

impl InstanceSession {
    /// Logs in, and waits at most `login` for an instance that is still starting.
    ///
    /// # Errors
    /// Those of a login.
    pub async fn open(
        mut target: Target,
        place: ServerPlace,
        mut secrets: Vec<SecretString>,
        limits: ssh::SessionLimits,
        (login, deadline): (Duration, Instant),
        cancel: &CancellationToken,
    ) -> Result<Self, ssh::Error> {
        let by = deadline.min(Instant::now() + login);
        let session = ssh::connect(&target, &limits, by, cancel).await?;
        // Later logins must show the same host key.
        target.pin = Some(Pin::from(session.host_key().clone()));
        if let (Some(bastion), Some(key)) = (&mut target.bastion, session.bastion_host_key()) {
            bastion.pin = Some(Pin::from(key.clone()));
        }
        secrets.extend(target.credentials.password.clone());
        Ok(Self {
            session,
            target,
            limits,
            login,
            place,
            secrets,
            deadline,
            cancel: cancel.clone(),
            progress: Progress::default(),
            silence: Silence::default(),
        })
    }

    /// The place of the server's records.
    pub fn place(&self) -> &ServerPlace {
        &self.place
    }

    /// The current session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The host key, as an OpenSSH public-key line.
    pub fn host_key(&self) -> String {
        self.session.host_key().to_string()
    }

    /// The bastion's; `None` without a bastion.
    pub fn bastion_host_key(&self) -> Option<String> {
        self.session.bastion_host_key().map(ToString::to_string)
    }

    /// Runs the program with one verb. All verbs may be repeated: after a lost connection it logs in again, until the
    /// deadline.
    ///
    /// # Errors
    /// The connection failed, or the answer stays incomplete.
    pub async fn run(&mut self, verb: &Verb<'_>) -> Result<JobReport, Trouble> {
        let mut report = self.answer(verb).await?;
        // The work records in a moment how the server ended.
        for _ in 0..SETTLING {
            if !report.is_transient || report.is_refused {
                break;
            }
            sleep(BETWEEN).await;
            let facts = report.facts;
            let again = if matches!(verb, Verb::Refresh) { Verb::Refresh } else { Verb::Look };
            report = JobReport { facts, ..self.answer(&again).await? };
        }
        if report.may_lack_room() {
            let questions = [room_question(&self.place)];
            let asked = self.answer(&Verb::Check { questions: &questions, job: None }).await?;
            report.failure = no_room(&self.place, &asked.facts).or(report.failure);
        }
        Ok(report)
    }

    async fn answer(&mut self, mut verb: &Verb<'_>) -> Result<JobReport, Trouble> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let input = program(&self.place, verb);
            let running = self.session.run("sh -s", input.expose_secret().as_bytes());
            match timeout_at(self.deadline, running).await {
                Err(_) => return Err(self.time_ran_out()),
                Ok(Ok(output)) => match JobReport::parse(&output.stdout, &self.secrets) {
                    Ok(report) => return Ok(report),
                    Err(error) if attempt >= ATTEMPTS => return Err(error.into()),
                    Err(error) => {
                        tracing::debug!(%error, attempt, "the answer is not a report");
                        sleep(BETWEEN).await;
                    }
                },
                // The command may have done its work: a look shows it. The login is still good.
                Ok(Err(ssh::Error::TimedOut { .. })) if !self.session.is_lost() && attempt < ATTEMPTS => {
                    tracing::debug!(attempt, "the command ran out of time");
                    verb = if matches!(verb, Verb::Refresh) { verb } else { &Verb::Look };
                }
                Ok(Err(error)) if error.is_out_of_reach() => {
                    tracing::debug!(%error, attempt, "the connection failed");
                    self.reconnect().await?;
                }
                Ok(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// Logs in again after a lost connection, for at most `ssh.timeout`: the instance may have been released.
    ///
    /// # Errors
    /// Those of a login; the deadline.
    pub async fn reconnect(&mut self) -> Result<(), ssh::Error> {
        let by = self.deadline.min(Instant::now() + self.login);
        self.session = ssh::connect(&self.target, &self.limits, by, &self.cancel).await?;
        Ok(())
    }

    /// Waits for a moment.
    ///
    /// # Errors
    /// The deadline has passed, or the run is being stopped.
    pub async fn pause(&self, duration: Duration) -> Result<(), Trouble> {
        tokio::select! {
            () = self.cancel.cancelled() => {
                Err(ssh::Error::Cancelled { doing: "the wait for the server".to_owned() }.into())
            }
            waited = timeout_at(self.deadline, sleep(duration)) => waited.map_err(|_| self.time_ran_out()),
        }
    }

    fn time_ran_out(&self) -> Trouble {
        ssh::Error::TimedOut { doing: "the work in the instance".to_owned(), last: None }.into()
    }
}
