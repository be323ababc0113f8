//! The answer of the program.

use std::fmt;

use indicatif::DecimalBytes;
use secrecy::{ExposeSecret, SecretString};

use super::{
    facts::{Facts, PREFIX, PortHolder},
    job::Build,
    kinds::{FailureKind, JobFailure, Malformed},
    messages,
    phase::{ObservedPhase, Phase, observed_phase},
    start::{self, JobRecord},
    wire::{self, ReportValues},
};

/// Shorter secrets of the environment are not redacted: they would match in half of the log.
const MIN_REDACTED: usize = 6;

/// How many lines of a log a report shows.
const LOG_LINES: usize = 60;

/// The longest line of a compile that is shown, in characters.
const MAX_LINE: usize = 300;

/// The state of a server in the instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobReport {
    /// The current run; empty without one.
    pub run: String,
    /// Its phase.
    pub phase: Phase,
    /// The reason of [`Phase::Failed`], or of a refused verb.
    pub failure: Option<JobFailure>,
    /// Whether the verb was refused and changed nothing.
    pub is_refused: bool,
    /// Whether the server has just ended, and the work is about to record how: a later look shows it.
    pub is_transient: bool,
    /// The fingerprint of the job that was last accepted ([`super::Fingerprint`], as it displays itself).
    pub fingerprint: Option<String>,
    /// [`super::Job::downloads_hash`] of that job.
    pub downloads: Option<String>,
    /// The file whose download, or whose sum, is the reason of [`Self::failure`].
    pub failed_file: Option<String>,
    /// The token of the resource that owns the server.
    pub owner: Option<String>,
    /// The kind of binary that the run began with.
    pub begun: Option<Build>,
    /// Why the job was not begun with the prebuilt server.
    pub because: Option<JobFailure>,
    /// The hardware at that time: [`super::Prebuilt::hardware`].
    pub hardware: Option<String>,
    /// Whether it is still the same; only after a check.
    pub is_same_hardware: bool,
    /// The answers to the questions of a check.
    pub facts: Facts,
    /// The server that an update replaces, as long as the update can return to it.
    pub previous: Option<Previous>,
    /// The server, even if it has ended; none before the first start.
    pub process: Option<Process>,
    /// The processor time that it has used, in hundredths of a second.
    pub processor_time: Option<u64>,
    /// Whether that server has served before.
    pub is_proved: bool,
    /// The process of the detached work, which supervises the server; `None` if it has ended.
    pub work: Option<u32>,
    /// Whether the restart policy asks for that process, and the login does not end it.
    pub is_to_supervise: bool,
    /// The `probe.endpoint` of its owner.
    pub endpoint: Option<String>,
    /// When the server is started again, in seconds since 1970 by the instance's clock; `None` unless the work pauses.
    pub next_try: Option<i64>,
    /// Whether the server asks its clients for a key.
    pub has_key: bool,
    /// The number of automatic restarts.
    pub restarts: i64,
    /// Its exit code before the last of these.
    pub last_exit: Option<String>,
    /// Another process that listens on the server's port.
    pub rival: Option<PortHolder>,
    /// "prebuilt" or "source": what runs, or ran last.
    pub build_used: Option<String>,
    /// In the form of the binary: "4748 (c392e5094)".
    pub server_version: Option<String>,
    /// The prebuilt server that was found or given.
    pub package: Option<String>,
    /// The compile that is under way, or was last.
    pub compile: Option<Compile>,
    /// The download that is under way.
    pub download: Option<Download>,
    /// Whether the sum of the model was proved when the server started; none before the first start.
    pub is_model_verified: Option<bool>,
    /// The model as it was when the server started: `size:mtime:hash of the first MiB`.
    pub model_fingerprint: Option<String>,
    /// The model now; none if the file is missing, or if it is not known.
    pub model_now: Option<String>,
    /// Whether the model's file, or one beside it, could not be asked for in time.
    pub is_model_unknown: bool,
    /// The files beside the model that have changed since the server started.
    pub files: AdditionalFiles,
    /// The home of the user that logs in.
    pub home: Option<String>,
    /// The server's log in the instance.
    pub log_path: Option<String>,
    /// The end of that log, at most 60 lines.
    pub log_tail: Vec<String>,
    /// Texts of warnings.
    pub notes: Vec<String>,
}

