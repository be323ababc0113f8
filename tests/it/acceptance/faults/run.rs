//! One run: an apply that is broken, and the applies that follow.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use damodel::sandbox::{Action, Mutation, Options, Thing, When};
use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use serde_json::Value;

use super::scenario::{Break, Phase, Scenario};
use crate::support::terraform::{Cli, Instance, Run, Site, Workspace, config};

const X: &str = "damodel_instance.x";
const DEADLINE: Duration = Duration::from_secs(60);
/// As many applies as a person would try.
const APPLIES: usize = 3;

pub(super) fn run(cli: &Cli, scenario: Scenario) {
    let site = Site::with(Options { creation: Duration::from_millis(150), seed: scenario.seed, ..Site::options() });
    let workspace = Workspace::new(cli, &site);
    workspace.wrap_provider("echo $$ >> \"$PIDS\"\nexec \"$PROVIDER\"");
    workspace.set_env("PIDS", &workspace.beside("pids").display().to_string());
    let machine = Instance::new("x").text("name", "trainer").block("timeouts { create = \"20s\" }");
    workspace.write(&config(machine));

    let mut said = broken(&workspace, scenario);
    site.sandbox().clear_faults();
    for uid in site.live() {
        site.mutate(Mutation::SetInstanceStatus { uid, status: "Running".to_owned() });
    }
    if matches!(scenario.breaks, Break::Lost { .. }) {
        let _ = fs::remove_dir_all(workspace.directory().join(".terraform"));
    }
    if site.balance().created == 0 {
        minutes_pass(&workspace);
    }
    let mut done = false;
    for _ in 0..APPLIES {
        let run = workspace.run(&["apply", "-json", "-auto-approve", "-input=false"]);
        said.push_str(&run.stdout);
        done = run.code == Some(0);
        if done {
            break;
        }
    }
    assert!(done, "no apply succeeded\n{said}");
    judge(&workspace, scenario, &said);
}

/// Looks at what the applies have left.
fn judge(workspace: &Workspace<'_>, scenario: Scenario, said: &str) {
    let site = workspace.site;
    let (ledger, balance, live) = (site.ledger(), site.balance(), site.live());
    let state = workspace.state();
    let machine = state.resource(X);
    assert!(!machine.is_tainted() && live.contains(&machine.id()), "not a healthy one in the state\n{said}");
    assert_eq!([machine.value("status"), machine.value("name")], ["Running", "trainer"], "{said}");
    for uid in &live {
        assert!(*uid == machine.id() || said.contains(uid.as_str()), "{uid} lives and nobody said so\n{said}");
    }
    assert_eq!(ledger.requests_to("instance_release").count(), 0, "a healthy one was released\n{said}");
    assert_eq!(balance.created, balance.live + balance.released);
    assert_eq!(ledger.duplicates(Thing::Instance), Vec::<Vec<String>>::new(), "made twice\n{said}");
    assert!(balance.created == 1 || scenario.may_make_two(), "{} were made\n{said}", balance.created);
    workspace.settled();
}

/// An apply in whose create something breaks. Returns what it said.
fn broken(workspace: &Workspace<'_>, scenario: Scenario) -> String {
    let site = workspace.site;
    let hang = |processed| Action::Hang { limit_ms: 120_000, processed };
    if matches!(scenario.breaks, Break::LateVisibility { .. }) {
        site.arm("instance_create", When::Next(1), Action::LateVisibility { ms: 0, reads: 2 });
    }
    match scenario.breaks {
        Break::AnswerLost(way) => site.arm("instance_create", When::Next(1), Scenario::loss(way)),
        Break::LateVisibility { killed: false } => site.arm("instance_create", When::Next(1), Action::DropAfter),
        _ => match scenario.phase {
            Phase::BeforeSend => site.arm("instance_list", When::Always, hang(false)),
            Phase::CarriedOut => site.arm("instance_create", When::Next(1), hang(true)),
            Phase::Received => site.arm("instance_create", When::Next(1), hang(false)),
            Phase::Waiting => site.arm("instance_create", When::Next(1), Action::StickCreation),
        },
    }
    let output = workspace.beside("broken");
    let mut command = workspace.command(&["apply", "-json", "-auto-approve", "-input=false"]);
    let file = File::create(&output).unwrap();
    let mut core = command.process_group(0).stdout(file).stderr(Stdio::null()).spawn().unwrap();
    let group = Pid::from_raw(i32::try_from(core.id()).unwrap());
    let provider = || {
        let pids = fs::read_to_string(workspace.beside("pids")).unwrap();
        Pid::from_raw(pids.lines().last().unwrap().parse().unwrap())
    };
    let core_killed = matches!(scenario.breaks, Break::CoreKilled | Break::Lost { core: true });
    let provider_killed = matches!(
        scenario.breaks,
        Break::ProviderKilled | Break::Lost { core: false } | Break::LateVisibility { killed: true }
    );
    let interrupts = matches!(scenario.breaks, Break::Interrupt | Break::TwoInterrupts);
    if core_killed || provider_killed || interrupts {
        reached(site, scenario.phase);
        match scenario.breaks {
            _ if core_killed => core.kill().unwrap(),
            _ if provider_killed => kill(provider(), Signal::SIGKILL).unwrap(),
            _ => killpg(group, Signal::SIGINT).unwrap(),
        }
        if scenario.breaks == Break::TwoInterrupts {
            until("the first Ctrl-C is noticed", || {
                fs::read_to_string(&output).unwrap().contains("Interrupt received") || has_ended(&mut core)
            });
            let _ = killpg(group, Signal::SIGINT);
        }
    }
    until("the broken apply ends", || has_ended(&mut core));
    if scenario.patient || !core_killed {
        until("its provider ends", || kill(provider(), None) == Err(Errno::ESRCH));
    }
    let said = fs::read_to_string(&output).unwrap();
    workspace.note(&["apply"], Run { code: None, stdout: said.clone(), stderr: String::new() });
    said
}

/// Waits until the create is in a phase.
fn reached(site: &Site, phase: Phase) {
    site.await_ledger("the phase of the create", |ledger| match phase {
        Phase::BeforeSend => ledger.requests_to("instance_list").next().is_some(),
        Phase::CarriedOut | Phase::Received => ledger.requests_to("instance_create").next().is_some(),
        // The first look after the answer.
        Phase::Waiting => ledger.requests.iter().skip_while(|request| request.created.is_empty()).count() > 1,
    });
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_some()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "never came: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets the next apply be one some minutes later, where nothing was carried out: what shows nothing for two minutes is not
/// there, and an apply that comes sooner waits until they are over.
fn minutes_pass(workspace: &Workspace<'_>) {
    let Ok(files) = fs::read_dir(workspace.directory().join(".terraform").join("damodel-pending")) else { return };
    for file in
        files.map(|file| file.unwrap().path()).filter(|file| file.extension().is_some_and(|kind| kind == "json"))
    {
        let mut note: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        note["updated_at"] = (note["updated_at"].as_i64().unwrap() - 600).into();
        fs::write(&file, note.to_string()).unwrap();
    }
}
