//! Several instances that share one workspace, and one instance with two addresses.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use super::home::{Home, answer, start, until};
use crate::provider::llama_server::bootstrap::{FailureKind, Job, JobReport, Phase, ServerPlace, Verb};

/// An instance with processes and ports of its own; machine-id, boot_id and hostname are the same in all.
struct Instance {
    unshare: Child,
    init: u32,
}

impl Instance {
    #[expect(clippy::print_stderr, reason = "a test that tests nothing says so")]
    fn start() -> Option<Self> {
        let unshare = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc", "--net", "sleep", "1000"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let children = format!("/proc/{0}/task/{0}/children", unshare.id());
        let mut unshare = Some(unshare);
        let started = until("no instance", || {
            if unshare.as_mut().is_some_and(|unshare| unshare.try_wait().unwrap().is_some()) {
                return Some(None);
            }
            let init = fs::read_to_string(&children).unwrap_or_default().trim().parse().ok()?;
            // It has its own processes when its program is another.
            let program = fs::read_to_string(format!("/proc/{init}/comm")).unwrap_or_default();
            (program.trim() == "sleep").then_some(Some(init))
        });
        let Some(init) = started else {
            eprintln!("SKIPPED: instances of their own take root");
            assert!(option_env!("CI").is_none(), "a shared workspace is not tested");
            return None;
        };
        Some(Self { unshare: unshare.take()?, init })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

fn run(home: &Home, instance: &Instance, place: &ServerPlace, verb: &Verb<'_>) -> JobReport {
    home.inside.set(Some(instance.init));
    let report = answer(home.spawn(place, verb));
    home.inside.set(None);
    report
}

fn until_loads(home: &Home, instance: &Instance, place: &ServerPlace) -> JobReport {
    until("it does not load", || {
        let report = run(home, instance, place, &Verb::Look);
        assert_ne!(report.phase, Phase::Failed, "{report:#?}");
        (report.phase == Phase::Load).then_some(report)
    })
}

#[test]
fn two_instances_share_a_workspace_and_end_no_server_of_each_other() {
    let home = Home::new();
    let (Some(one), Some(other)) = (Instance::start(), Instance::start()) else { return };
    let boxes = [(&one, home.place_of("ins-1")), (&other, home.place_of("ins-2"))];
    let job = |place: &ServerPlace| Job { place: place.clone(), host: "0.0.0.0".to_owned(), ..home.job() };
    for (instance, place) in &boxes {
        let job = job(place);
        let begin = super::super::Start { seen: "", ..start(&home, &job) };
        assert_eq!(run(&home, instance, place, &Verb::Ensure(&begin)).failure, None);
        let process = until_loads(&home, instance, place).process.unwrap();
        let ready = run(&home, instance, place, &Verb::Ready { process: &process.identity });
        assert_eq!((ready.phase, ready.failure), (Phase::Ready, None));
    }
    assert_eq!(home.servers().len(), 2);
    // By its other address, an instance shows its own server, and so does one whose name another instance has.
    for name in ["ins-1", "ins-2", "localhost-2222"] {
        for (instance, place) in &boxes {
            let own = run(&home, instance, place, &Verb::Look);
            let seen = run(&home, instance, &home.place_of(name), &Verb::Look);
            assert_eq!((seen.phase, &seen.run, &seen.process), (Phase::Ready, &own.run, &own.process), "{name}");
        }
    }
    // An update by the other address replaces this server, and a destroy ends it and no other.
    let (instance, place) = &boxes[1];
    let changed = Job { context_size: 4096, ..job(&home.place_of("localhost-2222")) };
    let seen = run(&home, instance, place, &Verb::Look).run;
    let begin = super::super::Start { seen: &seen, ..start(&home, &changed) };
    assert_eq!(run(&home, instance, &changed.place, &Verb::Ensure(&begin)).failure, None);
    until_loads(&home, instance, place);
    assert_eq!(home.servers().len(), 2);
    let destroyed = run(&home, instance, place, &Verb::Destroy { owner: "owner" });
    assert_eq!((destroyed.phase, destroyed.failure), (Phase::Absent, None));
    assert_eq!(home.servers().len(), 1);
    let first = run(&home, boxes[0].0, &boxes[0].1, &Verb::Look);
    assert_eq!((first.phase, first.failure.map(|failure| failure.kind)), (Phase::Ready, None::<FailureKind>));
}