/// The downloaded files beside the model, compared with those of the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdditionalFiles {
    /// One has changed.
    Changed,
    /// One is missing.
    Missing,
    /// They are the same, or there are none.
    #[default]
    Same,
}

/// The server that an update replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Previous {
    /// It has been ended, and can be started again as it was.
    Ended,
    /// It still serves: [`JobReport::process`] is its process.
    Serving,
}

/// The server's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its identity, which is unique, also after a reboot. Verbs about a process take it.
    pub identity: String,
    /// When it was started, in seconds since 1970 by the instance's clock.
    pub started: i64,
    /// Whether it exists and is not a zombie.
    pub is_alive: bool,
    /// The file of its model.
    pub model: String,
    /// Its arguments; empty if it has ended. Secrets are redacted.
    pub command_line: Vec<String>,
}

/// A compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compile {
    /// 0 to 100, from the output of make or ninja; none before the first step.
    pub percent: Option<u8>,
    /// The last line of its log.
    pub line: String,
    /// Its log in the instance.
    pub log_path: String,
}

impl Compile {
    /// Takes the progress from the end of the log: `[ 41%]` of make, `[3/17]` of ninja.
    fn read(log_path: String, tail: &[String]) -> Self {
        let line = tail.iter().rev().find(|line| !line.trim().is_empty());
        Self {
            percent: tail.iter().rev().find_map(|line: &String| -> Option<u8> {
                let (counted, _) = line.strip_prefix('[')?.split_once(']')?;
                match counted.split_once('/') {
                    None => counted.strip_suffix('%')?.trim().parse().ok().filter(|percent| *percent <= 100),
                    Some((done, all)) => {
                        let (done, all): (u64, u64) = (done.parse().ok()?, all.parse().ok()?);
                        u8::try_from(done.checked_mul(100)?.checked_div(all)?).ok().filter(|percent| *percent <= 100)
                    }
                }
            }),
            line: line.map(|line| line.chars().take(MAX_LINE).collect()).unwrap_or_default(),
            log_path,
        }
    }
}

/// A download.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Download {
    /// The bytes that are there.
    pub bytes: u64,
    /// The bytes of all files that are downloaded. If all of them are there, the sum is computed.
    pub total: u64,
    /// The bytes that have arrived in a second, on average since the connection was made.
    pub rate: u64,
}

impl Download {
    fn of(values: &ReportValues) -> Result<Option<Self>, Malformed> {
        let number = |key: &str| values.number::<u64>(key);
        let (Some(size), Some(total)) = (number("download_bytes")?, number("download_total")?) else { return Ok(None) };
        let new = size.saturating_sub(number("download_from")?.unwrap_or_default());
        Ok(Some(Self {
            bytes: number("download_before")?.unwrap_or_default().saturating_add(size),
            total,
            rate: new / number("download_seconds")?.unwrap_or_default().max(1),
        }))
    }
}

/// Such as "3.20 GB of 5.00 GB, 101.00 MB/s".
impl fmt::Display for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bytes, total, rate] = [self.bytes, self.total, self.rate].map(DecimalBytes);
        if self.bytes == self.total { write!(f, "{total}: its sum") } else { write!(f, "{bytes} of {total}, {rate}/s") }
    }
}

impl JobReport {
    /// The hashes of its fingerprint: of the settings and of the secrets.
    pub fn hashes(&self) -> Option<(&str, &str)> {
        self.fingerprint.as_deref()?.split_once('-')
    }

    /// Reads the program's output, and skips other output of the login. These secrets are redacted.
    pub fn parse(stdout: &[u8], secrets: &[SecretString]) -> Result<Self, Malformed> {
        let text = String::from_utf8_lossy(stdout);
        let (values, is_whole) = wire::read(&text);
        if !is_whole {
            let last = text.lines().next_back().unwrap_or_default();
            return Err(Malformed::Incomplete { last: redacted(last, secrets) });
        }
        Self::of(&values, |text| redacted(text, secrets))
    }

