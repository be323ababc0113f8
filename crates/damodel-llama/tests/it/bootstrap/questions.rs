//! The answers of the shell to the questions of a check.

use std::{fs, path::Path, process::Command};

use damodel_llama::{Facts, FailureKind, Phase, Question, Verb, no_room, room_question};
use rstest::rstest;

use super::{
    home::{Home, with_option},
    stand_in::working,
};

fn ask(home: &Home, questions: &[Question]) -> Facts {
    home.run(&Verb::Check { questions, job: Some(&home.job()) }).facts
}

/// No answer is neither "missing" nor "changed", and a server that serves is left alone.
#[test]
fn without_room_for_answers_none_is_given() {
    let home = Home::new();
    let served = home.serve(&home.job());
    home.script("bin/head", "#!/bin/sh\ncase $* in *262144*) exit 1 ;; esac\nexec /usr/bin/head \"$@\"\n");
    let report = home.run(&Verb::Check { questions: &[Question::new("user")], job: None });
    assert!(report.facts.lacks_room && report.facts.unanswered.contains("user"), "{report:#?}");
    assert_eq!((report.phase, &report.process, report.is_model_unknown), (Phase::Ready, &served.process, true));
    assert!(!report.has_other_model());
    home.stop();
    let failure = home.fails(&home.job()).failure.unwrap();
    assert!(failure.kind == FailureKind::NoAnswer && failure.text.contains("no room in /dev/shm"), "{failure:?}");
    // An update has ended the previous server by then.
    assert!(!failure.kind.advice().contains("Nothing"));
}

#[rstest]
#[case("dash")]
#[case("bash")]
#[case("busybox")]
fn instance_says_what_it_has(#[case] shell: &str) {
    let Some(home) = Home::with_shell(shell) else { return };
    let home = home.with_cuda();
    fs::create_dir_all(home.path("workspace")).unwrap();
    fs::create_dir_all(home.path("public-storage/model/more")).unwrap();
    home.model_named("more/other", working());
    let model = home.text("public-storage/model/tiny.gguf");
    let facts = ask(
        &home,
        &[
            room_question(&home.place()),
            Question::new("home"),
            Question::new("user"),
            Question::new("missing").with("sh").with("no-such-program"),
            Question::new("cards").with("of the service"),
            Question::new("has_gpu"),
            Question::new("capabilities"),
            Question::new("toolkits"),
            Question::new("driver"),
            Question::new("tools"),
            Question::new("memory"),
            Question::new("cores"),
            Question::new("cpu"),
            Question::new("compiler"),
            Question::new("loaders"),
            Question::new("login"),
            Question::new("model").on("~/public-storage/model/tiny.gguf"),
            Question::new("model_missing_parts").on(&model).on("~/no-part"),
            Question::new("models").on("~/none").on_storage("model"),
            Question::new("missing_files").on("~/workspace").with(&model).with("../source").with("source").with("~/x"),
            Question::new("package").on("~/public-storage/package/llama-cuda"),
            Question::new("packages").on_storage("package"),
            Question::new("source").on("~/source"),
            Question::new("trees").on("~/none").on("~/source"),
            Question::new("tree").on("~/source"),
        ],
    );
    assert_eq!(facts.unanswered.len(), 0, "{:?}", facts.unanswered);
    assert_eq!(facts.cards, ["NVIDIA GeForce RTX 4090", "of the service"]);
    assert_eq!(facts.capabilities, ["8.9"]);
    let [toolkit, ..] = &facts.toolkits[..] else { panic!("{facts:?}") };
    assert_eq!((&toolkit.nvcc, toolkit.version.as_str()), (&home.text("bin/nvcc"), "12.4"));
    assert!(toolkit.architectures.contains(&"89".to_owned()), "{toolkit:?}");
    assert!(facts.memory_mib.is_some_and(|mib| mib > 0) && facts.cores.is_some_and(|cores| cores > 0), "{facts:?}");
    for (question, answer) in [
        ("room", ""),
        ("home", home.text("").trim_end_matches('/')),
        ("missing", "no-such-program"),
        ("has_gpu", "yes"),
        ("model_missing_parts", &home.text("no-part")),
        ("missing_files", "source\n~/x"),
        ("packages", "llama-cuda\nllama-cuda/build.json\nllama-cuda/llama-server"),
        ("source", "directory"),
    ] {
        let mut lines = facts.lines(question);
        lines.sort();
        assert_eq!(lines.join("\n"), answer, "{question}");
    }
    for question in ["user", "driver", "cpu", "compiler", "loaders", "login", "tree"] {
        assert_ne!(facts.text(question), "", "{question}");
    }
    assert!(facts.text("package").starts_with("directory/"), "{facts:?}");
    assert!(facts.text("model").starts_with("regular file/") && facts.text("model").ends_with("\nGGUF"));
    assert!(facts.tools.contains(&"cmake".to_owned()));
    let mut models = facts.lines("models");
    models.sort();
    assert_eq!(models, [home.text("public-storage/model/more/other.gguf"), model]);
    assert_eq!(facts.entries::<2>("trees").iter().map(|[_, path]| *path).collect::<Vec<_>>(), [home.text("source")]);
}

