//! Models that the instance downloads.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink};

use damodel::sandbox::FileService;

use super::{
    Server, X, each_served, home, make_machine, pid,
    plain::{Host, config as plain_config, workspace},
    runs, servers, site, slay, state_folder, until,
};
use crate::{
    acceptance::secrets::{leaks, leaks_below},
    support::{
        terraform::{Severity, Site, Started, Workspace, each_cli, refusal, says},
        tls_front::TlsFront,
    },
};

const MODEL: &str = "~/models/m.gguf";

/// A server whose model comes from an address.
fn from(address: &str, more: &str) -> Server {
    Server::new().text("model", MODEL).set("model_source", format!("{{ url = {address:?}, {more} }}"))
}

fn address(site: &Site, file: &str) -> String {
    format!("{}/files/{file}", site.base_url())
}

/// Serves the files in this way; the requests before are forgotten.
fn serve(site: &Site, files: FileService) {
    site.sandbox().set_files(FileService { padding: 2_000_000, ..files });
    site.sandbox().take_file_requests();
}

fn transfers(site: &Site) -> Vec<String> {
    let requests = site.sandbox().take_file_requests().into_iter().map(|request| request.range);
    requests.filter(|range| range.ends_with('-')).collect()
}

fn timeout(what: &str, limit: &str) -> String {
    format!("  timeouts {{\n    {what} = {limit:?}\n  }}")
}

/// A real sshd, HTTPS, and a root certificate that only the instance's store has.
#[test]
fn a_model_comes_over_https_by_curl_and_by_python() {
    each_cli(|cli| {
        let site = Site::start();
        let front = TlsFront::before(site.base_url());
        let folder = tempfile::tempdir().unwrap();
        let (root, tools) = (folder.path().join("root.pem"), folder.path().join("tools"));
        fs::create_dir(&tools).unwrap();
        for entry in fs::read_dir("/usr/bin").unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != "curl") {
            symlink(entry.path(), tools.join(entry.file_name())).unwrap();
        }
        for path in ["", &format!("PATH=${{PATH%%:*}}:{}:/bin/none; export PATH", tools.display())] {
            fs::write(&root, "").unwrap();
            let trust = format!("SSL_CERT_FILE='{}'; export SSL_CERT_FILE", root.display());
            let Some(host) = Host::with(&[path, &trust]) else { return };
            let workspace = workspace(cli, &site);
            serve(&site, FileService { is_linked: true, ..FileService::default() });
            let source = format!("{{ url = \"{}/files/tiny.gguf\" }}", front.url);
            let server = host.server().text("model", MODEL).set("model_source", source);
            workspace.write(&plain_config(&server));
            let (done, said) = workspace.try_apply(&[]);
            refusal(&said, &["the download failed", "is not trusted", "was not started"]);
            assert!(!done && workspace.state().addresses().is_empty());
            fs::write(&root, &front.pem).unwrap();
            // Killed at half, as the work is; what the hub has changes meanwhile.
            serve(&site, FileService { stall_after: Some(500_000), ..FileService::default() });
            let started = Started::apply(&workspace);
            let part = host.sshd.home().join(format!(
                "models/m.gguf.{}.part",
                state_folder(&host.sshd.home().join("workspace"), host.port).file_name().unwrap().display()
            ));
            until("half of it is there", || fs::metadata(&part).is_ok_and(|data| data.len() == 500_000));
            started.kill();
            started.ended(true);
            assert!(workspace.state().addresses().is_empty());
            serve(&site, FileService { is_linked: true, version: 1, ..FileService::default() });
            workspace.apply_ok(&plain_config(&server));
            assert_eq!(workspace.state().resource(X).value("process.model_verified"), true);
            let model = fs::read(host.sshd.home().join("models/m.gguf")).unwrap();
            assert!(model.ends_with(&[1; 1_000_000]) && !part.exists());
            workspace.destroy_ok();
            assert!(host.sshd.home().join("models/m.gguf").exists());
        }
    });
}