    fn of(values: &ReportValues, redacted: impl Fn(&str) -> String) -> Result<Self, Malformed> {
        let text = |key: &str| values.text(key).map(&redacted);
        // The end of a log begins with the rest of a line. Progress is written over itself.
        let lines = |key: &str| -> Vec<String> {
            let (_, whole) = values.text(key).and_then(|ending| ending.split_once('\n')).unwrap_or_default();
            redacted(&whole.replace('\0', "").replace('\r', "\n")).lines().map(str::to_owned).collect()
        };
        let record = JobRecord::read(&text("job_record").unwrap_or_default());
        let is_alive = values.is_yes("server_alive");
        let previous = values.text("previous").map(|folder| match values.text("server_folder") {
            Some(serving) if is_alive && serving == folder => Previous::Serving,
            _ => Previous::Ended,
        });
        let is_previous = previous == Some(Previous::Serving);
        let is_proved = values.is_yes("status_proved");
        let process = Process::of(values, &redacted)?;
        let observed = observed_phase(values, is_alive && !is_previous)?;
        let ObservedPhase { phase, interrupted, is_transient } = observed;
        let failure = |kind_key: &str, text_key: &str| match values.text(kind_key) {
            None => Ok(None),
            Some(kind) => kind.parse().map(|kind| Some(JobFailure { kind, text: text(text_key).unwrap_or_default() })),
        };
        let refused = failure("refused", "refused_text")?;
        let is_refused = refused.is_some();
        let recorded = failure("status_kind", "status_text")?.filter(|_| phase == Phase::Failed);
        // The exit code says how the server ended.
        let has_ended = values.text("status_exit").is_some();
        let recorded = recorded.map(|failure| match failure.kind {
            // An earlier judgement says nothing about the end.
            kind if has_ended && is_proved && kind.is_of_a_server() => {
                JobFailure { kind: FailureKind::Died, ..failure }
            }
            _ => failure,
        });
        let unanswered = values.text("unanswered").unwrap_or_default().split_whitespace().map(str::to_owned);
        let served = record.package.clone().zip(record.hardware.clone()).filter(|_| is_proved);
        let (unanswered, lacks_room) = (unanswered.collect(), values.is_yes("lacks_room"));
        let facts = Facts { unanswered, lacks_room, served, ..Facts::of(values.beginning(PREFIX)) };
        let own = process.as_ref().filter(|process| process.is_alive).map(|process| process.pid);
        // If the server has ended meanwhile, the listener may be its successor.
        let is_seen = own.is_none() || values.is_yes("server_goes_on");
        let boot = values.text("boot").unwrap_or_default();
        let rival = PortHolder::beside(own, values.text("state").unwrap_or_default(), &facts, boot).filter(|_| is_seen);
        let (command_line, own) = (process.iter().flat_map(|process| &process.command_line), own.is_some());
        let command_line: Vec<&String> = command_line.collect();
        let binary = text("server_binary").unwrap_or_default();
        let lacks = |flag: &&String| own && !is_previous && !command_line.contains(flag);
        let log_path = text("status_compile_log");
        let work = values.text("worker_identity").filter(|_| values.is_yes("worker_alive"));
        let work = work.and_then(|identity| identity.split('.').next()?.parse().ok());
        let next_try = values.number("status_next")?.filter(|_| work.is_some() && !is_alive);
        let mut report = Self {
            run: values.text("folder").unwrap_or_default().to_owned(),
            phase,
            failure: None,
            is_refused,
            is_transient,
            owner: text("owner_token"),
            begun: record.begun(),
            because: record.because(),
            is_same_hardware: false,
            previous,
            is_proved,
            work,
            is_to_supervise: values.text("owner_policy") == Some(start::policy(true)) && !record.ends_at_logout,
            endpoint: text("owner_endpoint"),
            next_try,
            has_key: record.has_key,
            restarts: values.number("restarts_count")?.unwrap_or_default(),
            last_exit: text("restarts_last").map(|code| format!("{code}{}", messages::meaning(&code))),
            rival,
            build_used: text("server_build"),
            server_version: text("server_version"),
            compile: log_path.map(|log_path| Compile::read(log_path, &lines("compile_tail"))),
            download: Download::of(values)?.filter(|_| phase == Phase::Download),
            is_model_verified: process.as_ref().map(|_| values.is_yes("server_model_verified")),
            model_fingerprint: text("server_model_fingerprint"),
            model_now: text("model_now"),
            is_model_unknown: values.is_yes("model_unknown"),
            files: match (values.text("server_files"), values.text("files_now")) {
                (Some(_), None) => AdditionalFiles::Missing,
                (Some(_), now) if now != values.text("server_files_fingerprint") => AdditionalFiles::Changed,
                _ => AdditionalFiles::Same,
            },
            home: text("HOME"),
            log_path: text("server_log").filter(|_| values.has("log_tail")),
            log_tail: lines("log_tail").into_iter().rev().take(LOG_LINES).rev().collect(),
            notes: record
                .notes
                .iter()
                .cloned()
                .chain(record.flags.iter().filter(lacks).map(|flag| {
                    let version = text("server_version").unwrap_or_default();
                    format!("the server is too old for {flag}, and runs without it: {binary} ({version})")
                }))
                .chain(
                    text("status_no_gpu")
                        .filter(|_| record.wants_gpu)
                        .map(|line| format!("the server uses no GPU: {line}")),
                )
                .collect(),
            fingerprint: record.fingerprint.clone(),
            downloads: record.downloads.clone(),
            failed_file: text("status_file"),
            hardware: record.hardware.clone(),
            package: record.package.clone(),
            facts,
            process,
            processor_time: values.number("server_time")?,
        };
        let in_words = |failure| messages::failure(failure, &record, report.restarts, report.rival.as_ref(), text);
        report.failure = refused.or(recorded).map(in_words).or(interrupted);
        Ok(report)
    }
}

