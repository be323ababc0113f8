//! A life: disturbed runs, followed by the runs with which an operator repairs everything.

use std::{collections::BTreeSet, fs, time::Duration};

use damodel::sandbox::{FaultAction, LedgerObject, Options, When};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;

use super::{
    configuration::{Configuration, SPECS},
    disturbance::{Aim, Break, Disturbance, Moment, Token},
    judge::{Held, Story, digest, held},
};
use crate::support::terraform::{Cli, Diagnostic, Site, Started, Workspace};

const ADDRESS: &str = "DAMODEL_BASE_URL";
const TOKEN: &str = "DAMODEL_API_TOKEN";
const TOKEN_OF_ALIAS: &str = "TF_VAR_other";
/// How long a disturbed run may take before its operator ends it.
const PATIENCE: Duration = Duration::from_secs(8);
/// The most applies that an operator tries at the end.
const APPLIES: usize = 8;
/// More GPUs than any life needs.
const STOCK: i64 = 64;

/// A life.
#[derive(Clone, Debug)]
pub(super) struct Life {
    seed: u64,
    configuration: Configuration,
    disturbances: Vec<Disturbance>,
    /// Whether everything is destroyed at the end.
    ends: bool,
}

impl Life {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let configuration = Configuration::random(&mut random);
        let runs = random.random_range(2..=5);
        let disturbances = (0..runs).map(|number| Disturbance::random(&mut random, number == 0)).collect();
        Self { seed, configuration, disturbances, ends: random.random_bool(0.3) }
    }

    /// Lives it. Returns how many runs were broken at their moment, and how many were to be.
    pub(super) fn live(&self, cli: &Cli) -> (usize, usize) {
        let options = Options { creation: Duration::from_millis(300), seed: self.seed, ..Site::options() };
        let site = Site::with(options);
        let workspace = Workspace::with_program(cli, &site);
        workspace.set_env(TOKEN_OF_ALIAS, &site.token_of("other"));
        workspace.write(&self.configuration.hcl());
        let has = |token| self.disturbances.iter().any(|it| it.token == token);
        let mut story = Story::begin(&site, has(Token::Foreign), has(Token::Alias));
        // The sandboxes count alike: numbers are the same in both, and uids are not.
        let elsewhere = has(Token::Elsewhere)
            .then(|| Site::with(Options { creation: Duration::from_millis(300), seed: !self.seed, ..Site::options() }));
        for disturbance in &self.disturbances {
            let elsewhere = elsewhere.as_ref().filter(|_| disturbance.token == Token::Elsewhere);
            self.disturbed(&workspace, elsewhere.unwrap_or(&site), disturbance, &mut story);
        }
        workspace.set_env(TOKEN, site.token());
        let said = self.put_right(&workspace, &mut story);
        story.judge(&workspace, &self.configuration, &said);
        if self.ends {
            let (done, said) = workspace.try_destroy();
            assert!(done, "{said:#?}");
            story.judge_end(&workspace);
        }
        (story.hits, self.disturbances.iter().filter(|it| it.breaks != Break::None).count())
    }

    /// A disturbed run, at this service.
    fn disturbed(&self, workspace: &Workspace<'_>, site: &Site, disturbance: &Disturbance, story: &mut Story) {
        match disturbance.token {
            Token::Alias => workspace.set_env(TOKEN_OF_ALIAS, site.token()),
            Token::Elsewhere => {
                workspace.set_env(ADDRESS, site.base_url());
                workspace.set_env(TOKEN, site.token());
                workspace.set_env(TOKEN_OF_ALIAS, &site.token_of("other"));
            }
            Token::Foreign => workspace.set_env(TOKEN, &site.token_of("other")),
            Token::Rotated => workspace.set_env(TOKEN, &site.rotated_token()),
            Token::Same => {}
        }
        let addresses = self.configuration.addresses();
        let one = |number: usize| addresses[number % addresses.len()].clone();
        let parallelism = format!("-parallelism={}", disturbance.parallelism);
        let mut arguments = vec![parallelism, "-lock=false".to_owned()];
        match disturbance.aim {
            Aim::Apply => {}
            Aim::Destroy => arguments.push("-destroy".to_owned()),
            Aim::Replace(number) => arguments.push(format!("-replace={}", one(number))),
            Aim::Taint(number) => {
                workspace.run(&["taint", "-lock=false", "-allow-missing", &one(number)]);
            }
        }
        story.run_begins(workspace, disturbance.aim);
        for (endpoint, when, action) in &disturbance.faults {
            site.arm(endpoint, *when, action.clone());
        }
        if let Moment::Arrived { processed, .. } = disturbance.moment {
            for endpoint in ["instance_create", "cloud_disk_create", "image_save"] {
                site.arm(endpoint, When::Always, FaultAction::Hang { limit_ms: 120_000, processed });
            }
        }
        if matches!(disturbance.moment, Moment::Accepted(_)) {
            site.stick();
        }
        if let Some(left) = disturbance.sold_out_after {
            stock(site, left);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut started = Started::apply_with(workspace, &arguments);
        self.broken(workspace, site, disturbance, &mut started, story);
        let said = started.ended(disturbance.is_patient());
        restore_cut_state(workspace);
        site.sandbox().clear_faults();
        site.unstick();
        stock(site, STOCK);
        age_what_was_never_made(workspace);
        story.run_ends(workspace, &said, disturbance.breaks != Break::None);
        if disturbance.token.strays() {
            self.undo_foreign(workspace, site, story);
            workspace.set_env(ADDRESS, workspace.site.base_url());
            workspace.set_env(TOKEN, workspace.site.token());
            workspace.set_env(TOKEN_OF_ALIAS, &workspace.site.token_of("other"));
        }
        if disturbance.loses_data {
            story.data_is_lost(workspace);
            workspace.lose_data_directory();
        }
        if disturbance.changes_backend {
            story.backend_changes(workspace);
        }
        if story.backends > 0 && (disturbance.loses_data || disturbance.changes_backend) {
            self.initialize(workspace, story.backends);
        }
    }

    /// Initializes the folder with its backend of this number. Each names the same state file in another way.
    fn initialize(&self, workspace: &Workspace<'_>, backend: usize) {
        let path = format!("{}terraform.tfstate", "./".repeat(backend));
        let block = format!("terraform {{\n  backend \"local\" {{\n    path = {path:?}\n  }}\n}}\n");
        workspace.write(&(self.configuration.hcl() + &block));
        // Terraform empties a state file that it takes for the former backend's.
        let file = workspace.directory().join("terraform.tfstate");
        let state = fs::read(&file).ok();
        // The backend comes first; the provider, which is not in a registry, comes from the development override.
        workspace.run(&["init", "-reconfigure", "-no-color", "-input=false"]);
        let stored = fs::read_to_string(workspace.directory().join(".terraform/terraform.tfstate")).unwrap();
        assert!(stored.contains(&format!("{path:?}")), "{stored}");
        if let Some(state) = state {
            fs::write(file, state).unwrap();
        }
    }

    /// Breaks a run at its moment. A run that does not end is interrupted, twice, and killed.
    fn broken(
        &self,
        workspace: &Workspace<'_>,
        site: &Site,
        disturbance: &Disturbance,
        started: &mut Started<'_>,
        story: &mut Story,
    ) {
        let before = site.ledger().requests.len();
        // More creates than resources never arrive.
        let resources = self.configuration.addresses().len();
        let has_come = || match disturbance.moment {
            Moment::Accepted(count) => {
                let count = count.min(resources);
                workspace.notes().iter().filter(|note| note.phase() == "accepted").count() >= count
            }
            Moment::Arrived { creates, .. } => {
                let ledger = site.ledger();
                let requests = ledger.requests.iter().skip(before);
                let is_create = |name: &str| name.ends_with("_create") || name == "image_save";
                requests.filter(|request| request.endpoint.as_deref().is_some_and(is_create)).count()
                    >= creates.min(resources)
            }
            Moment::Requests(count) => site.ledger().requests.len() - before >= count,
        };
        if started.comes_within(PATIENCE, has_come) && disturbance.breaks != Break::None {
            story.hits += 1;
        }
        match disturbance.breaks {
            Break::Core => started.kill_core(),
            Break::Interrupt => started.interrupt(),
            Break::None => {}
            Break::Provider => started.kill_provider(),
            Break::Terminate => started.terminate(),
            Break::TwoInterrupts => {
                started.interrupt();
                // A signal that arrives before Terraform listens is lost.
                started.until_said("Interrupt received", PATIENCE);
                started.interrupt();
            }
            Break::Unread => {
                started.freeze_core();
                site.sandbox().clear_faults();
                site.unstick();
                started.comes_within(PATIENCE, || workspace.notes().iter().any(|note| note.phase() == "finished"));
                started.kill_core();
            }
            Break::Whole => started.kill(),
        }
        // If nothing was killed, stuck objects are released from their wait: an operator looks and waits.
        if matches!(disturbance.breaks, Break::Core | Break::Unread | Break::Whole) {
            return;
        }
        if disturbance.breaks == Break::None || disturbance.breaks == Break::Provider {
            site.unstick();
        }
        for _ in 0..2 {
            if started.ends_within(PATIENCE) {
                return;
            }
            started.interrupt();
        }
        if !started.ends_within(PATIENCE) {
            started.kill();
        }
    }

    /// Destroys the objects that a run created in other accounts than those that the configuration names.
    fn undo_foreign(&self, workspace: &Workspace<'_>, site: &Site, story: &mut Story) {
        for _ in 0..3 {
            let foreign: Vec<Held> =
                held(workspace).into_iter().filter(|held| story.is_foreign(workspace, site, held)).collect();
            if foreign.is_empty() {
                return;
            }
            story.run_begins(workspace, Aim::Destroy);
            let targets: Vec<String> = foreign.iter().map(|held| format!("-target={}", held.address)).collect();
            let mut arguments = vec!["apply", "-json", "-auto-approve", "-input=false", "-destroy", "-lock=false"];
            arguments.extend(targets.iter().map(String::as_str));
            let run = workspace.run(&arguments);
            story.run_ends(workspace, &run.stdout, false);
        }
        assert!(held(workspace).iter().all(|held| !story.is_foreign(workspace, site, held)), "{}", digest(workspace));
    }

    /// Applies until it succeeds, and follows the advice of the errors. Returns the output of the last apply and of a
    /// plan after it.
    fn put_right(&self, workspace: &Workspace<'_>, story: &mut Story) -> Vec<Diagnostic> {
        let (mut named, mut failed) = (BTreeSet::new(), Vec::<String>::new());
        for _ in 0..APPLIES {
            story.run_begins(workspace, if failed.is_empty() { Aim::Apply } else { Aim::Replace(0) });
            let mut arguments = vec!["apply", "-json", "-auto-approve", "-input=false", "-lock=false"];
            arguments.extend(failed.iter().map(String::as_str));
            let run = workspace.run(&arguments);
            story.run_ends(workspace, &run.stdout, false);
            let said = Diagnostic::of_lines(&run.stdout);
            if run.code == Some(0) {
                let planned = workspace.try_plan(&["-lock=false"]);
                workspace.settled();
                return [said, planned].concat();
            }
            // The advice is to try again in a few minutes.
            if said.iter().any(|said| said.summary.contains("is not visible yet")) {
                workspace.made_long_ago();
            }
            // The advice for a failed instance is to replace it.
            let has_failed = |held: &&Held| {
                said.iter().any(|said| said.summary.ends_with("has failed") && said.summary.contains(&held.uid))
            };
            failed = held(workspace).iter().filter(has_failed).map(|it| format!("-replace={}", it.address)).collect();
            let mut imported = BTreeSet::new();
            for error in said.iter().filter(|said| said.is_error()) {
                // As the error says, its import is for a second time only.
                let is_first = named.insert((error.address.clone(), error.summary.clone()));
                if !(is_first && error.text().contains("apply once more")) {
                    import(workspace, error, &mut imported);
                }
            }
        }
        panic!("no apply succeeds\n{}", digest(workspace));
    }
}

