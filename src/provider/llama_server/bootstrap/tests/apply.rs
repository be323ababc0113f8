//! What an apply does, without SSH.

use std::sync::LazyLock;

use super::home::{Home, chat, http};
use crate::provider::llama_server::{
    bootstrap::{
        Binary, Build, Facts, FailureKind, Job, JobFailure, JobReport, LoginLifetime, Phase, Prebuilt, Recipe, Start,
        Verb,
    },
    decide::{Goal, History, Step, TrialAnswers, Tried, decide, is_cured_by_source},
    logout, recipe, survey,
    work::choose,
};

impl Home {
    /// Asks all that an apply asks before it begins a job.
    pub(super) fn check(&self, job: &Job) -> JobReport {
        self.survey(job, false, Facts::default())
    }

    fn survey(&self, job: &Job, of_the_source: bool, mut facts: Facts) -> JobReport {
        let mut questions = survey::questions(job, of_the_source, &facts);
        loop {
            let mut report = self.run_at(&job.place, &Verb::Check { questions: &questions, job: Some(job) });
            if report.is_refused {
                return report;
            }
            facts.learn(std::mem::take(&mut report.facts));
            questions = survey::questions(job, of_the_source, &facts);
            if questions.is_empty() {
                return survey::judged(job, facts, report, false);
            }
        }
    }

    /// Begins a job as the first step of an apply does.
    pub(super) fn ensure(&self, job: &Job) -> JobReport {
        let report = self.check(job);
        if report.is_refused {
            return report;
        }
        match decide(&goal(job), &report, &History::default()) {
            Step::Begin(build, because) => match self.begin_with(job, build, because, &report) {
                Ok(report) => report,
                Err((failure, because)) => JobReport { failure: Some(failure), because, is_refused: true, ..report },
            },
            Step::Own => self.run_at(&job.place, &Verb::Own { seen: &report.run, owner: "owner", job }),
            step => panic!("{step:?}"),
        }
    }

    /// Begins a job with this binary.
    pub(super) fn begin(&self, job: &Job, build: Build, because: Option<&JobFailure>) -> JobReport {
        self.begin_with(job, build, because.cloned(), &self.check(job)).unwrap()
    }

    fn begin_with(
        &self,
        job: &Job,
        build: Build,
        because: Option<JobFailure>,
        seen: &JobReport,
    ) -> Result<JobReport, (JobFailure, Option<JobFailure>)> {
        let facts = seen.facts.clone();
        let facts = if build == Build::Source { self.survey(job, true, facts).facts } else { facts };
        let (binary, because) = match choose(job, build, because, &facts) {
            Err((failure, _)) if build != Build::Source && is_cured_by_source(&goal(job), failure.kind) => {
                return self.begin_with(job, Build::Source, Some(failure), &JobReport { facts, ..seen.clone() });
            }
            chosen => chosen?,
        };
        let begun = start(self, job);
        let login = logout::login(&facts);
        let start = Start { binary: &binary, login: &login, because: because.as_ref(), seen: &seen.run, ..begun };
        Ok(self.run_at(&job.place, &Verb::Ensure(&start)))
    }

    /// With what a job is compiled here.
    pub(super) fn recipe(&self, job: &Job) -> Result<Recipe, JobFailure> {
        let facts = self.check(job).facts;
        recipe::choose(job, &self.survey(job, true, facts).facts)
    }

    /// Does what an apply does, and sees it succeed.
    pub(super) fn serve(&self, job: &Job) -> JobReport {
        let (report, step) = self.apply(job);
        assert!(matches!(step, Step::Confirm(_)), "{step:?} {report:#?}\n{}", self.work_log());
        report
    }

    /// Does what an apply does: the last that was seen, and what was decided on it.
    pub(super) fn apply(&self, job: &Job) -> (JobReport, Step) {
        let report = self.check(job);
        assert!(!report.is_refused, "{report:#?}");
        self.follow(job, report, usize::MAX).unwrap()
    }

    /// Does what an apply does after its check, for so many steps: none when it is not over by then.
    pub(super) fn follow(&self, job: &Job, mut report: JobReport, steps: usize) -> Option<(JobReport, Step)> {
        let mut history = History::default();
        let facts = report.facts.clone();
        let with_facts = |report: &JobReport| JobReport { facts: facts.clone(), ..report.clone() };
        for _ in 0..steps {
            let step = decide(&goal(job), &report, &history);
            report = match &step {
                Step::Begin(build, because) => {
                    match self.begin_with(job, *build, because.clone(), &with_facts(&report)) {
                        Ok(report) => {
                            history.is_begun = true;
                            report
                        }
                        Err((failure, because)) => {
                            return Some((JobReport { failure: Some(failure), because, ..report }, Step::Fail));
                        }
                    }
                }
                Step::Own => {
                    history.is_begun = true;
                    let own = Verb::Own { seen: &report.run, owner: "owner", job };
                    self.run_at(&job.place, &own)
                }
                Step::Confirm(process) => {
                    let ready = self.run_at(&job.place, &Verb::Ready { process });
                    if ready.phase == Phase::Ready {
                        return Some((ready, step));
                    }
                    ready
                }
                Step::Record(process, failure) => self.run_at(&job.place, &Verb::Failed { process, failure }),
                Step::Try(process) => {
                    let process = process.clone();
                    let is_healthy = http(job.place.port, "GET /health", "").0 == 200;
                    let status = if is_healthy { chat(job.place.port, "") } else { 0 };
                    let result = match status {
                        200 | 401 => Ok(TrialAnswers::default()),
                        status => Err(no_inference(&format!("it answered {status}"))),
                    };
                    history.tried = is_healthy.then_some(Tried { process, result });
                    self.run_at(&job.place, &Verb::Look)
                }
                Step::Wait => self.run_at(&job.place, &Verb::Look),
                Step::RollBack => return Some((self.run_at(&job.place, &Verb::RollBack), step)),
                Step::Fail | Step::Leave(_) | Step::Superseded => return Some((report, step)),
            };
        }
        None
    }
}

/// How a job is begun in place of the run of now by a resource whose token is "owner": with the prebuilt server that
/// every home has.
pub(super) fn start<'a>(home: &Home, job: &'a Job) -> Start<'a> {
    static PREBUILT: LazyLock<Binary> = LazyLock::new(|| {
        Binary::Prebuilt(Prebuilt {
            path: "~/public-storage/package/llama-cuda/llama-server".to_owned(),
            provided: None,
            hardware: String::new(),
        })
    });
    static LOGIN: LazyLock<LoginLifetime> = LazyLock::new(LoginLifetime::default);
    Start {
        job,
        binary: &PREBUILT,
        login: &LOGIN,
        note: None,
        because: None,
        owner: "owner",
        rolls_back: true,
        ends_rival: None,
        seen: home.run_folder().leak(),
    }
}

/// What a sender records of a server that does not answer the probe.
pub(super) fn no_inference(text: &str) -> JobFailure {
    JobFailure { kind: FailureKind::NoInference, text: text.to_owned() }
}

fn goal(job: &Job) -> Goal {
    Goal::of(job, true)
}
