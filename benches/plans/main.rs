//! Measures plans of 1,000 and 10,000 disks and applies of 100 and 1,000, each also with a plugin that does nothing:
//! `cargo bench --bench plans`. They are not tests, because a busy computer is not a defect. Needs Terraform or
//! OpenTofu on PATH.
//!
//! The variable `MEASURE_AS` selects one of three roles: unset, the program measures; as `wrapper` it runs a plugin for
//! the core and records what the plugin used; as `echo` it is the plugin that does nothing.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

mod echo;
mod world;

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::{Command, ExitCode, ExitStatus},
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeValLike,
};

use self::world::World;

/// How often the small plans and applies are measured; the median is reported.
const SAMPLES: usize = 3;

/// The time from the create of a disk until it is available, in the applies.
const WAIT: Duration = Duration::from_millis(300);

/// The same in the apply that measures how soon an available disk is noticed.
const LONG_WAIT: Duration = Duration::from_secs(20);

/// The variables for the program that the wrapper runs, and for the file of its report.
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

/// The time, memory and requests of one command.
struct Sample {
    wall_ms: i64,
    /// Of all processes of the plugin.
    cpu_ms: i64,
    /// Of the largest process of the plugin.
    peak_kib: i64,
    requests: i64,
}

fn measure() {
    let provider = Path::new(env!("CARGO_BIN_EXE_terraform-provider-damodel"));
    let echo = env::current_exe().unwrap();
    let plugins = [("echo", &*echo), ("damodel", provider)];
    let mut out = io::stdout().lock();
    writeln!(out, "{:<24}{:>9}{:>10}{:>12}{:>13}{:>10}", "", "plugin", "wall ms", "its CPU ms", "its MiB", "requests")
        .unwrap();
    for (disks, samples) in [(1000, SAMPLES), (10_000, 1)] {
        let world = World::with_disks_in_the_state(disks);
        for (name, plugin) in plugins {
            let taken = (0..samples).map(|_| plan(&world, plugin)).collect();
            row(&mut out, &format!("plan of {disks} disks"), name, taken);
        }
    }
    for (disks, samples) in [(100, SAMPLES), (1000, 1)] {
        for (name, plugin) in plugins {
            let taken = (0..samples).map(|_| apply(&World::without_disks(disks, WAIT), plugin)).collect();
            row(&mut out, &format!("apply of {disks} disks"), name, taken);
        }
    }
    let world = World::without_disks(10, LONG_WAIT);
    apply(&world, provider);
    let late = world.lateness(LONG_WAIT);
    writeln!(
        out,
        "seen {} ms after it was ready, median of 10 disks that took {} s",
        late.as_millis(),
        LONG_WAIT.as_secs()
    )
    .unwrap();
}

/// Prints the medians.
fn row(out: &mut impl Write, what: &str, plugin: &str, samples: Vec<Sample>) {
    let median = |of: fn(&Sample) -> i64| {
        let mut values: Vec<i64> = samples.iter().map(of).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let mib = f64::from(i32::try_from(median(|sample| sample.peak_kib)).unwrap()) / 1024.0;
    let [wall, cpu, requests] = [median(|it| it.wall_ms), median(|it| it.cpu_ms), median(|it| it.requests)];
    writeln!(out, "{what:<24}{plugin:>9}{wall:>10}{cpu:>12}{mib:>13.1}{requests:>10}").unwrap();
}

/// A plan without changes.
fn plan(world: &World, plugin: &Path) -> Sample {
    sample(world, plugin, &["plan", "-no-color", "-input=false", "-detailed-exitcode"], "No changes")
}

/// An apply that creates all disks.
fn apply(world: &World, plugin: &Path) -> Sample {
    sample(world, plugin, &["apply", "-no-color", "-input=false", "-auto-approve"], "Apply complete!")
}

/// Runs a command that must succeed and print `expected`.
fn sample(world: &World, plugin: &Path, arguments: &[&str], expected: &str) -> Sample {
    let report = world.path("report");
    let _ = fs::remove_file(&report);
    let before = world.requests();
    let begun = Instant::now();
    let mut command = world.command(arguments);
    let run = command.env("MEASURE_AS", "wrapper").env(PLUGIN, plugin).env(REPORT, &report).output().unwrap();
    let wall_ms = i64::try_from(begun.elapsed().as_millis()).unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains(expected), "{said}{}", String::from_utf8_lossy(&run.stderr));
    // The report has one line for each start of the plugin.
    let report = fs::read_to_string(&report).unwrap();
    let lines = report.lines().map(|line| line.split_once(' ').unwrap());
    let (cpu, peak): (Vec<i64>, Vec<i64>) =
        lines.map(|(cpu, peak)| (cpu.parse::<i64>().unwrap(), peak.parse::<i64>().unwrap())).unzip();
    Sample {
        wall_ms,
        cpu_ms: cpu.iter().sum(),
        peak_kib: peak.into_iter().max().unwrap(),
        requests: i64::try_from(world.requests() - before).unwrap(),
    }
}