/// Follows the advice of an error to import an object: the first one without an address.
fn import(workspace: &Workspace<'_>, error: &Diagnostic, imported: &mut BTreeSet<String>) {
    let text = error.text();
    let ids = text.split("terraform import ").skip(1).filter_map(|rest| rest.split_whitespace().nth(1));
    let mut ids = ids.map(|id| id.trim_end_matches(['.', ',', ';', '`', '"']).to_owned());
    let (Some(address), Some(id)) = (&error.address, ids.find(|id| !imported.contains(id))) else { return };
    workspace.run(&["import", "-no-color", "-input=false", "-lock=false", address, &id]);
    imported.insert(id);
}

/// Sets the number of free GPUs of each specification.
fn stock(site: &Site, stock: i64) {
    SPECS.iter().for_each(|spec| site.set_spec(*spec, None, Some(stock)));
}

/// Makes pending records older whose creates did not reach the main account: otherwise the next run waits for up to ten
/// minutes.
fn age_what_was_never_made(workspace: &Workspace<'_>) {
    let ledger = workspace.site.ledger();
    for mut note in workspace.notes().into_iter().filter(|note| note.phase() == "sent") {
        let is_image = note.content["kind"] == "private_image";
        let live = ledger.live(LedgerObject::PrivateImage);
        let is_made = ledger
            .life
            .iter()
            .filter(|event| event.account == "main")
            .any(|event| note.content["marker"] == event.name.as_str() && (!is_image || live.contains(&event.uid)));
        if !is_made {
            for moment in ["begun_at", "updated_at"] {
                note.content[moment] = (note.content[moment].as_i64().unwrap_or_default() - 900).into();
            }
            // Its run may have removed it by now.
            if note.path.exists() {
                fs::write(&note.path, note.content.to_string()).unwrap();
            }
        }
    }
}

/// Restores the backup of a state file that was being written when Terraform was killed: Terraform empties the file
/// first, and the next run reads an empty file as no state.
fn restore_cut_state(workspace: &Workspace<'_>) {
    let file = workspace.directory().join("terraform.tfstate");
    let backup = file.with_extension("tfstate.backup");
    if file.exists() && state_file(workspace).is_null() && backup.exists() {
        fs::copy(backup, file).unwrap();
    }
}

/// The state file; null if it is missing, or if Terraform was killed while it wrote.
pub(super) fn state_file(workspace: &Workspace<'_>) -> Value {
    let file = workspace.directory().join("terraform.tfstate");
    fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}
