//! Runs of Terraform as a journal sees them, one after the other: what an earlier run left behind is reported once a
//! run.

use std::{fs, path::PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Journal, Listed, Phase};
use crate::api::error::Error;

/// The file that names the last run. It is no record, so its name does not end like one.
const FILE: &str = "last-run";

/// The last run that was seen here.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    core: Option<String>,
    began_at: i64,
}

impl Journal {
    /// The records that earlier runs left and no run has resumed: creates whose process is gone, and objects that
    /// were answered to Terraform and that a whole run since has not found in the state. Empty when this run was told
    /// already.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn left_behind(&self) -> Result<Vec<Listed>, Error> {
        // Read here, before anything waits for the files.
        drop(self.read()?);
        let entries = self.list()?.entries;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let last = self.last_run();
        if last.as_ref().is_some_and(|last| last.core.is_some() && last.core.as_deref() == self.core()) {
            return Ok(Vec::new());
        }
        self.begin_run();
        let is_passed_over = |listed: &Listed| {
            let record = &listed.record;
            last.as_ref().is_some_and(|last| record.updated_at < last.began_at && record.core != last.core)
        };
        let is_left = |listed: &Listed| match listed.record.phase {
            Phase::Sent | Phase::Accepted => !listed.owner_lives && !listed.record.refused,
            Phase::HandedOver => is_passed_over(listed),
        };
        Ok(entries.into_iter().filter(is_left).collect())
    }

    fn last_run(&self) -> Option<Run> {
        serde_json::from_slice(&fs::read(self.run_file()).ok()?).ok()
    }

    /// Without the file the same is told again, which harms nothing.
    fn begin_run(&self) {
        let run = Run { core: self.core().map(str::to_owned), began_at: Timestamp::now().as_second() };
        let written = serde_json::to_vec(&run).map_err(Into::into).and_then(|text| fs::write(self.run_file(), text));
        if let Err(error) = written {
            tracing::debug!(%error, "the run could not be noted");
        }
    }

    fn run_file(&self) -> PathBuf {
        self.directory().join(FILE)
    }
}
