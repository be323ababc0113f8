//! The questions to an instance before a job is begun: a pure function of the job and the known facts to the next
//! questions. The answers are judged in `model_file`, `package`, `recipe`, `source` and `logout`.

use super::{
    bootstrap::{Build, Facts, FailureKind, Job, JobFailure, JobReport, Question, no_room, room_question, wants_gpu},
    decide::{Goal, is_under_way},
    logout, model_file, option_files, package, source,
};

/// The programs that every job needs, beside a shell.
const PROGRAMS: &[&str] =
    &["awk", "base64", "flock", "grep", "head", "sed", "setsid", "sha256sum", "stat", "tail", "timeout"];

/// The next questions; empty if all is known. `of_the_source` adds those of a compile.
pub(super) fn questions(job: &Job, of_the_source: bool, facts: &Facts) -> Vec<Question> {
    let mut questions = vec![
        room_question(&job.place),
        Question::new("home"),
        PROGRAMS.iter().fold(Question::new("missing"), |question, program| question.with(program)),
        Question::new("cards").with(job.gpu_name.as_deref().unwrap_or_default()),
    ];
    if wants_gpu(job) {
        questions.push(Question::new("has_gpu"));
    }
    questions.extend(model_file::questions(job, facts));
    questions.extend(option_files::files_question(&job.place.workspace, &job.extra_args, &job.downloads));
    questions.extend(logout::questions(facts));
    if job.build != Build::Source {
        questions.extend(package::questions(job, facts));
    }
    if of_the_source {
        let keys = ["capabilities", "toolkits", "driver", "tools", "memory", "cores", "cpu", "compiler"];
        questions.extend(keys.map(Question::new));
        questions.extend(source::questions(job, facts));
    }
    questions.retain(|question| !facts.knows(question.key));
    questions
}

/// The report of a check with the answers, and the refusal of a job that would certainly fail. A job that is under way
/// needs no room and no port.
pub(super) fn judged(job: &Job, facts: Facts, seen: JobReport, ends_rival: bool) -> JobReport {
    let is_under_way = is_under_way(&Goal::of(job, false), &JobReport { facts: facts.clone(), ..seen.clone() });
    let missing = match facts.lines("missing").first() {
        Some(program) => {
            let text = format!("the program {program} is not installed");
            Err(JobFailure { kind: FailureKind::MissingTool, text })
        }
        None => Ok(()),
    };
    let is_same_hardware = seen.hardware.as_ref().is_some_and(|seen| *seen == package::hardware(job, &facts));
    let room = || no_room(&job.place, &facts).filter(|_| !is_under_way).map_or(Ok(()), Err);
    let rival = seen.rival.as_ref().filter(|rival| !is_under_way && (!ends_rival || rival.command_line.is_empty()));
    let judged = missing
        .and_then(|()| no_answer(&facts))
        .and_then(|()| room())
        .and_then(|()| model_file::check(job, &facts))
        .and_then(|()| option_files::check_files(&job.extra_args, &facts))
        .and_then(|()| package::check(job, &facts))
        .and_then(|()| match rival {
            Some(rival) => {
                let text = format!("port {} is in use by {}", job.place.port, rival.about);
                Err(JobFailure { kind: FailureKind::PortInUse, text })
            }
            None => Ok(()),
        });
    let report = JobReport { facts: facts.clone(), is_same_hardware, ..seen.clone() };
    match judged {
        Err(failure) => JobReport { is_refused: true, failure: Some(failure), ..report },
        Ok(()) => report,
    }
}

/// The warning that the instance shows no GPU although the service reports one: no build cures that.
pub(super) fn shows_no_gpu(job: &Job, facts: &Facts) -> Option<String> {
    let card = job.gpu_name.as_deref()?;
    let is_missing = facts.answers.get("has_gpu").is_some_and(|answer| answer.trim().is_empty());
    (is_missing && wants_gpu(job))
        .then(|| format!("nvidia-smi lists no GPU: the service reports {card}, but the CPU is used"))
}

/// Why the check cannot go on without an answer: the question, and the argument that avoids it.
fn no_answer(facts: &Facts) -> Result<(), JobFailure> {
    if facts.lacks_room {
        let text =
            "no room in /dev/shm or /tmp for the answers. Nothing was stopped. Free space there, then apply again";
        return Err(JobFailure { kind: FailureKind::NoAnswer, text: text.to_owned() });
    }
    let asked = UNANSWERED.iter().find(|(keys, ..)| keys.iter().any(|key| facts.unanswered.contains(*key)));
    let Some((_, what, argument)) = asked else { return Ok(()) };
    let text = format!(
        "{what} did not answer within 100 s: a file system may be stale or slow. Nothing was stopped. Set {argument} \
         to a path that answers"
    );
    Err(JobFailure { kind: FailureKind::NoAnswer, text })
}

/// Questions without whose answers no job is begun, what they ask, and the argument that avoids them.
const UNANSWERED: &[(&[&str], &str, &str)] = &[
    (&["room"], "the workspace", "workspace"),
    (&["model", "model_missing_parts", "models"], "the model's file", "model"),
    (&[model_file::DOWNLOADS], "a file of additional_files", "path in additional_files"),
    (&[option_files::MISSING], "a file that an option names", "extra_args"),
    (&["package", "servers", "server_archives", "packages"], "the folder of prebuilt servers", "package"),
    (&["source", "source_archives", "tree", "trees"], "the folder of sources", "source.path"),
];

