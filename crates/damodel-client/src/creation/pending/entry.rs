//! One pending record that this run owns.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    CreatePhase, Journal, PendingRecord,
    files::{FINISHED, RECORD, failed, remove, store},
};
use crate::api::{AccountFingerprints, Error, Ids};

/// A create of this run. Dropping it keeps its file, and the next run's same create resumes it.
#[derive(Debug)]
pub struct Entry {
    /// Keeps the run's lock.
    journal: Journal,
    name: String,
    record: PendingRecord,
}

impl Entry {
    pub(super) fn new(journal: &Journal, name: String, record: PendingRecord) -> Self {
        Self { journal: journal.clone(), name, record }
    }

    /// The record in the file.
    #[must_use]
    pub fn record(&self) -> &PendingRecord {
        &self.record
    }

    /// Records that a request is about to be sent (again).
    ///
    /// # Errors
    /// A file that cannot be written: then nothing may be sent.
    pub(in crate::creation) fn sending(
        &mut self,
        account: &AccountFingerprints,
        candidate: Option<String>,
    ) -> Result<(), Error> {
        self.record.candidate = candidate;
        self.record.refused = false;
        self.record.account.clone_from(account);
        self.record.phase = CreatePhase::Sent;
        self.record.acknowledged = false;
        self.record.begun_at = Timestamp::now().as_second();
        self.store()
    }

    /// Records that the service refused the request, which created nothing.
    ///
    /// # Errors
    /// A file that cannot be written; the next run's same create then looks for the object first.
    pub(in crate::creation) fn refused(&mut self) -> Result<(), Error> {
        self.record.refused = true;
        self.store()
    }

    /// Records that the service accepted the request without returning an id.
    ///
    /// # Errors
    /// A file that cannot be written; the object may exist nevertheless.
    pub(in crate::creation) fn acknowledged(&mut self, request_id: Option<String>) -> Result<(), Error> {
        self.record.acknowledged = true;
        self.record.request_id = request_id;
        self.store()
    }

    /// Records the ids of the object, and the account in which it was seen.
    ///
    /// # Errors
    /// A file that cannot be written; the object exists nevertheless.
    pub(in crate::creation) fn accepted(
        &mut self,
        ids: Ids,
        account: &AccountFingerprints,
        request_id: Option<String>,
    ) -> Result<(), Error> {
        self.record.phase = CreatePhase::Accepted;
        self.record.ids = Some(ids);
        self.record.account.clone_from(account);
        self.record.request_id = request_id;
        self.store()
    }

    /// Records, directly before it happens, that the object is returned to Terraform: nothing adopts it any more. If
    /// that cannot be recorded, the record is removed.
    ///
    /// # Errors
    /// A file that can be neither renamed nor removed; the next run's same create would then adopt the object.
    pub fn finish(self) -> Result<(), Error> {
        let path = self.path(RECORD);
        match fs::rename(&path, self.path(FINISHED)) {
            Ok(()) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "a pending record could not be finished and is removed");
                remove(&path).map(drop)
            }
        }
    }

    /// Removes the record of a create that made nothing.
    ///
    /// # Errors
    /// A file that cannot be removed; the next run's same create then looks for the object first.
    pub fn discard(self) -> Result<(), Error> {
        remove(&self.path(RECORD)).map(drop)
    }

    pub(super) fn store(&mut self) -> Result<(), Error> {
        store(&self.path(RECORD), &mut self.record)
    }

    /// Takes over a record of a run that is gone. If several try, one succeeds; `false` for the others.
    pub(super) fn rename_from(&self, path: &Path) -> Result<bool, Error> {
        match fs::rename(path, self.path(RECORD)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(path, "rename", error)),
        }
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.journal.directory().join(format!("{}{ending}", self.name))
    }
}