impl JobReport {
    /// Whether the model's file, or one beside it, is certainly another one than when the server started.
    pub fn has_other_model(&self) -> bool {
        !self.is_model_unknown && (self.model_now != self.model_fingerprint || self.files != AdditionalFiles::Same)
    }

    /// Whether the server runs, and the work that should supervise it has ended.
    pub fn lacks_supervisor(&self) -> bool {
        let is_alive = self.process.as_ref().is_some_and(|process| process.is_alive);
        is_alive && self.previous.is_none() && self.work.is_none() && self.is_to_supervise
    }

    /// The processes that run: the work, which would start the server again, and the server.
    pub fn runs(&self) -> impl Iterator<Item = u32> {
        let server = self.process.as_ref().filter(|process| process.is_alive).map(|process| process.pid);
        self.work.into_iter().chain(server)
    }

    /// Whether a full disk may be the cause of the failure.
    pub fn may_lack_room(&self) -> bool {
        use FailureKind::{Compile, Exited, Interrupted, NoPackage, NoSource, Workspace};
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        matches!(kind, Some(Compile | Exited | Interrupted | NoPackage | NoSource | Workspace))
    }
}

impl Process {
    fn of(values: &ReportValues, redacted: impl Fn(&str) -> String) -> Result<Option<Self>, Malformed> {
        let Some(identity) = values.text("server_identity") else { return Ok(None) };
        let unknown = || Malformed::Value { key: "server_identity".to_owned() };
        let words = values.text("command_line").unwrap_or_default().split_terminator('\0');
        Ok(Some(Self {
            pid: identity.split('.').next().and_then(|pid| pid.parse().ok()).ok_or_else(unknown)?,
            identity: identity.to_owned(),
            started: values.number("server_started")?.unwrap_or_default(),
            is_alive: values.is_yes("server_alive"),
            model: redacted(values.text("server_model").unwrap_or_default()),
            command_line: words.map(redacted).collect(),
        }))
    }
}

