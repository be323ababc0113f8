//! What an instance is asked before a job is begun: a pure function of the job and of what is known to the next
//! questions. The answers are judged where they are needed: `model_file`, `package`, `recipe`, `source`, `logout`.

use super::{
    bootstrap::{Build, Facts, FailureKind, Fingerprint, Job, JobFailure, JobReport, Question, no_room, room_question},
    decide::{Goal, is_under_way},
    logout, model_file, package, source,
};

/// The programs that every job needs, beside a shell.
const PROGRAMS: &[&str] =
    &["awk", "base64", "flock", "grep", "head", "sed", "setsid", "sha256sum", "stat", "tail", "timeout"];

/// What is still to be known: nothing when no more is asked. `of_the_source` where something is to be compiled.
pub(super) fn questions(job: &Job, of_the_source: bool, facts: &Facts) -> Vec<Question> {
    let missing = "for program; do command -v \"$program\" >/dev/null || echo \"$program\"; done";
    let mut questions = vec![
        room_question(&job.place),
        Question::of("home", &["printenv", "HOME"]),
        PROGRAMS.iter().fold(Question::line("missing", missing), |question, program| question.with(program)),
        // The driver's tool puts its errors on standard output.
        Question::line(
            "cards",
            "cards=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader) && echo \"$cards\"; echo \"$1\"",
        )
        .with(job.gpu_name.as_deref().unwrap_or_default()),
    ];
    questions.extend(model_file::questions(job, facts));
    questions.extend(logout::questions(facts));
    if job.build != Build::Source {
        questions.extend(package::questions(job, facts));
    }
    if of_the_source {
        questions.extend(of_a_compile());
        questions.extend(source::questions(job, facts));
    }
    questions.retain(|question| !facts.knows(question.key));
    questions
}

/// Whether the job can be begun, as far as that is known before anything is: the report of a check with the answers,
/// and the refusal. What is under way needs no room and no port.
pub(super) fn judged(job: &Job, facts: Facts, seen: JobReport, ends_rival: bool) -> JobReport {
    let fingerprint = Some(Fingerprint::of(job).to_string());
    let is_under_way = is_under_way(&Goal { build: Some(job.build), fingerprint, rolls_back: false }, &seen);
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
    let port = || match rival {
        Some(rival) => {
            let text = format!("port {} is in use by {}", job.place.port, rival.about);
            Err(JobFailure { kind: FailureKind::PortInUse, text })
        }
        None => Ok(()),
    };
    let judged = missing
        .and_then(|()| room())
        .and_then(|()| model_file::check(job, &facts))
        .and_then(|()| package::check(job, &facts))
        .and_then(|()| port());
    let report = JobReport { facts: facts.clone(), is_same_hardware, ..seen.clone() };
    match judged {
        Err(failure) => JobReport { is_refused: true, failure: Some(failure), ..report },
        Ok(()) => report,
    }
}

fn of_a_compile() -> Vec<Question> {
    let toolkits = "for nvcc in \"$(command -v nvcc)\" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc \
                    /opt/cuda/bin/nvcc; do [ -x \"$nvcc\" ] && [ -f \"$nvcc\" ] || continue; printf '%s\\t%s\\t%s\\n' \
                    \"$nvcc\" \"$(\"$nvcc\" --version | tr '\\n' ' ')\" \
                    \"$(list=$(\"$nvcc\" --list-gpu-arch) && echo \"$list\" | tr '\\n' ' ')\"; done";
    let tools = "for tool in c++ clang++ cmake g++ git make ninja; do ! command -v \"$tool\" >/dev/null || echo \
                 \"$tool\"; done";
    vec![
        Question::of("capabilities", &["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]),
        Question::line("toolkits", toolkits),
        Question::line("tools", tools),
        Question::line(
            "memory",
            "sed -n 's/^MemAvailable: *//p' /proc/meminfo; \
             cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes",
        ),
        Question::line("cores", "nproc; cat /sys/fs/cgroup/cpu.max"),
        // What is built for one CPU may not run on the next one, which a private image or another machine brings.
        Question::of("cpu", &["sed", "-n", "/^flags\\|^Features/{p;q;}", "/proc/cpuinfo"]),
        Question::line("compiler", "{ c++ --version || g++ --version || clang++ --version; } | head -n 1"),
    ]
}
