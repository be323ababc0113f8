//! A plan of 1,000 disks, beside the same plan through a plugin that does nothing: `cargo bench --bench plans`. Measured, not tested,
//! since a busy machine is no fault. Needs Terraform (or OpenTofu) 1.7 on PATH.
//!
//! The program plays three parts, told by the variable `MEASURE_AS`: without one it measures; as `wrapper` it stands between the core
//! and a plugin, and writes down what that took; as `echo` it is the plugin that does nothing.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

mod echo;
mod world;

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::{Command, ExitCode, ExitStatus},
    time::Instant,
};

use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeValLike,
};

use self::world::World;

/// How often each plan is made; the median counts.
const SAMPLES: usize = 3;

/// The program that the wrapper runs, and where it writes what that took.
const PLUGIN: &str = "MEASURE_PLUGIN";
const REPORT: &str = "MEASURE_REPORT";

fn main() -> ExitCode {
    match env::var("MEASURE_AS").as_deref() {
        Ok("echo") => echo::serve(),
        Ok("wrapper") => wrap(),
        _ => {
            measure();
            ExitCode::SUCCESS
        }
    }
}

/// Runs a plugin and appends its CPU milliseconds and peak memory in KiB to the report.
fn wrap() -> ExitCode {
    let plugin = env::var_os(PLUGIN).unwrap();
    let is_echo = Path::new(&plugin) == env::current_exe().unwrap();
    let status = Command::new(plugin).env("MEASURE_AS", if is_echo { "echo" } else { "" }).status().unwrap();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let line = format!("{} {}\n", cpu_ms(&usage), usage.max_rss());
    let mut report = fs::OpenOptions::new().append(true).create(true).open(env::var_os(REPORT).unwrap()).unwrap();
    report.write_all(line.as_bytes()).unwrap();
    if ExitStatus::success(&status) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cpu_ms(usage: &Usage) -> i64 {
    usage.user_time().num_milliseconds() + usage.system_time().num_milliseconds()
}

/// What a plan took.
struct Sample {
    wall_ms: u128,
    /// Of all processes of the plugin.
    cpu_ms: i64,
    /// Of the largest process of the plugin.
    peak_kib: i64,
    requests: usize,
}

fn measure() {
    let world = World::with_disks_in_the_state();
    let provider = Path::new(env!("CARGO_BIN_EXE_terraform-provider-damodel"));
    let echo = env::current_exe().unwrap();
    let mut out = io::stdout().lock();
    writeln!(out, "a plan of {} disks, medians of {SAMPLES}", world::DISKS).unwrap();
    for (name, plugin) in [("echo", &*echo), ("damodel", provider)] {
        let samples: Vec<Sample> = (0..SAMPLES).map(|_| sample(&world, plugin)).collect();
        let median = |of: fn(&Sample) -> i64| {
            let mut values: Vec<i64> = samples.iter().map(of).collect();
            values.sort_unstable();
            values[SAMPLES / 2]
        };
        writeln!(
            out,
            "{name:>8}: {:>5} ms, plugin CPU {:>5} ms, plugin memory {:.1} MiB, {} requests",
            median(|sample| i64::try_from(sample.wall_ms).unwrap()),
            median(|sample| sample.cpu_ms),
            f64::from(i32::try_from(median(|sample| sample.peak_kib)).unwrap()) / 1024.0,
            median(|sample| i64::try_from(sample.requests).unwrap()),
        )
        .unwrap();
    }
}

fn sample(world: &World, plugin: &Path) -> Sample {
    let report = world.path("report");
    let _ = fs::remove_file(&report);
    let before = world.requests();
    let begun = Instant::now();
    let mut plan = world.command(&["plan", "-no-color", "-input=false", "-detailed-exitcode"]);
    let plan = plan.env("MEASURE_AS", "wrapper").env(PLUGIN, plugin).env(REPORT, &report).output().unwrap();
    let wall_ms = begun.elapsed().as_millis();
    let said = String::from_utf8_lossy(&plan.stdout);
    assert!(plan.status.success() && said.contains("No changes"), "{said}{}", String::from_utf8_lossy(&plan.stderr));
    // Each start of the plugin is a line.
    let report = fs::read_to_string(&report).unwrap();
    let lines = report.lines().map(|line| line.split_once(' ').unwrap());
    let (cpu, peak): (Vec<i64>, Vec<i64>) =
        lines.map(|(cpu, peak)| (cpu.parse::<i64>().unwrap(), peak.parse::<i64>().unwrap())).unzip();
    Sample {
        wall_ms,
        cpu_ms: cpu.iter().sum(),
        peak_kib: peak.into_iter().max().unwrap(),
        requests: world.requests() - before,
    }
}