#[test]
fn an_address_may_change_only_with_the_path_or_with_a_sum() {
    each_served(|site, workspace| {
        serve(site, FileService::default());
        let (own, other) = (address(site, "tiny.gguf"), address(site, "tiny.gguf?other"));
        workspace.apply_ok(&from(&own, "").config());
        let model = fs::read(home(site).join("models/m.gguf")).unwrap();
        let sum = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&model));
        let first = pid(&workspace.state());
        assert_eq!(workspace.state().resource(X).value("process.model_verified"), false);
        workspace.write(&from(&other, "").config());
        let error = workspace.try_plan(&[]);
        let words = ["Another address for the same file", "set sha256", "terraform destroy -refresh=false"];
        assert_eq!(refusal(&error, &words).attribute.as_deref(), Some("model_source"), "{error:#?}");
        // An address that is unknown in the plan.
        let unknown = format!("resource \"terraform_data\" \"x\" {{\n  input = {other:?}\n}}\n");
        let source = "{ url = terraform_data.x.output }";
        let server = from(&own, "").set("model_source", source).set("context_size", 1024);
        workspace.write(&format!("{}{unknown}", server.config()));
        let (done, said) = workspace.try_apply(&[]);
        refusal(&said, &words);
        assert!(!done && runs(first));
        // A sum alone is taken by the next start; with it, another address is the same file; neither is needed.
        let with_sum = |address: &str| from(address, &format!("sha256 = {:?}", sum.to_uppercase()));
        serve(site, FileService { status: Some(404), ..FileService::default() });
        for server in [with_sum(&own), with_sum(&other), Server::new().text("model", MODEL)] {
            workspace.apply_ok(&server.config());
            assert_eq!(pid(&workspace.state()), first);
        }
        // A restart needs no hub. With the sum it verifies the file.
        workspace.apply_ok(&with_sum(&own).set("context_size", 2048).config());
        let state = workspace.state();
        assert_eq!((state.resource(X).value("process.model_verified"), pid(&state) == first), (&true.into(), false));
        let wrong = from(&own, &format!("sha256 = {:?}", "a".repeat(64))).set("context_size", 4096);
        workspace.write(&wrong.config());
        let (_, said) = workspace.try_apply(&[]);
        refusal(&said, &["wrong SHA-256", &sum, &"a".repeat(64), "was not stopped"]);
        assert!(runs(pid(&state)) && site.sandbox().take_file_requests().is_empty());
        workspace.write(&with_sum(&own).set("context_size", 2048).config());
        workspace.finish();
    });
}

