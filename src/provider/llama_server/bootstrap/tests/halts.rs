//! Points at which the program is halted: each record is written by a rename, and each rename can be such a point.

use std::{fs, process::Child};

use super::{
    super::Fingerprint,
    home::{Home, is_running, kill, until},
};

impl Home {
    /// Has the program halt before the rename of this number: each record is written by one.
    pub(super) fn halt_at(&self, rename: usize) {
        self.script(
            "bin/mv",
            "#!/bin/sh\nexec 3>>~/renames\nflock 3\necho >>~/renames\n\
             if [ \"$(wc -l <~/renames)\" -eq \"$(cat ~/halt)\" ]; then exec 3>&-; : >~/halted; \
             while [ -e ~/halt ]; do sleep 0.02; done; exit 1; fi\nexec 3>&-\nexec /bin/mv \"$@\"\n",
        );
        for file in ["renames", "halted"] {
            let _ = fs::remove_file(self.path(file));
        }
        fs::write(self.path("halt"), rename.to_string()).unwrap();
    }

    /// Waits until the program has halted, or this job has come to a server or to nothing: whether it has halted.
    pub(super) fn halts_before(&self, run: &mut Child, job: &Fingerprint) -> bool {
        let record = |name: &str| fs::read_to_string(self.record(name)).unwrap_or_default();
        until("it neither halts nor ends", || {
            if self.path("halted").exists() {
                return Some(true);
            }
            let (is_own, status) = (record("job").contains(&job.to_string()), record("status"));
            let is_over =
                ["load", "ready", "failed"].iter().any(|phase| status.contains(&format!("status_phase='{phase}'")));
            (is_own && is_over && run.try_wait().unwrap().is_some()).then_some(false)
        })
    }

    /// Lets what has halted go on, without the rename.
    pub(super) fn release(&self) {
        fs::remove_file(self.path("halt")).unwrap();
    }

    /// Kills the detached work, whether it has written itself down or not.
    pub(super) fn kill_works(&self) {
        let works = || -> Vec<u32> {
            let is_work = |words: &[String]| words.last().is_some_and(|word| word == "work");
            self.processes().into_iter().filter(|(_, words)| is_work(words)).map(|(pid, _)| pid).collect()
        };
        until("it lives", || {
            works().into_iter().for_each(|pid| kill(pid, "KILL"));
            works().into_iter().all(|pid| !is_running(pid)).then_some(())
        });
    }
}
