//! The output of `pending` about creates of an ended run, on the sandbox.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use clap::Parser;
use damodel::{
    api::{
        BaseUrl, Client, Context, CreateCloudDisk, CreateInstance, ImageSelector, Instance, PlainHttp, Settings,
        SpecSelector, TokenSource,
    },
    commands::{
        Failure,
        pending::{Arguments, run_to},
    },
    creation::{Accepted, Journal},
    provider::Environment,
    sandbox::{Mutation, Options, StateList},
};
use nix::unistd::{User, getuid};
use secrecy::ExposeSecret;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::hostile::{HOSTILE, harmless};
use crate::{
    sandbox::client::Site,
    support::{create::create, plugin::BINARY, terraform::Run},
};

/// A folder with the pending record of one create, and a service with the created object.
struct Scene {
    site: Site,
    folder: TempDir,
}

impl Scene {
    async fn set() -> Self {
        Self { site: Site::start(Options::default()).await, folder: tempfile::tempdir().unwrap() }
    }

    /// Creates an instance, up to the point where Terraform would get the answer.
    async fn create(&self) -> Accepted<Instance> {
        let client = self.client();
        let image = ImageSelector::Public(902);
        let request = CreateInstance {
            name: Some("web".to_owned()),
            ..CreateInstance::new("cn-east-1".to_owned(), SpecSelector::Id(103), 1, image)
        };
        let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
        let journal = Journal::new(self.folder.path());
        create(&client, request, &journal, &context).await.unwrap()
    }

    fn client(&self) -> Client {
        Client::new(Settings {
            base_url: Some(BaseUrl::parse(&self.site.running.base_url, PlainHttp::LoopbackOnly).unwrap()),
            token: Some(TokenSource::Value(self.site.running.token.clone())),
            ..Settings::default()
        })
    }

    /// The output of the command with this service.
    async fn says(&self, more: &[&str]) -> Result<String, Failure> {
        let running = &self.site.running;
        self.says_with(&running.base_url, running.token.expose_secret(), more).await
    }

    /// The output of the command, without variables of the environment.
    async fn says_with(&self, base_url: &str, token: &str, more: &[&str]) -> Result<String, Failure> {
        let dir = self.folder.path().to_str().unwrap();
        let known = ["pending", "--pending-dir", dir, "--base-url", base_url];
        let arguments = Arguments::try_parse_from([&known, more].concat()).unwrap();
        let mut out = Vec::new();
        let environment = Environment::made_of([("DAMODEL_API_TOKEN", token)], PathBuf::new());
        run_to(arguments, &environment, &mut out).await?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// The name of the only pending record.
    fn entry(&self) -> String {
        let notes = fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().file_name());
        let notes = notes.map(|name| name.into_string().unwrap()).filter(|name| !name.starts_with("run-"));
        let [note] = notes.collect::<Vec<_>>().try_into().unwrap();
        note.split('.').next().unwrap().to_owned()
    }

    /// Removes the answer from the pending record, as if it had not arrived.
    fn forget_the_answer(&self) {
        self.edit_note(|note| {
            note["phase"] = "sent".into();
            note["ids"] = Value::Null;
        });
    }

    /// Sets the age of the pending record, in seconds.
    fn set_age(&self, age: i64) {
        let now = jiff::Timestamp::now().as_second();
        self.edit_note(|note| note["begun_at"] = (now - age).into());
    }

    fn edit_note(&self, edit: impl FnOnce(&mut Value)) {
        let path = self.folder.path().join(format!("{}.json", self.entry()));
        let mut note: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        edit(&mut note);
        fs::write(&path, note.to_string()).unwrap();
    }

    /// Checks whether a record whose object the service does not show is said to be young: who forgets it removes the
    /// only trace of what may be billed.
    async fn is_young(&self, is_young: bool) {
        let said = self.says(&[]).await.unwrap();
        assert_eq!(said.contains("it may not be shown yet"), is_young, "{said}");
        assert_eq!(said.contains("--forget"), !is_young, "{said}");
        assert!(!is_young || !said.contains("nothing is billed"), "{said}");
    }

    fn mutate(&self, mutation: Mutation) {
        self.site.running.sandbox.mutate(mutation).unwrap();
    }
}

#[tokio::test]
async fn nothing_is_pending_where_nothing_was_created() {
    let scene = Scene::set().await;
    let said = scene.says(&[]).await.unwrap();
    assert_eq!(said, format!("Nothing is pending in {}.\n", scene.folder.path().display()));
}

#[tokio::test]
async fn names_and_statuses_do_not_change_the_terminal() {
    let scene = Scene::set().await;
    let uid = scene.create().await.made.uid.to_string();
    let fields = serde_json::json!({ "alias": HOSTILE });
    scene.site.running.sandbox.set(StateList::Instances, &uid, &fields).unwrap();
    scene.mutate(Mutation::SetInstanceStatus { uid: uid.clone(), status: HOSTILE.to_owned() });
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains(&uid) && said.contains("planted"), "{said}");
    harmless(&["pending"], &said);
}