/// Of several folders the first that has servers counts: each with its version, and whether it sees no GPU.
#[test]
fn servers_are_found_in_the_first_folder_that_has_them() {
    let home = Home::new().with_cuda();
    fs::create_dir_all(home.path("empty")).unwrap();
    home.package("one/blind", "[]");
    home.package("one/cuda", "[89]");
    home.script("one/old/bin/llama-server", "#!/bin/sh\necho 'version: 4748 (c392e5094)' >&2\n");
    home.script("one/broken/llama-server", "#!/bin/sh\necho 'error while loading shared libraries'; exit 127\n");
    home.package("two/cuda", "[89]");
    let servers = |folders: &[&str], gpu_layers| {
        let question = folders.iter().fold(Question::new("servers"), |question, folder| question.on(folder));
        let job = with_option("gpu_layers", gpu_layers, home.job());
        let facts = home.run(&Verb::Check { questions: &[question], job: Some(&job) }).facts;
        let servers = facts.entries::<5>("servers").into_iter().map(|[path, time, code, printed, gpu]| {
            assert!(time.parse::<u64>().is_ok(), "{time}");
            let name = Path::new(path).strip_prefix(home.path("")).unwrap().display().to_string();
            format!("{name} {code} {} {gpu}", printed.lines().last().unwrap_or_default())
        });
        servers.collect::<Vec<_>>()
    };
    let all = servers(&["~/empty", "~/one", "~/two"], "999");
    let [blind, broken, cuda, old] = &all[..] else { panic!("{all:?}") };
    assert!(blind.starts_with("one/blind/llama-server 0 ") && blind.ends_with(" none"), "{blind}");
    assert_eq!(broken, "one/broken/llama-server 127 error while loading shared libraries ");
    assert!(cuda.starts_with("one/cuda/llama-server 0 ") && !cuda.ends_with("none"), "{cuda}");
    assert!(old.starts_with("one/old/bin/llama-server 0 version: 4748 (c392e5094) "), "{old}");
    // A job for the CPU does not ask for the GPU.
    assert!(!servers(&["~/one"], "0").iter().any(|server| server.ends_with(" none")));
    assert!(servers(&["~/missing", "~/two", "~/one"], "999")[0].starts_with("two/cuda/llama-server 0 "));
}

#[test]
fn archives_and_references_are_looked_into() {
    let home = Home::new().with_cuda();
    fs::create_dir(home.path("archives")).unwrap();
    home.pack("archives/a server.tgz", "public-storage/package", "llama-cuda");
    home.pack("archives/b of llama.tar.gz", "", "source");
    let source = home.path("source");
    let commit = git(&source);
    let url = format!("file://{}", source.display());
    fs::write(home.path("known"), "last\n").unwrap();
    let facts = ask(
        &home,
        &[
            Question::new("server_archives").on("~/archives"),
            Question::new("source_archives").on("~/archives"),
            Question::new("references").with(&url).with("b5000"),
            Question::new("reference").on("~/known"),
        ],
    );
    for (question, archive, entry) in [
        ("server_archives", "archives/a server.tgz", "llama-cuda/llama-server"),
        ("source_archives", "archives/b of llama.tar.gz", "source/CMakeLists.txt"),
    ] {
        let [[path, stat, inside]] = facts.entries::<3>(question)[..] else { panic!("{facts:?}") };
        assert_eq!((path, inside), (home.text(archive).as_str(), entry));
        assert!(stat.contains(':'), "{stat}");
    }
    assert!(facts.text("references").contains(&format!("{commit}\trefs/tags/b5000^{{}}")), "{facts:?}");
    assert_eq!(facts.text("reference"), "last");
    let none = ask(&home, &[Question::new("references").with("file:///no/repository").with("main")]);
    assert!(none.text("references").contains("fatal: "), "{none:?}");
}

/// Makes a repository with the annotated tag `b5000` of a folder: its commit.
pub(crate) fn git(folder: &Path) -> String {
    let git = |words: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
            .args(words)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    git(&["tag", "-am", "tag", "b5000"]);
    git(&["rev-parse", "HEAD"])
}

#[test]
fn workspace_that_cannot_be_written_has_a_reason() {
    let home = Home::new();
    fs::write(home.path("file"), "").unwrap();
    let mut place = home.place();
    place.workspace = "~/file/workspace".to_owned();
    let facts = home.run_at(&place, &Verb::Check { questions: &[room_question(&place)], job: None }).facts;
    let failure = no_room(&place, &facts).unwrap();
    assert!(failure.kind == FailureKind::Workspace && failure.text.contains("Not a directory"), "{failure:?}");
}

/// Who logs in, under systemd; a lingering user has a scope, with the policy for memory if systemd knows it.
#[rstest]
#[case::root(0, &[], false, "0\nsystemd", "systemd-run --scope -p OOMPolicy=continue")]
#[case::old_systemd(0, &[], true, "0\nsystemd", "systemd-run --scope")]
#[case::user(1000, &["other"], false, "1000\nsystemd", "systemd-run --scope -p OOMPolicy=continue")]
#[case::user_who_lingers(1000, &["user"], false, "1000\nsystemd\nlingers", "systemd-run --scope -p OOMPolicy=continue")]
fn systemd_is_asked_for_a_scope(
    #[case] id: u32,
    #[case] lingering: &[&str],
    #[case] is_old: bool,
    #[case] login: &str,
    #[case] scope: &str,
) {
    let home = Home::new();
    home.script("bin/id", &format!("#!/bin/sh\ncase $1 in -u) echo {id} ;; *) echo user ;; esac\n"));
    let old = if is_old { "case $* in *OOMPolicy*) exit 1 ;; esac\n" } else { "" };
    home.script("bin/systemd-run", &format!("#!/bin/sh\n{old}exit 0\n"));
    home.script("bin/busctl", "#!/bin/sh\ncase $* in *KillUserProcesses) echo b true ;; esac\n");
    for user in lingering {
        home.script(&format!("linger/{user}"), "");
    }
    if !home.with_systemd() {
        return;
    }
    let scope_of = Question::new("scope").with("systemd-run --scope");
    let facts = ask(&home, &[Question::new("login"), scope_of, Question::new("ends_at_logout")]);
    assert_eq!([facts.text("login"), facts.text("scope"), facts.text("ends_at_logout")], [login, scope, "b true"]);
}