/// A projector beside the model is what the model is: it comes before the previous server ends.
#[test]
fn a_projector_comes_with_its_server_and_stays_without_it() {
    each_served(|site, workspace| {
        serve(site, FileService::default());
        let plain = Server::new();
        workspace.apply_ok(&plain.config());
        let (first, file) = (pid(&workspace.state()), home(site).join("workspace/p.gguf"));
        let with = |url: &str, more: &str| {
            let files = format!("[{{ path = \"~/workspace/p.gguf\", url = {url:?}, {more} }}]");
            Server::new().set("extra_args", "[\"--mmproj\", \"p.gguf\"]").set("additional_files", files)
        };
        workspace.write(&with(&address(site, "large.gguf"), "").config());
        let words = "Files beside the model are counted by their weights alone: p.gguf.";
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, words), "{said:#?}");
        let (own, other) = (address(site, "tiny.gguf?key=planted"), address(site, "tiny.gguf?other"));
        for (url, sha256, title) in
            [(&own, "a", "wrong SHA-256"), (&address(site, "nothing.gguf"), "", "no file at the address")]
        {
            let sum = if sha256.is_empty() { String::new() } else { format!("sha256 = {:?}", sha256.repeat(64)) };
            workspace.write(&with(url, &sum).config());
            let (done, said) = workspace.try_apply(&[]);
            let error = refusal(&said, &[title, "was not stopped and still serves"]);
            assert_eq!(error.attribute.as_deref(), Some("additional_files"), "{error:#?}");
            assert!(!done && runs(first) && !file.exists() && !error.text().contains("planted"), "{error:#?}");
            // The plan has seen the address.
            let words = "nothing.gguf answered 404";
            assert_eq!(says(&said, Severity::Warning, words), sha256.is_empty(), "{said:#?}");
        }
        // Killed at half.
        serve(site, FileService { stall_after: Some(500_000), ..FileService::default() });
        workspace.write(&with(&own, "").config());
        let started = Started::apply(workspace);
        let state = state_folder(&home(site).join("workspace"), 8000);
        let part = home(site).join(format!("workspace/p.gguf.{}.part", state.file_name().unwrap().display()));
        until("half of it is there", || fs::metadata(&part).is_ok_and(|data| data.len() == 500_000));
        started.kill();
        started.ended(true);
        assert!(runs(first));
        serve(site, FileService::default());
        workspace.apply_ok(&with(&own, "").config());
        let second = pid(&workspace.state());
        assert_eq!((transfers(site), second == first), (vec!["bytes=500000-".to_owned()], false));
        assert!(file.exists() && !part.exists());
        // Another address, and the same file by its sum.
        workspace.write(&with(&other, "").config());
        let error = workspace.try_plan(&[]);
        refusal(&error, &["Another address for the same file", "additional_files[0].path"]);
        let sum = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(fs::read(&file).unwrap()));
        for url in [&own, &other] {
            workspace.apply_ok(&with(url, &format!("sha256 = {sum:?}")).config());
            assert_eq!(pid(&workspace.state()), second);
        }
        // A path that is unknown in the plan may be the same.
        let path = "resource \"terraform_data\" \"x\" {\n  input = \"~/workspace/p.gguf\"\n}\n";
        let unknown = with(&other, &format!("sha256 = {sum:?}")).config();
        let unknown = unknown.replace("path = \"~/workspace/p.gguf\"", "path = terraform_data.x.output");
        workspace.apply_ok(&format!("{unknown}{path}"));
        assert_eq!(pid(&workspace.state()), second);
        // A file that has vanished is drift, as the model is.
        fs::remove_file(&file).unwrap();
        serve(site, FileService::default());
        workspace.apply_ok(&with(&other, &format!("sha256 = {sum:?}")).config());
        let third = pid(&workspace.state());
        assert_eq!((transfers(site), third == second, file.exists()), (vec!["bytes=0-".to_owned()], false, true));
        workspace.apply_ok(&plain.config());
        assert!(pid(&workspace.state()) != third && file.exists());
        workspace.finish();
    });
}

/// What cannot be downloaded leaves no state of a create, and the next create continues what is there.
#[test]
fn a_create_whose_download_fails_or_takes_too_long_is_continued() {
    each_served(|site, workspace| {
        make_machine(workspace);
        let server = from(&address(site, "tiny.gguf"), "");
        serve(site, FileService { token: Some("t".to_owned()), ..FileService::default() });
        workspace.write(&server.config());
        let (done, said) = workspace.try_apply(&[]);
        let words = ["the download needs permission", "Accept the terms", "DAMODEL_MODEL_TOKEN"];
        assert_eq!(refusal(&said, &words).attribute.as_deref(), Some("model_source"));
        assert!(!done && workspace.state().find(X).is_none());
        // The address is seen by the plan already.
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "A file cannot be downloaded"), "{said:#?}");

        serve(site, FileService { stall_after: Some(500_000), ..FileService::default() });
        workspace.write(&server.clone().block(&timeout("create", "10s")).config());
        let (done, said) = workspace.try_apply(&[]);
        let last = "Last seen: downloading (500.00 kB of 2.16 MB,";
        refusal(&said, &["timed out", last, "the next apply resumes it"]);
        assert!(!done && workspace.state().find(X).is_none());
        serve(site, FileService::default());
        workspace.apply_ok(&server.config());
        assert_eq!((transfers(site), servers(site).len()), (vec!["bytes=500000-".to_owned()], 1));
        workspace.finish();
    });
}

