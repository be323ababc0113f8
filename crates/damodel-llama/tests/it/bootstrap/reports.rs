//! The text of the program, and damaged reports.

use std::{fs, process::Command};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use damodel_llama::{JobReport, Phase};
use secrecy::SecretString;

use crate::support::{damage::damaged, record::skipped};

#[test]
fn program_is_clean_in_the_eyes_of_shellcheck() {
    // What follows is either meant, or seen by one part of the program alone.
    let meant = "SC2015,SC2088,SC2317,SC2003,SC2013,SC2034,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bootstrap/script");
    // In the order in which the program is read.
    let parts =
        ["driver", "questions", "records", "processes", "look", "compile", "download", "serve", "verbs"].into_iter();
    let parts: Vec<String> = parts.map(|part| fs::read_to_string(format!("{folder}/{part}.sh")).unwrap()).collect();
    assert_eq!(parts.len(), fs::read_dir(folder).unwrap().count());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), parts.join("\n")).unwrap();
    match Command::new("shellcheck").args(["-s", "sh", "-e", meant]).arg(file.path()).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(_) => skipped("shellcheck is not installed"),
    }
}

/// Values beside the records: their names, and what they hold.
const VALUES: [(&str, &str); 8] = [
    ("compile_tail", "[ 41%] Building\n[3/17] Building\n"),
    ("command_line", "llama-server\0--api-key\0planted\0"),
    ("log_tail", "main: planted\nerror: no\n"),
    ("fact_cards", "Tesla T4, 550.54\n"),
    ("fact_capabilities", "7.5\n"),
    ("fact_toolkits", "/usr/bin/nvcc\tCuda compilation tools, release 12.4, V12.4.99\tcompute_50 compute_70"),
    ("fact_memory", "8388608 kB\n2147483648\n"),
    ("fact_cores", "16\n250000 100000\n"),
];

/// Records as the shell writes them, and the answer of `ss` to who listens.
const RECORDS: [&str; 4] = [
    "job_record='{\"fingerprint\":\"abc/def\",\"build\":\"source\",\"because\":[\"no_package\",\"a \
     b\"],\"hardware\":\"T4 7.5\",\"package\":\"/opt/llama.cpp\",\"notes\":[\"an \
     option was left out\"],\"flags\":[\"--jinja\"]}'\n# end\n",
    "status_phase='failed'\nstatus_kind='exited'\nstatus_text='it'\\''s over\n'\nstatus_exit='134'\n\
     status_seconds='3'\nstatus_proved='yes'\nstatus_next='1763700000'\nstatus_compile_log='/l'\n\
     refused='busy'\n# end\n",
    "server_identity='4711.2.boot'\nserver_started='1763700000'\nserver_build='prebuilt'\nserver_binary='/usr/bin/l'\n\
     server_model_fingerprint='1:2:ab'\n# end\n",
    "restarts_count='2'\nrestarts_last='137'\nserver_alive='yes'\nworker_alive='yes'\nprevious='/root/runs/0'\n# end\n",
];

/// Whatever a report holds is read or refused, with its records damaged, and with its lines damaged.
#[test]
fn damaged_reports_are_read_or_refused() {
    let secrets = [SecretString::from("planted")];
    let report = |records: &[&[u8]]| {
        let records = records.iter().map(|record| ("record", *record));
        let values = records.chain(VALUES.iter().map(|(name, value)| (*name, value.as_bytes())));
        let lines = values.map(|(name, value)| format!("damodel-report/1 {name}:{}\n", STANDARD.encode(value)));
        format!("Welcome\ndamodel-report/1 begin\n{}damodel-report/1 end\nbye\n", lines.collect::<String>())
    };
    let whole = RECORDS.map(str::as_bytes);
    let text = report(&whole);
    let read = JobReport::parse(text.as_bytes(), &secrets).unwrap();
    assert_eq!((read.phase, read.restarts, read.last_exit.is_some()), (Phase::Failed, 2, true));
    assert_eq!((read.package.as_deref(), read.facts.cards.len()), (Some("/opt/llama.cpp"), 1));
    damaged("records", 3000, &whole.map(<[u8]>::to_vec), |position, record, _| {
        let mut records = whole;
        records[position] = record;
        let _ = JobReport::parse(report(&records).as_bytes(), &secrets);
    });
    damaged("reports", 3000, &[text.into_bytes()], |_, stdout, _| {
        if let Ok(report) = JobReport::parse(stdout, &secrets) {
            assert!(report.log_tail.len() <= 60);
            assert!(report.compile.is_none_or(|compile| compile.percent.is_none_or(|percent| percent <= 100)));
        }
    });
}