#[tokio::test]
async fn white_space_around_the_token_and_the_address_is_ignored() {
    let scene = Scene::set().await;
    scene.create().await;
    scene.forget_the_answer();
    let running = &scene.site.running;
    let (base_url, token) = (format!("{}\n", running.base_url), format!("{}\r\n", running.token.expose_secret()));
    let is_age = |word: &str| word.trim_end_matches('s').parse::<u64>().is_ok();
    let ageless = |said: String| said.split_whitespace().filter(|word| !is_age(word)).collect::<String>();
    let plain = ageless(scene.says(&[]).await.unwrap());
    assert_eq!(ageless(scene.says_with(&base_url, &token, &[]).await.unwrap()), plain);
    let error = scene.says_with(&base_url, "planted\nline", &[]).await.unwrap_err().to_string();
    assert!(
        error.contains("DAMODEL_API_TOKEN") && error.contains("line break") && !error.contains("planted"),
        "{error}"
    );
}

/// As cron and systemd start programs.
#[test]
fn without_the_variable_the_home_is_that_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(BINARY);
    command.args(["pending", "--pending-dir", "~/damodel-none"]).current_dir(folder.path()).env_remove("HOME");
    let run = Run::of(command.output().unwrap());
    let home = User::from_uid(getuid()).unwrap().unwrap().dir;
    assert!(run.stderr.contains(&format!("at {}/damodel-none.", home.display())), "{}", run.stderr);
}

#[tokio::test]
async fn a_cloud_disk_of_a_killed_run_is_asked_for_too() {
    let scene = Scene::set().await;
    let request = CreateCloudDisk { name: Some("data".to_owned()), ..CreateCloudDisk::new(20, 31) };
    let context = Context::within(Duration::from_secs(60), &CancellationToken::new());
    let journal = Journal::new(scene.folder.path());
    let accepted = create(&scene.client(), request, &journal, &context).await.unwrap();
    let (id, name) = (accepted.made.id, accepted.sent_name.clone());
    drop((accepted, journal));
    let said = scene.says(&[]).await.unwrap();
    for part in [name.as_str(), &id.to_string(), "apply the same configuration"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    scene.mutate(Mutation::ReleaseDisk { id });
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("nothing is billed"), "{said}");
}

#[tokio::test]
async fn an_accepted_create_of_a_killed_run_is_shown_until_it_is_gone() {
    let scene = Scene::set().await;
    let accepted = scene.create().await;
    let (uid, name) = (accepted.made.uid.to_string(), accepted.sent_name.clone());
    drop(accepted);
    let entry = scene.entry();

    let said = scene.says(&[]).await.unwrap();
    let (is_advised, release) = ("address is not in the state yet", format!("release {uid}"));
    for part in [entry.as_str(), "instance", &name, "accepted", &uid, "Creating", is_advised, &release] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    scene.mutate(Mutation::ReleaseInstance { uid });
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("Released") && said.contains(&format!("pending --forget {entry}")), "{said}");
    let said = scene.says(&["--forget", &entry]).await.unwrap();
    assert_eq!(said, format!("Removed record {entry} ({name}): Released.\n"));
    assert!(scene.says(&[]).await.unwrap().starts_with("Nothing is pending"));
    let refused = scene.says(&["--forget", &entry]).await.unwrap_err();
    assert!(refused.to_string().starts_with("no pending record "), "{refused}");
}

#[tokio::test]
async fn an_accepted_object_that_is_not_shown_may_be_too_young() {
    let scene = Scene::set().await;
    let uid = scene.create().await.made.uid.to_string();
    scene.mutate(Mutation::RemoveInstance { uid });
    scene.is_young(true).await;
    scene.set_age(590);
    scene.is_young(true).await;
    scene.set_age(601);
    scene.is_young(false).await;
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("nothing is billed"), "{said}");
}

#[tokio::test]
async fn a_create_without_an_answer_is_found_by_the_name_that_was_sent() {
    let scene = Scene::set().await;
    let accepted = scene.create().await;
    let uid = accepted.made.uid.to_string();
    drop(accepted);
    scene.forget_the_answer();
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("sent") && said.contains(&uid) && said.contains("Creating"), "{said}");

    scene.mutate(Mutation::RemoveInstance { uid: uid.clone() });
    for (acknowledged, age, is_young) in [
        (false, 0, true),
        (false, 110, true),
        (true, 121, true),
        (true, 590, true),
        (false, -9000, true),
        (true, 601, false),
    ] {
        scene.edit_note(|note| note["acknowledged"] = acknowledged.into());
        scene.set_age(age);
        scene.is_young(is_young).await;
    }
    scene.edit_note(|note| note["acknowledged"] = false.into());
    scene.set_age(121);
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("no object has its name") && !said.contains(&uid), "{said}");
}

