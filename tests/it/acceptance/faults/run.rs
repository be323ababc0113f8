//! One run: an apply that is broken, and the applies that follow.

use std::{fs, time::Duration};

use damodel::sandbox::{Action, Mutation, Options, Thing, When};
use serde_json::Value;

use super::scenario::{Break, Phase, Scenario};
use crate::support::terraform::{Cli, Instance, Site, Started, Workspace, config};

const X: &str = "damodel_instance.x";
/// As many applies as a person would try.
const APPLIES: usize = 3;

pub(super) fn run(cli: &Cli, scenario: Scenario) {
    let site = Site::with(Options { creation: Duration::from_millis(150), seed: scenario.seed, ..Site::options() });
    let workspace = Workspace::new(cli, &site);
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
    let mut started = Started::apply(workspace);
    let core_killed = matches!(scenario.breaks, Break::CoreKilled | Break::Lost { core: true });
    match scenario.breaks {
        Break::AnswerLost(_) | Break::LateVisibility { killed: false } => {}
        Break::CoreKilled | Break::Lost { core: true } => {
            reached(site, scenario.phase);
            started.kill_core();
        }
        Break::LateVisibility { killed: true } | Break::Lost { core: false } | Break::ProviderKilled => {
            reached(site, scenario.phase);
            started.kill_provider();
        }
        Break::Interrupt | Break::TwoInterrupts => {
            reached(site, scenario.phase);
            started.interrupt();
            if scenario.breaks == Break::TwoInterrupts {
                started.says("Interrupt received");
                started.interrupt();
            }
        }
    }
    started.ended(scenario.patient || !core_killed)
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