#[cfg(test)]
mod tests {
    use super::{
        super::bootstrap::{Phase, PortHolder},
        *,
    };

    /// What the instance answers and who listens on the port: the kind of the refusal, and words of its text.
    #[test]
    fn a_job_that_would_certainly_fail_is_refused() {
        use FailureKind::{DiskFull, MissingModel, MissingTool, NoAnswer, NoPackage, PortInUse};
        let whole = [("model", "regular file/9\nGGUF"), ("package", "regular file/1")];
        let job = Job { package: Some("/p".to_owned()), ..Job::sample() };
        let full = "head: write error: No space left on device\n";
        let (other, llama) = ([""; 0], ["llama-server"]);
        for (answers, silent, rival, expected) in [
            (vec![], "", None, None),
            (vec![("missing", "flock\ntail\n"), ("room", full)], "", None, Some((MissingTool, "the program flock"))),
            (vec![("room", full)], "room", None, Some((NoAnswer, "the workspace did not answer"))),
            (vec![("model", "")], "cores", None, Some((NoAnswer, "no room in /dev/shm or /tmp"))),
            (vec![], "models", None, Some((NoAnswer, "Set model to a path that answers"))),
            (vec![], "servers", None, Some((NoAnswer, "Set package to"))),
            (vec![], "missing_files", None, Some((NoAnswer, "Set extra_args to"))),
            (vec![], "trees", None, Some((NoAnswer, "Set source.path to"))),
            (vec![("room", full), ("model", "")], "", None, Some((DiskFull, "no space is left in the workspace"))),
            (vec![("model", ""), ("package", "")], "", None, Some((MissingModel, "no model at"))),
            (vec![("package", "")], "", Some(&other[..]), Some((NoPackage, "no file or folder at /p"))),
            (vec![], "", Some(&other[..]), Some((PortInUse, "port 8000 is in use by process 1"))),
            // It was started by hand, and the plan has said that the apply ends it.
            (vec![], "", Some(&llama[..]), None),
        ] {
            let all = whole.iter().chain(&answers).map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            let mut facts = Facts::of(all.collect());
            facts.unanswered.extend((!silent.is_empty()).then(|| silent.to_owned()));
            facts.lacks_room = silent == "cores";
            let rival = rival.map(|words| PortHolder {
                about: "process 1".to_owned(),
                command_line: words.iter().map(|word| (*word).to_owned()).collect(),
                identity: None,
            });
            let report = judged(&job, facts, JobReport { rival, ..JobReport::default() }, true);
            let failure = report.failure.map(|failure| (failure.kind, failure.text));
            match (&failure, expected) {
                (None, None) => assert!(!report.is_refused),
                (Some((kind, text)), Some((expected, words))) => {
                    assert!(report.is_refused && *kind == expected && text.contains(words), "{kind:?} {text}");
                }
                _ => panic!("{failure:?} {expected:?}"),
            }
        }
    }

    /// A job that serves needs no room and no port, and its hardware is the same as long as the GPU and the file are.
    #[test]
    fn a_job_that_serves_is_refused_only_for_another_model() {
        let answers = |cards: &str, model: &str| {
            let package = ("package", "regular file/1");
            let all = [("model", model), ("room", "No space left"), ("cards", cards), package];
            Facts::of(all.map(|(key, answer)| (key.to_owned(), answer.to_owned())).into())
        };
        let job = Job { package: Some("/p".to_owned()), build: Build::Prebuilt, ..Job::sample() };
        let seen = JobReport {
            phase: Phase::Ready,
            fingerprint: Goal::of(&job, false).fingerprint,
            hardware: Some(package::hardware(&job, &answers("T4", ""))),
            rival: Some(PortHolder { about: String::new(), command_line: Vec::new(), identity: None }),
            ..JobReport::default()
        };
        for (cards, model, is_refused, is_same) in [
            ("T4", "regular file/9\nGGUF", false, true),
            ("A100", "regular file/9\nGGUF", false, false),
            ("T4", "", true, true),
        ] {
            let report = judged(&job, answers(cards, model), seen.clone(), false);
            assert_eq!((report.is_refused, report.is_same_hardware), (is_refused, is_same), "{cards} {model}");
        }
    }

    #[test]
    fn a_gpu_that_only_the_service_knows_deserves_a_warning() {
        for (gpu_name, answer, gpu_layers, expected) in [
            ("NVIDIA-GeForce-RTX-4090", Some("\n"), "999", true),
            ("NVIDIA-GeForce-RTX-4090", Some("yes\n"), "999", false),
            ("NVIDIA-GeForce-RTX-4090", None, "999", false),
            ("NVIDIA-GeForce-RTX-4090", Some(""), "0", false),
            ("CPU-32C", Some(""), "999", false),
        ] {
            let answers = answer.map(|answer| ("has_gpu".to_owned(), answer.to_owned()));
            let options = [("gpu_layers", gpu_layers.to_owned())].into();
            let job = Job { gpu_name: Some(gpu_name.to_owned()), options, ..Job::sample() };
            let note = shows_no_gpu(&job, &Facts::of(answers.into_iter().collect()));
            assert_eq!(note.is_some(), expected, "{gpu_name} {answer:?} {gpu_layers}");
        }
    }
}
