//! What is kept beside the state: nothing of it is secret.

use crate::framework::Private;

const FINGERPRINT: &str = "settings";
const BASTION: &str = "bastion_host_key";
const IMPORTED: &str = "imported";

/// The notes of a server in its private data.
pub(super) trait Records {
    /// The settings with which it was started last, as the program in the instance tells them apart.
    fn settings(&self) -> Option<String>;
    /// Notes the settings of a job that the instance has accepted. From now on all about it is known.
    fn note_settings(&mut self, settings: &str);
    /// Notes that it was imported: with which key it runs, nobody here knows.
    fn note_import(&mut self);
    /// Whether it was, and no apply has confirmed it since.
    fn is_imported(&self) -> bool;
    /// The bastion's host key that was seen last.
    fn bastion(&self) -> Option<String>;
    /// Notes the bastion's host key.
    fn note_bastion(&mut self, key: Option<String>);
}

impl Records for Private {
    fn settings(&self) -> Option<String> {
        self.entry(FINGERPRINT)
    }

    fn note_settings(&mut self, settings: &str) {
        self.insert(FINGERPRINT, settings);
        self.remove(IMPORTED);
    }

    fn note_import(&mut self) {
        self.insert(IMPORTED, true);
    }

    fn is_imported(&self) -> bool {
        self.entry(IMPORTED) == Some(true)
    }

    fn bastion(&self) -> Option<String> {
        self.entry(BASTION)
    }

    fn note_bastion(&mut self, key: Option<String>) {
        match key {
            Some(key) => self.insert(BASTION, key),
            None => self.remove(BASTION),
        }
    }
}
