//! The text that is sent: assignments of `DAMODEL_` variables, and the program.

use secrecy::SecretString;

use super::{
    facts::{self, Question},
    job::{Job, ServerPlace},
    kinds::JobFailure,
    shell::{ProgramSettings, quoted},
    start::{self, Start},
};

/// The program, part by part in the order in which it is read.
pub(super) const SCRIPT: &str = concat!(
    include_str!("script/records.sh"),
    "\n",
    include_str!("script/processes.sh"),
    "\n",
    include_str!("script/look.sh"),
    "\n",
    include_str!("script/compile.sh"),
    "\n",
    include_str!("script/download.sh"),
    "\n",
    include_str!("script/serve.sh"),
    "\n",
    include_str!("script/verbs.sh"),
);

/// The functions that answer questions.
pub(super) const QUESTIONS: &str = concat!(include_str!("script/driver.sh"), "\n", include_str!("script/questions.sh"));

/// The functions of `QUESTIONS` that find the driver's programs.
pub const DRIVER: &str = include_str!("script/driver.sh");

/// A verb of the program. Its answer is a [`super::JobReport`] about the state after it.
#[derive(Debug, Clone, Copy)]
pub enum Verb<'a> {
    /// Looks, and asks these questions. Changes nothing.
    Check {
        /// The questions; the answers are [`super::JobReport::facts`].
        questions: &'a [Question],
        /// The job for which servers are tried, if they are.
        job: Option<&'a Job>,
    },
    /// Stops as [`Verb::Stop`] does, and removes the records and the logs; builds, sources and packages stay.
    Destroy {
        /// [`Start::owner`].
        owner: &'a str,
    },
    /// Begins a run of the job. The answer comes at once, and the work continues detached. A server that has served
    /// before serves until its successor is about to start. Until [`Verb::Ready`], [`Verb::RollBack`] starts it again.
    /// [`super::FailureKind::Changed`] if the current run is not the one that was seen.
    Ensure(&'a Start<'a>),
    /// Records that this process generates no tokens, as the caller saw, and does not end it. Without effect if the
    /// server is another process by now.
    Failed {
        /// [`super::Process::identity`] of the process that was asked.
        process: &'a str,
        /// What was seen.
        failure: &'a JobFailure,
    },
    /// Reports the current state. Changes nothing.
    Look,
    /// The same, of the server that an update is to replace, as long as it was not ended. No sender follows the update.
    Refresh,
    /// From now on only this resource ends the server. Refused as [`Verb::Ensure`] is.
    Own {
        /// [`super::JobReport::run`].
        seen: &'a str,
        /// [`Start::owner`].
        owner: &'a str,
        /// Its restart policy and its probe are recorded.
        job: &'a Job,
    },
    /// Records that this process generates tokens, which completes the run: [`Verb::RollBack`] has no effect any more.
    /// Without effect if the process has ended.
    Ready {
        /// [`super::Process::identity`].
        process: &'a str,
    },
    /// Ends this process and starts the server again as it was, with the options and the environment that its work
    /// holds. Without effect if another process serves by now, so that a restart whose answer was lost is not repeated.
    /// After a reboot the answer is [`super::FailureKind::NotRunning`], and an apply starts the server.
    Restart {
        /// [`super::Process::identity`]; empty if there was none.
        process: &'a str,
    },
    /// Ends what an update has begun. The server that served before goes on, or is started again with the options,
    /// the environment and the key that it had. Without effect if there is none.
    RollBack,
    /// Ends the work and the server: TERM, 10 s, TERM, 2 s, KILL, and waits until the process is gone. Logs stay. A
    /// server that another resource owns is [`super::FailureKind::Foreign`], and goes on.
    Stop {
        /// [`Start::owner`].
        owner: &'a str,
    },
}

