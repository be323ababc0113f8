//! Servers that are compiled in the instance.

use std::fs;

use super::{Held, Server, X, builds, each_served, home, make_machine, pid, servers, until_phase};
use crate::{
    commands::watch::Watching,
    support::{
        program,
        terraform::{Severity, Started, refusal, says},
    },
};

#[test]
fn a_compile_is_watched_from_a_second_terminal() {
    each_served(|site, workspace| {
        workspace.run_program();
        make_machine(workspace);
        let held = Held::compile(site);
        workspace.write(&Server::new().text("build", "source").config());
        let mut watching = Watching::start(workspace);
        watching.says("No apply is waiting in this folder yet");
        let apply = Started::apply(workspace);
        watching.says(" % ([");
        held.release();
        let applied = apply.ended(true);
        assert!(applied.contains("Apply complete!"), "{applied}");
        let said = watching.ended();
        let id = workspace.state().resource(X).id();
        let server: Vec<&str> = said.lines().filter(|line| line.contains(&format!(" llama server {id}"))).collect();
        let tells = server.iter().any(|line| line.contains(": compiling ") && line.contains(" % (["));
        assert!(tells, "how far the compile is, and at what: {said}");
        assert!(server.last().is_some_and(|line| line.contains(": ready, done after ")), "{said}");
        workspace.finish();
    });
}

#[test]
fn auto_compiles_when_the_prebuilt_server_does_not_infer() {
    each_served(|site, workspace| {
        // What is refused at once creates the home, and leaves nothing else.
        workspace.write(&Server::new().model("nowhere").config());
        let (done, said) = workspace.try_apply(&[]);
        let error = refusal(&said, &["model not found", "tiny.gguf", "was not started"]);
        assert_eq!((done, error.attribute.as_deref()), (false, Some("model")), "{error:#?}");
        assert_eq!((workspace.state().addresses(), servers(site)), (vec!["damodel_instance.gpu"], vec![]));
        let broken = home(site).join("broken");
        program::put(
            &broken,
            "#!/bin/sh\necho 'CUDA error: no kernel image is available for execution on the device' >&2\nexit 134\n",
        );

        let server = Server::new().text("package", "~/broken");
        workspace.write(&server.config());
        workspace.run_program();
        workspace.set_env("TF_LOG_PROVIDER", "INFO");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("info.log").display().to_string());
        let (done, said) = workspace.try_apply(&[]);
        // Before the compile begins.
        let log = fs::read_to_string(workspace.beside("info.log")).unwrap();
        let reason = log.find("the prebuilt server failed: the server exited before it was ready. The log has");
        let compile = log.find("phase=Compile").or_else(|| log.find("Compile"));
        assert!(reason.is_some() && reason < compile, "{reason:?} {compile:?} {log}");
        assert!(done, "{said:#?}");
        assert!(says(&said, Severity::Warning, "134"), "why the prebuilt server was given up: {said:#?}");
        assert_eq!(workspace.state().resource(X).value("build_used"), "source");
        workspace.settled();
        assert_eq!(builds(site).len(), 1);

        // Only the prebuilt server is permitted, and it fails.
        workspace.write(&server.text("build", "prebuilt").config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "the server exited before it was ready"), "{said:#?}");
        let state = workspace.state();
        let x = state.resource(X);
        assert_eq!((x.value("status"), x.value("build_used")), (&"ready".into(), &"source".into()), "{said:#?}");
        workspace.apply_ok(&Server::new().config());
        workspace.finish();
    });
}

/// The package is the prebuilt server, which crashes if its environment or a file asks for it.
#[test]
fn the_previous_server_serves_during_a_compile_if_it_can() {
    each_served(|site, workspace| {
        make_machine(workspace);
        let package = home(site).join("package");
        let script = "#!/bin/sh\ncase $* in *--version* | *--help* | *--list-devices*) ;; *) [ -z \"$BREAKS\" ] && \
                      [ ! -e ~/breaks ] || { echo 'CUDA error: an illegal memory access' >&2; exit 134; } ;; esac\n\
                      exec ~/public-storage/package/llama.cpp/bin/llama-server \"$@\"\n";
        program::put(&package, script);
        let server = Server::new().text("package", "~/package");
        workspace.apply_ok(&server.config());
        // No build cures it.
        workspace.write(&server.clone().model("gpu-full").config());
        let (done, said) = workspace.try_apply(&[]);
        refusal(&said, &["out of memory", "The previous server was started again"]);
        assert_eq!((done, builds(site)), (false, vec![]));

        let first = pid(&workspace.state());
        let held = Held::compile(site);
        workspace.write(&server.clone().set("environment", "{ BREAKS = \"yes\" }").config());
        let started = Started::apply(workspace);
        until_phase(site, "'compile'");
        let serving = servers(site);
        assert!(serving.len() == 1 && serving != [u32::try_from(first.as_raw()).unwrap()], "{first} {serving:?}");
        held.release();
        let applied = started.ended(true);
        assert!(applied.contains("Apply complete!") && applied.contains("was built from source"), "{applied}");
        assert!(!applied.contains("no server ran"), "{applied}");
        assert_eq!((workspace.state().resource(X).value("build_used"), servers(site).len()), (&"source".into(), 1));

        // The previous server crashes as well.
        let server = server.text("restart_policy", "never");
        workspace.apply_ok(&server.config());
        assert_eq!(workspace.state().resource(X).value("build_used"), "prebuilt");
        fs::write(home(site).join("breaks"), "").unwrap();
        workspace.write(&server.set("context_size", 1024).config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && says(&said, Severity::Warning, "no server ran during the compile"), "{said:#?}");
        assert!(says(&said, Severity::Warning, "the previous server was started again and failed"), "{said:#?}");
        assert_eq!(workspace.state().resource(X).value("build_used"), "source");
        workspace.finish();
    });
}
