//! The judge of a life: compares the state and the output with the ledger.

use std::collections::{BTreeMap, BTreeSet};

use damodel::{
    api::Code,
    sandbox::{LedgerObject, LifeEvent, LifeKind, Mutation, RequestEntry},
};
use serde_json::Value;

use super::{
    configuration::{Configuration, OnLeftover},
    disturbance::Aim,
    life::state_file,
};
use crate::support::terraform::{Diagnostic, Site, Workspace};

/// An object in the state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub(super) address: String,
    /// Its uid in the ledger.
    pub(super) uid: String,
    is_tainted: bool,
}

/// Why an object may have been left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excuse {
    /// The create was answered, and Terraform did not store it. A later create names it in an error, or in a warning if
    /// that is wanted.
    Answered,
    /// Its pending record was lost after this many events.
    Lost { events: usize },
    /// It was no unfinished create when the folder got another backend: creates there are silent about it.
    OtherBackend,
}

/// The history of a life so far.
#[derive(Debug)]
pub(super) struct Story {
    /// The seed's objects.
    seed: BTreeSet<String>,
    /// Whether a run uses another account's token.
    has_foreign: bool,
    /// Whether the alias has the main account's token in a run.
    has_alias: bool,
    /// The objects that may have been left behind, and why.
    excused: BTreeMap<String, Excuse>,
    /// The state before the run.
    held: Vec<Held>,
    aim: Aim,
    /// The requests and events before the run.
    requests: usize,
    events: usize,
    /// The runs that were broken at their moment.
    pub(super) hits: usize,
    /// How often the folder got another backend.
    pub(super) backends: usize,
}

/// The objects in the state.
pub(super) fn held(workspace: &Workspace<'_>) -> Vec<Held> {
    let state = state_file(workspace);
    let resources = state["resources"].as_array().cloned().unwrap_or_default();
    let each = resources.iter().filter(|resource| resource["mode"] == "managed").flat_map(|resource| {
        let whole = format!("{}.{}", resource["type"].as_str().unwrap(), resource["name"].as_str().unwrap());
        resource["instances"].as_array().unwrap().iter().filter_map(move |instance| {
            let key =
                if instance["index_key"].is_null() { String::new() } else { format!("[{}]", instance["index_key"]) };
            let attributes = &instance["attributes"];
            let uid = if attributes["uid"].is_string() { &attributes["uid"] } else { &attributes["id"] };
            Some(Held {
                address: format!("{whole}{key}"),
                uid: uid.as_str()?.to_owned(),
                is_tainted: instance["status"] == "tainted",
            })
        })
    });
    each.collect()
}