/// An update whose download is under way ends nothing, and neither does an apply of the previous configuration.
#[test]
fn a_download_that_is_given_up_leaves_the_previous_server() {
    each_served(|site, workspace| {
        let before = Server::new();
        workspace.apply_ok(&before.config());
        let first = pid(&workspace.state());
        let after = from(&address(site, "tiny.gguf"), "");
        for (status, title) in [(404, "no file at the address"), (403, "needs permission")] {
            serve(site, FileService { status: Some(status), ..FileService::default() });
            workspace.write(&from(&address(site, "tiny.gguf?key=planted"), "").config());
            let (done, said) = workspace.try_apply(&[]);
            let answered = format!("{} answered {status}", address(site, "tiny.gguf"));
            let error = refusal(&said, &[title, &answered, "was not stopped and still serves"]);
            assert!(!done && runs(first));
            for words in ["The end of the log", "The log is", "was kept", "planted"] {
                assert!(!error.text().contains(words), "{words}: {error:#?}");
            }
            assert_eq!(error.text().contains("Accept the terms"), status == 403, "{error:#?}");
            assert!(says(&said, Severity::Warning, &answered), "the plan: {said:#?}");
        }
        // A pace is no refusal, and the plan does not wait for it.
        serve(site, FileService { status: Some(429), retry_after: Some(3600), ..FileService::default() });
        let said = workspace.try_plan(&[]);
        assert!(says(&said, Severity::Warning, "it limits the number of requests"), "{said:#?}");
        workspace.apply_ok(&before.config());

        serve(site, FileService { stall_after: Some(500_000), ..FileService::default() });
        workspace.write(&after.clone().block(&timeout("update", "10s")).config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "downloading ("), "{said:#?}");
        // A refresh sees the server that serves.
        let state = workspace.state();
        assert_eq!(state.resource(X).value("model"), "~/public-storage/model/tiny.gguf");
        workspace.write(&before.config());
        workspace.settled();
        assert!(runs(first));
        // A change that restarts nothing takes the previous server, and ends the download.
        workspace.apply_ok(&before.set("probe", "{ max_tokens = 2 }").config());
        assert_eq!(pid(&workspace.state()), first);
        // It is started again by itself, also while a download goes on.
        workspace.write(&after.clone().block(&timeout("update", "10s")).config());
        assert!(!workspace.try_apply(&[]).0);
        slay(first);
        until("it is started again", || servers(site).len() == 1);
        serve(site, FileService::default());
        workspace.apply_ok(&after.config());
        assert_eq!(servers(site).len(), 1);
        workspace.finish();
    });
}

/// The download of an update whose apply ran out of time ends soon after it, and its server replaces the previous one:
/// the address in the state is not the one of the model that a refresh finds.
#[test]
fn an_update_that_ended_after_its_apply_is_taken_by_the_next() {
    each_served(|site, workspace| {
        let of = |name: &str| {
            let address = address(site, &format!("tiny.gguf?{name}"));
            from(&address, "").text("model", &format!("~/models/{name}.gguf"))
        };
        serve(site, FileService::default());
        workspace.apply_ok(&of("a").config());
        let first = pid(&workspace.state());
        serve(site, FileService { stall_after: Some(500_000), ..FileService::default() });
        let after = of("b");
        workspace.write(&after.clone().block(&timeout("update", "10s")).config());
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done && says(&said, Severity::Error, "the next apply resumes it"), "{said:#?}");
        serve(site, FileService::default());
        until("the downloaded model is served", || !runs(first) && servers(site).len() == 1);
        workspace.apply_ok(&after.config());
        assert_eq!(servers(site).len(), 1);
        workspace.finish();
    });
}

