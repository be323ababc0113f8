//! The plan compares a model with the memory of the instance's GPUs.

use std::time::{Duration, Instant};

use super::{Server, X, each_served};
use crate::support::terraform::{Diagnostic, Instance, Severity, config, refusal, says, unchecked};

#[test]
fn weights_that_do_not_fit_are_an_error_of_the_plan() {
    each_served(|site, workspace| {
        let server = Server::new().model("large");
        // Without the instance there is no memory to compare.
        workspace.write(&server.config());
        let said = workspace.try_plan(&[]);
        assert!(!said.iter().any(|said| said.is_error()), "{said:#?}");
        // Nor without its address.
        let ssh = "{ host = damodel_instance.gpu.ssh_host, port = damodel_instance.gpu.ssh_port, agent = true }";
        workspace.write(&server.clone().without("instance_id").set("ssh", ssh).config());
        let said = workspace.try_plan(&[]);
        assert!(!said.iter().any(|said| said.text().contains("Memory of the server")), "{said:#?}");

        workspace.apply_ok(&config(&server.machine));
        workspace.write(&server.config());
        let said = workspace.try_plan(&[]);
        let words =
            ["large.gguf does not fit in GPU memory", "the GPU has 24.0 GiB", "no context fits", "preflight = false"];
        assert_eq!(refusal(&said, &words).attribute.as_deref(), Some("model"), "{said:#?}");
        // With layers in main memory, a variable that may hide GPUs, without the check, and where no login succeeds,
        // nothing is judged.
        let nowhere = server.clone().set("ssh", "{ host = \"127.0.0.1\", port = 1, password = \"p\" }");
        let hidden = server.clone().set("environment", "{ CUDA_VISIBLE_DEVICES = \"0\" }");
        let layers = server.clone().set("gpu_layers", 1);
        workspace.remove_env("SSH_AUTH_SOCK");
        let unarmed = server.clone().set("ssh", "{ agent = true }");
        let begun = [nowhere.config(), unarmed.config()];
        for unjudged in [layers.config(), hidden.config(), unchecked(&server)].iter().chain(&begun) {
            workspace.write(unjudged);
            let started = Instant::now();
            let said = workspace.try_plan(&[]);
            assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
            assert!(!said.iter().any(|said| said.is_error() || said.text().contains("GPU memory")), "{said:#?}");
            // A check that was begun and could not be made says so.
            let says_so = says(&said, Severity::Warning, "Memory of the server is not checked");
            assert_eq!(says_so, begun.contains(unjudged), "{said:#?}");
        }
        workspace.write(&server.clone().set("parallel", 300).config());
        let said = workspace.try_plan(&[]);
        let words = ["parallel must be a whole number from 1 to 256"];
        assert_eq!(refusal(&said, &words).attribute.as_deref(), Some("parallel"), "{said:#?}");
        // A destroy plans first, and would have the same error.
        workspace.write(&server.config());
        let destroyed = workspace.run(&["destroy", "-no-color", "-auto-approve"]);
        assert!(destroyed.code == Some(0) || destroyed.stderr.contains("-refresh=false"), "{}", destroyed.stderr);
        workspace.run_ok(&["destroy", "-no-color", "-auto-approve", "-refresh=false"]);
        assert!(site.live().is_empty());
    });
}

#[test]
fn a_server_that_hardly_fits_is_a_warning_and_settles() {
    each_served(|_, workspace| {
        let server = Server::new();
        workspace.apply_ok(&server.config());
        // The small model has 136 bytes of cache for a token, and 128 of copies; a batch needs 1,024 for each.
        let tight = server.clone().set("context_size", 18_700_000);
        workspace.write(&tight.config());
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "Model tiny.gguf needs 96 % of the GPU memory"), "{said:#?}");
        assert!(says(&said, Severity::Warning, "stays below 95 %."), "{said:#?}");
        workspace.apply_ok(&tight.config());
        assert!(!workspace.try_plan(&[]).iter().any(|said| said.text().contains("GPU memory")), "nothing is planned");
        workspace.write(&server.model("large").config());
        refusal(&workspace.try_plan(&[]), &["large.gguf does not fit in GPU memory"]);
        workspace.write(&tight.config());
        workspace.finish();
    });
}

