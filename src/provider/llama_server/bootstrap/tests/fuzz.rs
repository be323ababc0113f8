//! The lines of a report, damaged: they are read or refused.

use secrecy::SecretString;

use super::{super::Report, damage::damaged};

/// Reports with every value that is looked for.
const REPORTS: [&[&str]; 4] = [
    &[
        "phase=compile",
        "work=alive",
        "fingerprint=abc/def",
        "owner=tok",
        "begun=source",
        "because=no_package",
        "because_text:YSBwbGFudGVkIGI=",
        "compile_log=/root/log",
        "compile_tail=[ 41%] Building",
        "compile_tail=[3/17] Building",
        "compile_tail:WzMvMTddIEJ1aWxkaW5n",
        "hardware=T4 7.5",
        "room=12 100",
        "rebooted=yes",
    ],
    &[
        "phase=ready",
        "server_alive=yes",
        "server_pid=4711",
        "server_identity=1.2.3",
        "server_started=1763700000",
        "server_run=1",
        "work_run=1",
        "proved=yes",
        "restarts=2",
        "last_exit=137",
        "server_build=prebuilt",
        "server_version=4748 (c392e5094)",
        "package=/opt/llama.cpp",
        "server_model_fingerprint=1:2:ab",
        "model_now=1:2:cd",
        "former=serving",
        "command_line:bGxhbWEtc2VydmVyAC0tYXBpLWtleQBwbGFudGVkAA==",
        "log_path=/root/log",
        "log_tail:bWFpbjogcGxhbnRlZAplcnJvcgo=",
        "log_cpu_only=no usable GPU found",
        "notes=an option was left out",
    ],
    &[
        "phase=failed",
        "failure=exited",
        "failure_text=",
        "exit=134",
        "seconds=3",
        "server_binary=/usr/bin/llama-server",
        "refused=yes",
        "rival=llama-server (4712)",
        "rival_pid=4712",
        "rival_command_line:L2EvbGxhbWEtc2VydmVyAC0tYXBpLWtleT14AA==",
    ],
    &[
        "phase=absent",
        "fact_cards=Tesla T4",
        "fact_capabilities=7.5",
        "fact_toolkits=/usr/bin/nvcc\tCuda compilation tools, release 12.4, V12.4.99\tcompute_50 compute_70",
        "fact_tools:Y21ha2UKZ2l0Cg==",
        "fact_memory=8388608 kB",
        "fact_memory=2147483648",
        "fact_cores=250000 100000",
    ],
];

#[test]
fn the_lines_of_a_report() {
    let reports = REPORTS.map(|lines| {
        let lines = ["begin"].iter().chain(lines).chain(&["end"]).map(|line| format!("damodel-report/1 {line}\n"));
        format!("Welcome\n{}bye\n", lines.collect::<String>()).into_bytes()
    });
    let secrets = [SecretString::from("planted")];
    assert!(reports.iter().all(|report| Report::parse(report, &secrets).is_ok()));
    damaged("reports", 3000, &reports, |_, stdout, _| {
        if let Ok(report) = Report::parse(stdout, &secrets) {
            assert!(report.log_tail.len() <= 60);
            assert!(report.compile.is_none_or(|compile| compile.percent.is_none_or(|percent| percent <= 100)));
        }
    });
}