/// What does not fit is told before it is downloaded, and for a new instance in the apply.
#[test]
fn a_model_that_does_not_fit_is_not_downloaded() {
    each_served(|site, workspace| {
        serve(site, FileService::default());
        let server = from(&address(site, "large.gguf"), "");
        workspace.write(&server.config());
        let (done, said) = workspace.try_apply(&[]);
        // The plan inside the apply may come before the instance accepts logins.
        let fits = "m.gguf does not fit in GPU memory";
        if !says(&said, Severity::Error, fits) {
            refusal(&said, &["no room for the download"]);
        }
        assert!(!done && workspace.state().find(X).is_none());
        let said = workspace.try_plan(&[]);
        assert_eq!(refusal(&said, &[fits]).attribute.as_deref(), Some("model"));
        assert_eq!(transfers(site), [""; 0]);
        // What cannot be read here may be read by the instance.
        workspace.write(&from("http://127.0.0.1:1/m.gguf", "").config());
        assert!(says(&workspace.try_plan(&[]), Severity::Warning, "Memory of the server is not checked"));
        workspace.apply_ok(&from(&address(site, "tiny.gguf"), "").config());
        workspace.finish();
    });
}

#[test]
fn a_token_reaches_the_hub_and_nothing_else() {
    const TOKEN: &str = "planted-hub-token-7d21";
    each_cli(|cli| {
        if !cli.has(11, 11) {
            return;
        }
        let site = site();
        let workspace = Workspace::with_program(cli, &site);
        workspace.set_env("TF_LOG", "TRACE");
        workspace.set_env("TF_LOG_PATH", &workspace.beside("trace.log").display().to_string());
        workspace.set_env("TF_VAR_token", TOKEN);
        // For another hub.
        workspace.set_env("DAMODEL_MODEL_TOKEN", "planted-token-of-another-hub");
        let variable = "variable \"token\" {\n  type = string\n  ephemeral = true\n}\n";
        serve(&site, FileService { token: Some(TOKEN.to_owned()), ..FileService::default() });
        let server = from(&address(&site, "tiny.gguf"), "");
        workspace.write(&server.config());
        refusal(&workspace.try_apply(&[]).1, &["the download needs permission"]);
        assert!(site.sandbox().take_file_requests().iter().all(|request| !request.has_token));
        let elsewhere = address(&site, "tiny.gguf?direct").replace("127.0.0.1", "localhost");
        let same = address(&site, "tiny.gguf?same");
        let file = |name: &str, url: &str| format!("{{ path = \"~/models/{name}.gguf\", url = {url:?} }}");
        let files = format!("[{}, {}]", file("elsewhere", &elsewhere), file("same", &same));
        let with = server.set("model_source_token_wo", "var.token").set("additional_files", files);
        workspace.apply_ok(&format!("{}{variable}", with.config()));
        let requests = site.sandbox().take_file_requests();
        let is_elsewhere = |address: &str| address.ends_with("?direct");
        let is_right = |(address, has_token): (&str, bool)| has_token != is_elsewhere(address);
        assert!(requests.iter().all(|request| is_right((&request.address, request.has_token))), "{requests:#?}");
        for end in ["tiny.gguf", "?same", "?direct"] {
            assert!(requests.iter().any(|request| request.address.ends_with(end)), "{requests:#?}");
        }
        let secrets = BTreeSet::from([TOKEN.to_owned(), "planted-token-of-another-hub".to_owned()]);
        let mut found = leaks_below(&workspace.directory(), &[], &secrets);
        found.extend(leaks("printed", workspace.transcript().as_bytes(), &secrets));
        found.extend(leaks("logged", &fs::read(workspace.beside("trace.log")).unwrap(), &secrets));
        found.extend(leaks_below(&home(&site).join("workspace"), &[], &secrets));
        found.extend(leaks_below(&home(&site).join("models"), &[], &secrets));
        assert_eq!(found, Vec::<String>::new());
        workspace.write(&format!("{}{variable}", with.config()));
        workspace.finish();
    });
}