/// The output of all runs, without the frame of their JSON.
pub(super) fn digest(workspace: &Workspace<'_>) -> String {
    let message = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let detail = line["diagnostic"]["detail"].as_str().unwrap_or_default();
        Some(format!("{}  {}", line["@message"].as_str()?, detail.replace('\n', " ")))
    };
    let text = workspace.transcript();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.contains("development overrides"));
    lines.map(|line| message(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// All objects that exist.
fn live(site: &Site) -> BTreeSet<String> {
    let ledger = site.ledger();
    [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
        .into_iter()
        .flat_map(|object| ledger.live(object))
        .collect()
}

/// The part of a marker that identifies the configuration: four digits after the name.
fn key_of(name: &str) -> &str {
    name.rsplit('-').next().and_then(|marker| marker.get(..4)).unwrap_or(name)
}

/// Whether its create was answered with a refusal.
fn was_refused(requests: &[RequestEntry], uid: &str) -> bool {
    let refused = |request: &&RequestEntry| request.code_n.is_some_and(|code| code != Code::InternalError.number());
    requests.iter().filter(refused).any(|request| request.created.iter().any(|created| created == uid))
}

impl Story {
    pub(super) fn begin(site: &Site, has_foreign: bool, has_alias: bool) -> Self {
        let seed = live(site);
        Self {
            seed,
            has_foreign,
            has_alias,
            excused: BTreeMap::new(),
            held: Vec::new(),
            aim: Aim::Apply,
            requests: 0,
            events: 0,
            hits: 0,
            backends: 0,
        }
    }

    pub(super) fn run_begins(&mut self, workspace: &Workspace<'_>, aim: Aim) {
        self.held = held(workspace);
        self.aim = aim;
        let ledger = workspace.site.ledger();
        (self.requests, self.events) = (ledger.requests.len(), ledger.life.len());
    }

    /// Checks the releases of a run, and excuses objects whose answers were not stored.
    pub(super) fn run_ends(&mut self, workspace: &Workspace<'_>, said: &str, is_broken: bool) {
        let ledger = workspace.site.ledger();
        let any_replaced = self.held.iter().any(|held| held.is_tainted);
        for request in ledger.requests.iter().skip(self.requests) {
            for uid in &request.released {
                // The state of a disk whose create was interrupted has its database id alone.
                let names = self.names(workspace.site, uid);
                let before = self.held.iter().find(|held| names.contains(&held.uid));
                // The dependents of a replaced resource are replaced with it.
                let is_asked = self.aim != Aim::Apply || any_replaced;
                assert!(
                    before.is_some() && is_asked,
                    "{uid} was released, and nobody asked for it: {before:?}\n{said}"
                );
            }
        }
        // The provider of a killed Terraform may answer a create when the next run has begun.
        let older: BTreeSet<&str> = ledger.life.iter().take(self.events).map(|event| event.uid.as_str()).collect();
        for uid in self.answered_and_not_kept(workspace) {
            if is_broken || older.contains(uid.as_str()) {
                self.excused.entry(uid).or_insert(Excuse::Answered);
            }
        }
    }

    fn answered_and_not_kept(&self, workspace: &Workspace<'_>) -> Vec<String> {
        let (held, life) = (held(workspace), workspace.site.ledger().life);
        let answered = workspace.notes().into_iter().filter(|note| note.phase() == "finished");
        let uids = answered.filter_map(|note| {
            let marker = note.content["marker"].as_str()?.to_owned();
            let is_birth = |event: &&LifeEvent| event.kind == LifeKind::Created && event.name == marker;
            life.iter().rfind(is_birth).map(|event| event.uid.clone())
        });
        uids.filter(|uid| held.iter().all(|held| held.uid != *uid)).collect()
    }

    /// Excuses the objects outside the state when `.terraform` is lost.
    pub(super) fn data_is_lost(&mut self, workspace: &Workspace<'_>) {
        let events = workspace.site.ledger().life.len();
        for uid in self.outside(workspace) {
            self.excused.insert(uid, Excuse::Lost { events });
        }
    }

    /// Excuses the objects outside the state when the folder gets another backend, but for unfinished creates whose
    /// objects still have the marker: the next run adopts them.
    pub(super) fn backend_changes(&mut self, workspace: &Workspace<'_>) {
        self.backends += 1;
        let unfinished: BTreeSet<String> = workspace
            .notes()
            .iter()
            .filter(|note| note.phase() != "finished")
            .filter_map(|note| Some(note.content["marker"].as_str()?.to_owned()))
            .collect();
        for uid in self.outside(workspace) {
            let is_unfinished = self.names(workspace.site, &uid).iter().any(|name| unfinished.contains(name));
            if !is_unfinished || self.is_renamed(workspace.site, &uid) {
                self.excused.insert(uid, Excuse::OtherBackend);
            }
        }
    }

    /// The objects outside the state. Each is visible by the time of the next run.
    fn outside(&self, workspace: &Workspace<'_>) -> Vec<String> {
        let held = held(workspace);
        let is_outside = |uid: &&String| held.iter().all(|held| held.uid != **uid);
        let outside: Vec<String> = live(workspace.site).difference(&self.seed).filter(is_outside).cloned().collect();
        for uid in &outside {
            workspace.site.mutate(Mutation::Hide { uid: uid.clone(), reads: 0 });
        }
        outside
    }

    /// Whether this service has it in another account than the one that its resource names.
    pub(super) fn is_foreign(&self, workspace: &Workspace<'_>, site: &Site, held: &Held) -> bool {
        let state = state_file(workspace);
        let resources = state["resources"].as_array().cloned().unwrap_or_default();
        let is_aliased = resources.iter().any(|resource| {
            let whole = format!("{}.{}", resource["type"].as_str().unwrap(), resource["name"].as_str().unwrap());
            (held.address == whole || held.address.starts_with(&format!("{whole}[")))
                && resource["provider"].as_str().is_some_and(|provider| provider.ends_with(".other"))
        });
        let is_own = site.base_url() == workspace.site.base_url();
        let strays = |event: &LifeEvent| !is_own || is_aliased != (event.account == "other");
        site.ledger().life.iter().any(|event| event.uid == held.uid && strays(event))
    }

    /// Compares the end of a life with the ledger. `said` is the output of the last runs.
    pub(super) fn judge(&self, workspace: &Workspace<'_>, wanted: &Configuration, said: &[Diagnostic]) {
        let site = workspace.site;
        let (held, ledger) = (held(workspace), site.ledger());
        let account = |uid: &str| {
            ledger.life.iter().find(|event| event.uid == uid).map(|event| (event.object, event.account == "other"))
        };
        let tell = || format!("{self:#?}\n{}", digest(workspace));
        assert!(held.iter().all(|held| !held.is_tainted), "{held:#?}\n{}", tell());
        let addresses: BTreeSet<&str> = held.iter().map(|held| held.address.as_str()).collect();
        let all = wanted.addresses();
        assert_eq!(addresses, all.iter().map(String::as_str).collect(), "{}", tell());
        let uids: BTreeSet<&String> = held.iter().map(|held| &held.uid).collect();
        assert_eq!(uids.len(), held.len(), "one object at two addresses: {held:#?}\n{}", tell());

        let live = live(site);
        // A deleted image leaves no record, and for five minutes its absence proves nothing.
        let is_late = |uid: &str| {
            matches!(account(uid), Some((LedgerObject::PrivateImage, _)))
                && said.iter().any(|said| said.text().contains("not visible yet"))
        };
        let is_there = |uid: &&String| live.contains(*uid) || is_late(uid);
        assert!(uids.iter().all(is_there), "the state holds what is gone: {held:#?}\n{}", tell());
        for (object, is_other) in [LedgerObject::Instance, LedgerObject::CloudDisk, LedgerObject::PrivateImage]
            .map(|object| [(object, false), (object, true)])
            .concat()
        {
            let count = uids.iter().filter(|uid| account(uid) == Some((object, is_other))).count();
            assert_eq!(
                count,
                wanted.wanted(object, is_other),
                "{object:?} of the {} account\n{}",
                if is_other { "other" } else { "main" },
                tell()
            );
        }
        let words: String = said.iter().map(Diagnostic::text).collect();
        for uid in live.difference(&self.seed).filter(|uid| !uids.contains(uid)) {
            let names = self.names(site, uid);
            let object = account(uid);
            let is_refused = was_refused(&ledger.requests, uid);
            // A text about many records names the first ones.
            let is_told = names.iter().any(|name| words.contains(name)) || words.contains("\n- and ");
            let may_be_foreign =
                object.is_some_and(|(_, is_other)| if is_other { self.has_foreign } else { self.has_alias });
            let is_excused = match self.excused.get(uid) {
                // A warning named it, and another one was created. One whose creation failed is no machine that a
                // create could take: it stops none.
                Some(Excuse::Answered) => {
                    let is_failed = |event: &LifeEvent| event.uid == *uid && event.kind == LifeKind::Failed;
                    let is_warned = wanted.on_leftover == OnLeftover::Warn;
                    is_warned || may_be_foreign || ledger.life.iter().any(is_failed)
                }
                // If leftovers are errors, no later create with its key was sent. Other configurations do not adopt it:
                // it was created in this account by mistake, with its token.
                Some(Excuse::Lost { events }) => {
                    let born = ledger.life.iter().find(|event| event.uid == *uid && event.kind == LifeKind::Created);
                    let key = born.map(|event| key_of(&event.name));
                    let of_its_kind = |event: &&LifeEvent| {
                        event.kind == LifeKind::Created
                            && Some((event.object, event.account == "other")) == object
                            && Some(key_of(&event.name)) == key
                    };
                    // With the other account's token, a create of the main account has adopted it.
                    let is_told_apart = wanted.on_leftover == OnLeftover::Warn
                        || self.is_renamed(site, uid)
                        || (may_be_foreign && is_told);
                    is_told_apart || !ledger.life.iter().skip(*events).any(|event| of_its_kind(&event))
                }
                Some(Excuse::OtherBackend) => true,
                None if may_be_foreign => true,
                // According to the answer, nothing was created, and the same create went on with its next candidate.
                None => is_refused && (wanted.on_leftover == OnLeftover::Warn || wanted.has_choice()),
            };
            assert!(is_excused, "{names:?} was left behind, or made twice\n{}", tell());
            // If the record is lost or the create refused, only the marker remains: a create that finds it warns.
            let is_unknowable = is_refused || self.excused.contains_key(uid);
            assert!(is_told || is_unknowable, "{names:?} lives and no run says so: {said:#?}\n{}", tell());
        }
        self.judge_secrets(workspace);
    }

    /// Compares the objects after the destroy with the excused ones.
    pub(super) fn judge_end(&self, workspace: &Workspace<'_>) {
        assert_eq!(held(workspace), [], "{}", digest(workspace));
        let ledger = workspace.site.ledger();
        let is_other = |uid: &str| ledger.life.iter().any(|event| event.uid == uid && event.account == "other");
        let may_be_foreign = |uid: &str| if is_other(uid) { self.has_foreign } else { self.has_alias };
        for uid in live(workspace.site).difference(&self.seed) {
            assert!(
                self.excused.contains_key(uid) || may_be_foreign(uid) || was_refused(&ledger.requests, uid),
                "{uid} is left after the destroy\n{}",
                workspace.transcript()
            );
        }
        self.judge_secrets(workspace);
    }

    fn judge_secrets(&self, workspace: &Workspace<'_>) {
        let transcript = workspace.transcript();
        for secret in workspace.site.secrets() {
            assert!(!transcript.contains(&secret), "a secret is in an output");
        }
    }

    /// Its names in texts: its uid, its database id, and the name of the create.
    fn names(&self, site: &Site, uid: &str) -> Vec<String> {
        let state = site.sandbox().state();
        let disks = state["disks"].as_array().unwrap();
        let id = disks.iter().find(|disk| disk["uid"] == uid).map(|disk| disk["id"].to_string());
        let life = site.ledger().life;
        let marker = life
            .iter()
            .find(|event| event.uid == uid && event.kind == LifeKind::Created)
            .map(|event| event.name.clone());
        [Some(uid.to_owned()), id, marker].into_iter().flatten().collect()
    }

    /// Whether it has its final name, which has no marker.
    fn is_renamed(&self, site: &Site, uid: &str) -> bool {
        site.ledger().life.iter().any(|event| event.uid == uid && event.kind == LifeKind::Renamed)
    }
}
