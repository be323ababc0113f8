//! The text that is sent and the text that comes back, whole and damaged.

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};

use super::{
    damage::damaged,
    home::{Home, start},
};
use crate::provider::llama_server::bootstrap::{
    FailureKind, Fingerprint, JobReport, Malformed, Phase, SourceOrigin, Verb, is_passable,
    kinds::JobFailure,
    program,
    program::{QUESTIONS, SCRIPT},
    shell::quote,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn quoted_text_is_one_word_of_the_shell(text in "\\PC*[\n'\"\\\\$`! ]*\\PC*") {
        prop_assume!(is_passable(&text));
        let output = Command::new("sh").arg("-c").arg(format!("printf '%s|' {}", quote(&text))).output().unwrap();
        prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{text}|"));
    }
}

#[test]
fn nul_passes_nowhere() {
    assert!(!is_passable("a\0b"));
    assert_eq!(quote("a\0b"), "'ab'");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
fn program_is_clean_in_the_eyes_of_shellcheck() {
    // What follows is either meant, or seen by one part of the program alone.
    let meant = "SC2015,SC2088,SC2317,SC2003,SC2013,SC2034,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154";
    let mut command = Command::new("shellcheck");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{QUESTIONS}\n{SCRIPT}")).unwrap();
    let Ok(output) = command.args(["-s", "sh", "-e", meant]).arg(file.path()).output() else {
        eprintln!("SKIPPED: shellcheck is not installed");
        assert!(option_env!("CI").is_none(), "the program is not checked");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn secrets_of_a_job_are_sent_and_not_shown() {
    let home = Home::new();
    let mut job = home.job();
    job.api_key = Some(SecretString::from("planted-1"));
    job.environment.insert("NAME".to_owned(), SecretString::from("planted-2"));
    job.environment.insert("no name".to_owned(), SecretString::from("planted-3"));
    let text = program(&job.place, &Verb::Ensure(&start(&home, &job)));
    assert!(text.expose_secret().contains("planted-1"));
    assert!(text.expose_secret().contains("planted-2"));
    assert!(!text.expose_secret().contains("planted-3"));
    for shown in [format!("{text:?}"), format!("{job:?}"), format!("{:?}", Verb::Ensure(&start(&home, &job)))] {
        assert!(!shown.contains("planted"), "{shown}");
    }
    // What knows no job sends none.
    for verb in [
        Verb::Look,
        Verb::RollBack,
        Verb::Stop { owner: "" },
        Verb::Destroy { owner: "" },
        Verb::Restart { process: "1.2.3" },
    ] {
        assert!(!program(&job.place, &verb).expose_secret().contains("DAMODEL_MODEL="));
    }
}

#[test]
fn fingerprint_is_of_what_decides_the_result() {
    let home = Home::new();
    let job = home.job();
    let of = |change: &dyn Fn(&mut super::super::Job)| {
        let mut changed = job.clone();
        change(&mut changed);
        Fingerprint::of(&changed)
    };
    let same = of(&|_| ());
    assert_eq!(of(&|job| job.gpu_name = Some("V100".to_owned())), same);
    let others = [
        of(&|job| job.model.push('x')),
        of(&|job| job.place.port += 1),
        of(&|job| job.parallel = 2),
        of(&|job| job.jinja = false),
        of(&|job| job.extra_args = vec!["a b".to_owned()]),
        of(&|job| job.extra_args = vec!["a".to_owned(), "b".to_owned()]),
        of(&|job| job.package = Some(String::new())),
        of(&|job| job.source.origin = SourceOrigin::Default),
        of(&|job| job.source.cuda_architectures = vec!["70".to_owned()]),
        of(&|job| drop(job.triggers.insert("a".to_owned(), "b".to_owned()))),
        of(&|job| job.api_key = Some(SecretString::from("a"))),
        of(&|job| drop(job.environment.insert("a".to_owned(), SecretString::from("b")))),
    ];
    for (index, one) in others.iter().enumerate() {
        assert_ne!(*one, same, "{index}");
        assert_eq!(others.iter().filter(|other| *other == one).count(), 1, "{index}");
    }
    assert!(others[10..].iter().all(|other| other.settings == same.settings));
}

#[test]
fn each_kind_has_one_word() {
    for kind in FailureKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(*kind));
    }
}

fn parse(text: &str) -> Result<JobReport, Malformed> {
    JobReport::parse(text.as_bytes(), &[SecretString::from("planted")])
}

#[test]
fn report_is_read_between_other_lines() {
    let report = parse(
        "hello\ndamodel-report/1 begin\ndamodel-report/1 status_phase=failed\nnoise\n\
         damodel-report/1 status_kind=no_inference\ndamodel-report/1 status_text:YSBwbGFudGVkIGI=\n\
         damodel-report/1 of=tomorrow\ndamodel-report/1 end\nbye\n",
    )
    .unwrap();
    assert_eq!(report.phase, Phase::Failed);
    assert_eq!(report.failure, Some(JobFailure { kind: FailureKind::NoInference, text: "a (redacted) b".to_owned() }));
}

#[test]
fn what_is_no_report_is_told_with_its_last_line() {
    for text in [
        "sh: planted: not found",
        "damodel-report/1 begin\ndamodel-report/1 status_phase=ready\nsh: planted: not found",
        "damodel-report/1 begin\ndamodel-report/1 log_tail:\nYQ==\nnoise\ndamodel-report/1 end\nsh: planted: not found",
        "damodel-report/1 begin\ndamodel-report/1 record:\nYQ==\ndamodel-report/1 end\nsh: planted: not found",
    ] {
        assert_eq!(parse(text).unwrap_err(), Malformed::Incomplete { last: "sh: (redacted): not found".to_owned() });
    }
    assert!(matches!(parse(""), Err(Malformed::Incomplete { .. })));
    for (line, key) in [("status_phase=dancing", "phase"), ("server_identity=x.1.2", "server_identity")] {
        let text = format!("damodel-report/1 begin\ndamodel-report/1 {line}\ndamodel-report/1 end\n");
        assert_eq!(parse(&text).unwrap_err(), Malformed::Value { key: key.to_owned() });
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
        let text = format!(
            "damodel-report/1 begin\ndamodel-report/1 status_phase=compile\ndamodel-report/1 worker_alive=yes\n\
             damodel-report/1 status_compile_log=/log\ndamodel-report/1 compile_tail:{tail}\ndamodel-report/1 end\n"
        );
        let compile = parse(&text).unwrap().compile.unwrap();
        assert_eq!((compile.percent, compile.line.as_str()), (percent, line));
    }
}

/// Reports with every value that is looked for.
const REPORTS: [&[&str]; 4] = [
    &[
        "status_phase=compile",
        "worker_alive=yes",
        "worker_identity=4710.12.boot",
        "boot=boot",
        "folder=/root/.damodel/8000/runs/1",
        "owner_token=tok",
        "record:am9iX3JlY29yZD0neyJmaW5nZXJwcmludCI6ImFiYy9kZWYiLCJidWlsZCI6InNvdXJjZSIsImJlY2F1c2UiOlsib\
         m9fcGFja2FnZSIsImEgcGxhbnRlZCBiIl0sImhhcmR3YXJlIjoiVDQgNy41IiwicGFja2FnZSI6Ii9vcHQvbGxhbWEuY3BwIiwic\
         291cmNlIjoibGxhbWEuY3BwIChnaXQpIGZvciBDVURBIGFyY2hpdGVjdHVyZSA3NSIsInN1cHBseSI6InRoZSBhcmNoaXZlIC9hL\
         nRhci5neiBjYW5ub3QgYmUgdW5wYWNrZWQiLCJub3RlcyI6WyJhbiBvcHRpb24gd2FzIGxlZnQgb3V0Il0sImZsYWdzIjpbIi0ta\
         mluamEiXX0nCnNlcnZlcl9iaW5hcnk9Jy91c3IvYmluL2l0J1wnJ3MnCiMgZW5kCg==",
        "status_compile_log=/root/log",
        "compile_tail=[ 41%] Building",
        "compile_tail=[3/17] Building",
        "compile_tail:WzMvMTddIEJ1aWxkaW5n",
    ],
    &[
        "status_phase=ready",
        "status_proved=yes",
        "server_alive=yes",
        "server_goes_on=yes",
        "server_identity=4711.2.3",
        "server_started=1763700000",
        "server_model=/models/a.gguf",
        "restarts_count=2",
        "restarts_last=137",
        "server_build=prebuilt",
        "server_version=4748 (c392e5094)",
        "server_model_fingerprint=1:2:ab",
        "model_now=1:2:cd",
        "former=/root/.damodel/8000/runs/0",
        "server_folder=/root/.damodel/8000/runs/0",
        "command_line:bGxhbWEtc2VydmVyAC0tYXBpLWtleQBwbGFudGVkAA==",
        "server_log=/root/log",
        "log_tail:bWFpbjogcGxhbnRlZAplcnJvcgo=",
        "status_no_gpu=no usable GPU found",
        "server_time=1234",
        "status_next=1763700000",
    ],
    &[
        "status_phase=failed",
        "status_kind=exited",
        "status_text=",
        "status_exit=134",
        "status_seconds=3",
        "server_binary=/usr/bin/llama-server",
        "refused=port_in_use",
        "refused_text=llama-server (4712)",
        "former=/root/.damodel/8000/runs/0",
    ],
    &[
        "status_phase=absent",
        "fact_cards=Tesla T4",
        "fact_capabilities=7.5",
        "fact_toolkits=/usr/bin/nvcc\tCuda compilation tools, release 12.4, V12.4.99\tcompute_50 compute_70",
        "fact_tools:Y21ha2UKZ2l0Cg==",
        "fact_memory=8388608 kB",
        "fact_memory=2147483648",
        "fact_cores=250000 100000",
    ],
];

/// Records as the shell writes them, and the answer of `ss` to who listens.
const RECORDS: [&str; 4] = [
    "job_record='{\"fingerprint\":\"abc/def\",\"build\":\"source\",\"because\":[\"no_package\",\"a b\"],\"hardware\":\"T4 \
     7.5\",\"package\":\"/opt/llama.cpp\",\"notes\":[\"an option was left out\"],\"flags\":[\"--jinja\"]}'\n# end\n",
    "status_phase='failed'\nstatus_kind='exited'\nstatus_text='it'\\''s over\n'\nstatus_exit='134'\n\
     status_seconds='3'\nstatus_proved='yes'\n# end\n",
    "server_identity='4711.2.boot'\nserver_started='1763700000'\nserver_build='prebuilt'\nserver_binary='/usr/bin/l'\n\
     server_model_fingerprint='1:2:ab'\n# end\n",
    "restarts_count='2'\nrestarts_last='137'\nserver_alive='yes'\nworker_alive='yes'\nformer='/root/runs/0'\n# end\n",
];

#[test]
fn the_records_of_a_report() {
    let secrets = [SecretString::from("planted")];
    let parse = |records: [&[u8]; 4]| {
        let lines = records.map(|record| format!("damodel-report/1 record:{}\n", STANDARD.encode(record)));
        let stdout = format!("damodel-report/1 begin\n{}damodel-report/1 end\n", lines.concat());
        JobReport::parse(stdout.as_bytes(), &secrets)
    };
    let whole = RECORDS.map(str::as_bytes);
    let report = parse(whole).unwrap();
    assert_eq!((report.phase, report.restarts, report.last_exit.is_some()), (Phase::Failed, 2, true));
    assert_eq!(report.package.as_deref(), Some("/opt/llama.cpp"));
    damaged("records", 3000, &whole.map(<[u8]>::to_vec), |position, record, _| {
        let mut records = whole;
        records[position] = record;
        // Whatever it holds is read or refused.
        let _ = parse(records);
    });
}

#[test]
fn the_lines_of_a_report() {
    let reports = REPORTS.map(|lines| {
        let lines = ["begin"].iter().chain(lines).chain(&["end"]).map(|line| format!("damodel-report/1 {line}\n"));
        format!("Welcome\n{}bye\n", lines.collect::<String>()).into_bytes()
    });
    let secrets = [SecretString::from("planted")];
    assert!(reports.iter().all(|report| JobReport::parse(report, &secrets).is_ok()));
    damaged("reports", 3000, &reports, |_, stdout, _| {
        if let Ok(report) = JobReport::parse(stdout, &secrets) {
            assert!(report.log_tail.len() <= 60);
            assert!(report.compile.is_none_or(|compile| compile.percent.is_none_or(|percent| percent <= 100)));
        }
    });
}
