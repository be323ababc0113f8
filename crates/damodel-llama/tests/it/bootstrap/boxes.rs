//! Several instances that share one workspace, and one instance with two addresses.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use damodel_llama::{Job, JobReport, Phase, Question, ServerPlace, Start, Verb};
use rstest::rstest;

use super::{
    home::{Home, answer, start, until, with_option},
    stand_in::PACKAGE,
};
use crate::support::record::skipped;

/// An instance with processes and ports of its own; machine-id, boot_id and hostname are the same in all.
struct Instance {
    unshare: Child,
    init: u32,
}

impl Instance {
    fn start() -> Option<Self> {
        Self::start_with([])
    }

    /// The environment of its first process has these variables.
    fn start_with<const N: usize>(variables: [(&str, &str); N]) -> Option<Self> {
        let unshare = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc", "--net", "sleep", "1000"])
            .envs(variables)
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
            skipped("only root makes instances of their own");
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
    let before = home.inside.replace(Some(instance.init));
    let report = answer(home.spawn(place, verb));
    home.inside.set(before);
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
        let begin = Start { seen: "", ..start(&home, &job) };
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
    let changed = with_option("context_size", "4096", job(&home.place_of("localhost-2222")));
    let seen = run(&home, instance, place, &Verb::Look).run;
    let begin = Start { seen: &seen, ..start(&home, &changed) };
    assert_eq!(run(&home, instance, &changed.place, &Verb::Ensure(&begin)).failure, None);
    until_loads(&home, instance, place);
    assert_eq!(home.servers().len(), 2);
    let destroyed = run(&home, instance, place, &Verb::Destroy { owner: "owner" });
    assert_eq!((destroyed.phase, destroyed.failure), (Phase::Absent, None));
    assert_eq!(home.servers().len(), 1);
    let first = run(&home, boxes[0].0, &boxes[0].1, &Verb::Look);
    assert_eq!((first.phase, first.failure), (Phase::Ready, None));
}

/// As after a data loader. Answers go to another folder, and one that does not fit is missing.
#[test]
fn full_shared_memory_hides_nothing() {
    let home = Home::new();
    let Some(instance) = Instance::start() else { return };
    let in_memory = |command: &str| {
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["--target", &instance.init.to_string(), "--mount", "sh", "-c", command]);
        assert!(nsenter.status().unwrap().success());
    };
    in_memory("mount -t tmpfs -o size=300k tmpfs /dev/shm");
    fs::create_dir(home.path("many")).unwrap();
    for number in 0..3000 {
        fs::write(home.path(&format!("many/{number:0120}")), "").unwrap();
    }
    let check = |question: Question| {
        run(&home, &instance, &home.place(), &Verb::Check { questions: &[question], job: None }).facts
    };
    let facts = check(Question::new("packages").on("~/many"));
    assert!(facts.lacks_room && facts.unanswered.contains("packages") && !facts.answers.contains_key("packages"));
    in_memory("cat /dev/zero >/dev/shm/full; true");
    let facts = check(Question::new("packages").on("~/many"));
    assert_eq!((facts.lacks_room, facts.lines("packages").len()), (false, 3000));
    let job = home.job();
    assert_eq!(run(&home, &instance, &job.place, &Verb::Ensure(&start(&home, &job))).failure, None);
    let report = until_loads(&home, &instance, &job.place);
    assert!(!report.has_other_model() && !report.is_model_unknown);
}

/// An image whose environment says where the driver is, which a login does not get, or whose driver is in the folders
/// of the container's runtime.
#[rstest]
#[case::where_the_environment_says(None)]
#[case::in_its_folder(Some("/usr/local/nvidia"))]
fn driver_is_found_where_a_login_does_not_look(#[case] mounted: Option<&str>) {
    let home = Home::new().with_cuda();
    let driver = home.path("driver");
    for folder in ["bin", "lib64"] {
        fs::create_dir_all(driver.join(folder)).unwrap();
    }
    fs::rename(home.path("bin/nvidia-smi"), home.path("stand-in/nvidia-smi")).unwrap();
    fs::remove_file(home.path("bin/nvcc")).unwrap();
    let libraries = mounted.map_or_else(|| driver.display().to_string(), str::to_owned) + "/lib64";
    home.script(
        "driver/bin/nvidia-smi",
        &format!(
            "#!/bin/sh\ncase :$LD_LIBRARY_PATH: in *:{libraries}:*) exec ~/stand-in/nvidia-smi \"$@\" ;; esac\n\
             echo \"couldn't find libnvidia-ml.so library\"; exit 12\n"
        ),
    );
    home.script("driver/bin/nvcc", "#!/bin/sh\nexec ~/stand-in/nvcc \"$@\"\n");
    home.package_with_library("driver/lib64");
    let path = format!("/usr/bin:{}/bin", driver.display());
    let variables = [("PATH", path.as_str()), ("LD_LIBRARY_PATH", &libraries)];
    let instance = if mounted.is_some() { Instance::start() } else { Instance::start_with(variables) };
    let Some(instance) = instance else { return };
    if let Some(folder) = mounted {
        let mount = "mount -t tmpfs tmpfs /usr/local && mkdir -p \"$1\" && mount --bind \"$0\" \"$1\"";
        let mut nsenter = Command::new("nsenter");
        nsenter.args(["--target", &instance.init.to_string(), "--mount", "sh", "-c", mount]).arg(&driver).arg(folder);
        assert!(nsenter.status().unwrap().success());
    }
    let questions = ["capabilities", "toolkits"].map(Question::new);
    let facts = run(&home, &instance, &home.place(), &Verb::Check { questions: &questions, job: None }).facts;
    assert_eq!(facts.capabilities, ["8.9"]);
    assert!(facts.toolkits.first().is_some_and(|toolkit| toolkit.nvcc.ends_with("/bin/nvcc")), "{facts:?}");
    // The server is linked with a library that only the driver has.
    let job = Job { package: Some(format!("~/{PACKAGE}/bin/llama-server")), ..home.job() };
    assert_eq!(run(&home, &instance, &job.place, &Verb::Ensure(&start(&home, &job))).failure, None);
    until_loads(&home, &instance, &job.place);
    run(&home, &instance, &job.place, &Verb::Destroy { owner: "owner" });
}