/// Another port is another server, and the old one is stopped before the new one is tried.
#[test]
fn a_replaced_server_is_warned_of_as_a_new_one() {
    each_served(|_, workspace| {
        let server = Server::new().text("host", "127.0.0.1");
        workspace.apply_ok(&server.config());
        let moved = server.set("port", 8001);
        workspace.write(&moved.clone().text("host", "0.0.0.0").set("context_size", 18_700_000).config());
        let said = workspace.try_plan(&[]);
        for words in [
            "The replacement stops the llama server first",
            "Change other arguments in an apply of their own before.",
            "The llama server has no API key",
            "Model tiny.gguf needs 96 % of the GPU memory",
        ] {
            assert!(says(&said, Severity::Warning, words), "{words}: {said:#?}");
        }
        assert!(!says(&said, Severity::Warning, "is not pinned"), "the state has pinned it: {said:#?}");
        workspace.write(&moved.clone().text("instance_id", "ins-nowhere").config());
        let said = workspace.try_plan(&[]);
        let missing = said.iter().filter(|said| said.text().contains("the instance does not exist in this account"));
        assert_eq!(missing.count(), 1, "{said:#?}");
        refusal(&said, &["ins-nowhere", "was not stopped", "terraform destroy -refresh=false"]);
        assert_eq!(workspace.plan_and_apply_ok(&moved.config()).change(X).actions(), "delete, create");
        workspace.finish();
    });
}

/// Terraform repeats the plan inside its apply. From 1.9 on the two differ on the wire.
#[test]
fn an_apply_repeats_no_warning_of_its_plan() {
    each_served(|_, workspace| {
        let server = Server::new().text("host", "0.0.0.0");
        let expected = if workspace.cli.has(9, u64::MAX) { 1 } else { 2 };
        let large = server.clone().set("context_size", 18_700_000).config();
        let both = ["The llama server has no API key", "Model tiny.gguf needs 96 %"];
        // With a new instance, then an update, then a new server on an instance that was there, whose plan logs in too.
        let machine = config(&server.machine);
        for (config, warnings) in [(server.config(), 1), (large.clone(), 2), (machine, 0), (large, 2)] {
            workspace.write(&config);
            let (done, said) = workspace.try_apply(&[]);
            for warning in &both[..warnings] {
                let count = said.iter().filter(|said| said.summary.starts_with(warning)).count();
                assert_eq!((done, count), (true, expected), "{said:#?}");
            }
        }
        workspace.finish();
    });
}

/// A specification without a GPU was chosen: that the server uses none is no news, and no GPU has to have room.
#[test]
fn a_server_of_an_instance_without_a_gpu_is_no_warning() {
    each_served(|_, workspace| {
        let processor =
            |machine: Instance| machine.text("region", "cn-north-2").set("spec_id", 203).set("image_id", 901);
        let server = Server::new().text("host", "127.0.0.1").on(processor);
        workspace.apply_ok(&config(&server.machine));
        workspace.write(&server.config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && said.iter().all(|said| said.summary.contains("is not pinned")), "{said:#?}");
        workspace.finish();
    });
}