fn redacted(text: &str, secrets: &[SecretString]) -> String {
    let mut secrets: Vec<&str> =
        secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| secret.len() >= MIN_REDACTED).collect();
    // The longest first: one may be the beginning of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "(redacted)"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::*;

    fn parse(text: &str) -> Result<JobReport, Malformed> {
        JobReport::parse(text.as_bytes(), &[SecretString::from("planted")])
    }

    /// A report of these lines.
    fn report(lines: &str) -> Result<JobReport, Malformed> {
        let lines = ["begin"].into_iter().chain(lines.lines()).chain(["end"]);
        parse(&lines.map(|line| format!("damodel-report/1 {line}\n")).collect::<String>())
    }

    #[test]
    fn report_is_read_between_other_lines() {
        let report = parse(
            "hello\ndamodel-report/1 begin\ndamodel-report/1 status_phase=failed\nnoise\n\
             damodel-report/1 status_kind=no_inference\ndamodel-report/1 status_text:YSBwbGFudGVkIGI=\n\
             damodel-report/1 of=tomorrow\ndamodel-report/1 end\nbye\n",
        )
        .unwrap();
        let text = "a (redacted) b".to_owned();
        assert_eq!(report.failure, Some(JobFailure { kind: FailureKind::NoInference, text }));
    }

    #[test]
    fn an_incomplete_report_is_an_error_with_its_last_line() {
        for text in [
            "",
            "damodel-report/1 begin\ndamodel-report/1 status_phase=ready\n",
            "damodel-report/1 begin\ndamodel-report/1 log_tail:\nYQ==\nnoise\ndamodel-report/1 end\n",
            "damodel-report/1 begin\ndamodel-report/1 record:\nYQ==\ndamodel-report/1 end\n",
        ] {
            let last = "sh: (redacted): not found".to_owned();
            let expected = Malformed::Incomplete { last };
            assert_eq!(parse(&format!("{text}sh: planted: not found")).unwrap_err(), expected);
        }
        assert!(matches!(parse(""), Err(Malformed::Incomplete { .. })));
        for (line, key) in [("status_phase=dancing", "phase"), ("server_identity=x.1.2", "server_identity")] {
            assert_eq!(report(line).unwrap_err(), Malformed::Value { key: key.to_owned() });
        }
    }

    #[test]
    fn progress_of_a_compile_is_that_of_make_or_ninja() {
        for (tail, percent, line) in [
            ("[  7%] Building\n[ 41%] Linking\n", Some(41), "[ 41%] Linking"),
            ("[3/17] Building\n[4/17] Building a\nwarning: b\n\n", Some(23), "warning: b"),
            ("-- Configuring done\n", None, "-- Configuring done"),
            ("[0/0] nothing\n[9/8] more\n[x%] no\n", None, "[x%] no"),
            ("[184467440737095517/184467440737095517] far\n", None, "[184467440737095517/184467440737095517] far"),
            ("", None, ""),
        ] {
            let tail = STANDARD.encode(format!("of a line\n{tail}"));
            let lines = format!("status_phase=compile\nworker_alive=yes\nstatus_compile_log=/log\ncompile_tail:{tail}");
            let compile = report(&lines).unwrap().compile.unwrap();
            assert_eq!((compile.percent, compile.line.as_str()), (percent, line));
        }
    }

    /// What the job asks for, what the log of the server has, its options, and the notes.
    #[test]
    fn a_server_that_lacks_something_is_noted() {
        for (record, no_gpu, options, notes) in [
            (r#"{"wants_gpu":true}"#, "no CUDA", "", &["the server uses no GPU: no CUDA"][..]),
            (r#"{"wants_gpu":false}"#, "no CUDA", "", &[]),
            (r#"{"wants_gpu":true}"#, "", "", &[]),
            (r#"{"notes":["a"],"flags":["--jinja"]}"#, "", "/b\0--jinja\0", &["a"]),
            (
                r#"{"flags":["--jinja"]}"#,
                "",
                "/b\0-m\0",
                &["the server is too old for --jinja, and runs without it: /b (4748)"],
            ),
        ] {
            let lines = format!(
                "status_phase=ready\njob_record={record}\nstatus_no_gpu={no_gpu}\nserver_alive=yes\n\
                 server_identity=1.2.3\nserver_binary=/b\nserver_version=4748\ncommand_line:{}",
                STANDARD.encode(options)
            );
            assert_eq!(report(&lines).unwrap().notes, notes, "{lines}");
        }
    }
}