#[tokio::test]
async fn what_was_answered_to_the_core_can_be_imported() {
    let scene = Scene::set().await;
    let accepted = scene.create().await;
    let uid = accepted.made.uid.to_string();
    accepted.entry.finish().unwrap();
    let said = scene.says(&[]).await.unwrap();
    for command in ["terraform import damodel_instance.<name>", "terraform-provider-damodel release"] {
        assert!(said.contains("finished") && said.contains(&format!("{command} {uid}")), "{said}");
    }
}

#[tokio::test]
async fn what_a_run_is_at_is_left_to_it() {
    let scene = Scene::set().await;
    let accepted = scene.create().await;
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("in progress") && said.contains("a run is working on it"), "{said}");
    let refused = scene.says(&["--forget", &scene.entry()]).await.unwrap_err();
    assert!(refused.to_string().contains(" is kept: "), "{refused}");
    drop(accepted);
}

#[tokio::test]
async fn what_cannot_be_asked_is_told_and_forgotten_when_asked() {
    let scene = Scene::set().await;
    drop(scene.create().await);
    let entry = scene.entry();
    let here = scene.site.running.base_url.as_str();
    for (base_url, token, reason) in [
        ("", "", "not checked"),
        (here, "another", "with another token"),
        ("https://elsewhere.example", "another", "to another base address"),
    ] {
        let said = scene.says_with(base_url, token, &[]).await.unwrap();
        assert!(said.contains(reason) && said.contains("run this again with the address and token"), "{said}");
    }
    let said = scene.says_with("", "", &["--forget", &entry]).await.unwrap();
    assert!(said.starts_with("Removed record"), "{said}");
}

#[tokio::test]
async fn a_certificate_file_is_read_as_by_the_provider() {
    let scene = Scene::set().await;
    drop(scene.create().await);
    let refused = scene.says(&["--ca-certificate-file", "missing.pem"]).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot read missing.pem");
    let file = scene.folder.path().join("broken.pem");
    fs::write(&file, [0x30, 0x82, 1, 2]).unwrap();
    let refused = scene.says(&["--ca-certificate-file", file.to_str().unwrap()]).await.unwrap_err();
    assert!(refused.to_string().contains("contains no line -----BEGIN CERTIFICATE-----"), "{refused}");
    fs::write(&file, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
    // The client gets it, and its error is shown with advice.
    let said = scene.says(&["--ca-certificate-file", file.to_str().unwrap()]).await.unwrap();
    assert!(said.contains("could not be built") && said.contains("can be reached"), "{said}");
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_named() {
    let scene = Scene::set().await;
    fs::write(scene.folder.path().join("instance-1.json"), "{\"version\": 99}").unwrap();
    let said = scene.says(&[]).await.unwrap();
    assert!(said.contains("its format is 99, and this program reads 1. The record was not removed."), "{said}");
}

/// As a user runs it: in the folder of the configuration, with Terraform's data directory there or elsewhere.
#[tokio::test]
async fn the_notes_are_where_the_provider_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().canonicalize().unwrap();
    for (variables, directory) in [
        (vec![], ".terraform/damodel-pending"),
        (vec![("TF_DATA_DIR", "data"), ("DAMODEL_PENDING_DIR", "")], "data/damodel-pending"),
        (vec![("TF_DATA_DIR", "data"), ("DAMODEL_PENDING_DIR", "notes")], "notes"),
        (vec![("DAMODEL_PENDING_DIR", "~/of me/notes")], "of me/notes"),
    ] {
        let is_named = variables.iter().any(|(name, value)| *name == "DAMODEL_PENDING_DIR" && !value.is_empty());
        let directory = here.join(directory);
        let directory = directory.display();
        let said = pending(&here, &variables);
        // A named directory that does not exist is an error.
        if is_named {
            assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""));
            assert!(
                said.stderr.starts_with(&format!("error: no pending directory at {directory}. ")),
                "{}",
                said.stderr
            );
        } else {
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            assert!(said.stdout.starts_with(&format!("No pending directory at {directory}: ")), "{}", said.stdout);
        }
        fs::create_dir_all(directory.to_string()).unwrap();
        let said = pending(&here, &variables);
        assert_eq!(said.stdout, format!("Nothing is pending in {directory}.\n"), "{}", said.stderr);
    }
}

/// Runs the command in a folder that is the home directory too.
fn pending(folder: &Path, variables: &[(&str, &str)]) -> Run {
    let mut command = Command::new(BINARY);
    for name in ["TF_DATA_DIR", "DAMODEL_PENDING_DIR", "DAMODEL_BASE_URL", "DAMODEL_API_TOKEN"] {
        command.env_remove(name);
    }
    command.arg("pending").env("HOME", folder).envs(variables.iter().copied()).current_dir(folder);
    Run::of(command.output().unwrap())
}