/// The text for the standard input of `sh -s`. It contains the job's secrets. If it is cut off, it has no effect.
pub fn program(place: &ServerPlace, verb: &Verb<'_>) -> SecretString {
    let mut settings = ProgramSettings::default();
    settings.set_path("WORKSPACE", &place.workspace);
    settings.set("PORT", &place.port.to_string());
    settings.set("INSTANCE", &place.instance.replace('/', "_"));
    settings.hand("FUNCTIONS", QUESTIONS);
    settings.set("PROGRAM", SCRIPT.trim_end());
    let mut questions = vec![facts::listeners(place.port)];
    let words = match *verb {
        Verb::Check { questions: further, job } => {
            questions.extend_from_slice(further);
            if let Some(job) = job {
                start::try_servers(job, &mut settings);
            }
            vec![":"]
        }
        Verb::Destroy { owner } => vec!["destroy", owner],
        Verb::Ensure(start) => {
            start::begin(start, &mut settings);
            vec!["ensure"]
        }
        Verb::Failed { process, failure } => vec!["judge", process, "failed", failure.kind.as_str(), &failure.text],
        Verb::Look => vec![":"],
        Verb::Refresh => {
            settings.set("REFRESHES", "yes");
            vec![":"]
        }
        Verb::Own { seen, owner, job } => vec!["own", seen, owner, start::policy(job.restarts), &job.probe_endpoint],
        Verb::Ready { process } => vec!["judge", process, "ready"],
        Verb::Restart { process } => vec!["restart", process],
        Verb::RollBack => vec!["rollback"],
        Verb::Stop { owner } => vec!["stop", owner],
    };
    settings.set("QUESTIONS", &questions.iter().map(Question::statement).collect::<String>());
    let (settings, words) = (settings.end(), quoted(&words));
    format!("{UNSET}{settings}set --{words}\neval \"$DAMODEL_PROGRAM\"\n").into()
}

/// Variables of the login that would be taken for settings, or that change every server.
const UNSET: &str = "for damodel_name in $(env | sed -n 's/^\\(DAMODEL_[A-Za-z0-9_]*\\)=.*/\\1/p; \
                     s/^\\(LLAMA_ARG_[A-Za-z0-9_]*\\)=.*/\\1/p') LLAMA_API_KEY AIP_MODE; do unset \"$damodel_name\"; \
                     done\n";

/// Whether a text can be passed to the instance: shells and processes accept no NUL.
pub fn is_passable(text: &str) -> bool {
    !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use secrecy::ExposeSecret;

    use super::{
        super::{Binary, LoginLifetime, Prebuilt, shell::quote, wire::assignments},
        *,
    };

    proptest! {
        /// As the reader of the instance's records takes it, which the shell writes in the same form.
        #[test]
        fn quoted_text_is_one_word(text in "\\PC*[\n'\"\\\\$`! ]*\\PC*") {
            prop_assume!(is_passable(&text));
            let record = format!("name={}\n# end\n", quote(&text));
            prop_assert_eq!(assignments(&record), Some(vec![("name".to_owned(), text)]));
        }
    }

    #[test]
    fn nul_passes_nowhere() {
        assert!(!is_passable("a\0b"));
        assert_eq!(quote("a\0b"), "'ab'");
    }

    #[test]
    fn secrets_of_a_job_are_sent_and_not_shown() {
        let mut job = Job { api_key: Some("planted-1".into()), ..Job::sample() };
        job.environment.insert("NAME".to_owned(), "planted-2".into());
        job.environment.insert("no name".to_owned(), "planted-3".into());
        let path = "/llama-server".to_owned();
        let start = Start {
            job: &job,
            binary: &Binary::Prebuilt(Prebuilt { path, provided: None, hardware: String::new() }),
            login: &LoginLifetime::default(),
            note: None,
            because: None,
            owner: "owner",
            rolls_back: true,
            ends_rival: None,
            seen: "",
        };
        let sent = program(&job.place, &Verb::Ensure(&start));
        for (secret, is_sent) in [("planted-1", true), ("planted-2", true), ("planted-3", false)] {
            assert_eq!(sent.expose_secret().contains(secret), is_sent, "{secret}");
        }
        for shown in [format!("{sent:?}"), format!("{job:?}"), format!("{:?}", Verb::Ensure(&start))] {
            assert!(!shown.contains("planted"), "{shown}");
        }
        // Verbs without a job send none.
        for verb in [Verb::Look, Verb::RollBack, Verb::Stop { owner: "" }, Verb::Restart { process: "1.2.3" }] {
            assert!(!program(&job.place, &verb).expose_secret().contains("DAMODEL_MODEL="), "{verb:?}");
        }
    }
}