/// The plan logs in to read the model, the apply to start the server, whose state pins the key from then on.
#[test]
fn a_first_login_of_a_plan_warns_about_the_host_key_and_that_of_a_create_does_not() {
    each_served(|_, workspace| {
        workspace.apply_ok(&config(&Server::new().machine));
        workspace.write(&Server::new().config());
        let unpinned = |said: &[Diagnostic]| said.iter().filter(|said| said.summary.contains("is not pinned")).count();
        let said = workspace.try_plan(&[]);
        assert_eq!(unpinned(&said), 1, "{said:#?}");
        assert!(says(&said, Severity::Warning, "this text: ssh-"), "{said:#?}");
        let (done, said) = workspace.try_apply(&[]);
        assert!(done && unpinned(&said) == 1, "that of its plan: {said:#?}");
        assert_eq!(unpinned(&workspace.try_plan(&[])), 0, "the state has pinned it");
        // Without its checks the plan does not log in: only the create does, and then a data source without the key.
        let read = "data \"damodel_model\" \"m\" {\n  path = damodel_llama_server.x.model\n  instance_id = \
                    damodel_instance.gpu.id\n}\n";
        let all = |more: &str| format!("{}{more}", Server::new());
        // In an apply that makes the instance too, only the second plan can check.
        for (config, warnings) in
            [(unchecked(all("")), 0), (unchecked(all(read)), 1), (config(all("")), 0), (config(all(read)), 1)]
        {
            workspace.destroy_ok();
            workspace.write(&config);
            let (done, said) = workspace.try_apply(&[]);
            assert!(done && unpinned(&said) == warnings, "{said:#?}");
        }
        workspace.write(&Server::new().config());
        workspace.destroy_ok();
    });
}

/// The login sends the service's password to a host without a pinned key, also if a later step fails.
#[test]
fn a_login_that_leads_to_nothing_warns_about_the_host_key_too() {
    each_served(|_, workspace| {
        let server = Server::new();
        let machine = config(&server.machine);
        workspace.apply_ok(&machine);
        let unpinned = |said: &[Diagnostic]| said.iter().filter(|said| said.summary.contains("is not pinned")).count();
        workspace.write(&server.text("model", "~/tinny.gguf").config());
        let said = workspace.try_plan(&[]);
        assert_eq!(unpinned(&said), 1, "{said:#?}");
        assert!(says(&said, Severity::Warning, "The model is not in the instance"), "{said:#?}");
        let nearest = "The nearest files are: ~/public-storage/model/tiny.gguf, ~/";
        assert!(says(&said, Severity::Warning, nearest), "{said:#?}");
        workspace.write(&Server::new().text("model", "~/public-storage/model/tinny.gguf").config());
        let said = workspace.try_plan(&[]);
        let place = said.iter().find(|said| said.summary == "The model is not in the instance").unwrap();
        assert_eq!(place.detail.matches("/tiny.gguf").count(), 1, "each file once: {said:#?}");
        assert!(!says(&said, Severity::Warning, "is not checked"), "{said:#?}");
        // A refused password has been sent too. A server without a GPU has no memory to check, but a login.
        let refused = Server::new().set("ssh", "{ password = \"wrong\" }");
        for server in [refused.clone(), refused.set("gpu_layers", 0)] {
            workspace.write(&server.config());
            let said = workspace.try_plan(&[]);
            assert_eq!(unpinned(&said), 1, "{said:#?}");
            assert!(says(&said, Severity::Warning, "this text: ssh-"), "{said:#?}");
        }
        for read in [
            "data \"damodel_model\" \"m\" {\n  path = \"~/missing.gguf\"\n  instance_id = \
             damodel_instance.gpu.id\n}\n",
            "data \"damodel_chat_completion\" \"c\" {\n  target = \"llama_server\"\n  llama_server_id = \
             \"${damodel_instance.gpu.id}:9\"\n  model = \"any\"\n  messages = [{ role = \"user\", content = \"a\" \
             }]\n}\n",
        ] {
            workspace.write(&format!("{machine}{read}"));
            let said = workspace.try_plan(&[]);
            assert!(unpinned(&said) == 1 && said.iter().any(Diagnostic::is_error), "{said:#?}");
            assert!(says(&said, Severity::Warning, "this text: ssh-"), "{said:#?}");
        }
        workspace.write(&machine);
        workspace.finish();
    });
}
