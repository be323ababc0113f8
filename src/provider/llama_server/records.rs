//! What is kept beside the state: nothing of it is secret.

use crate::framework::Private;

const OWNER: &str = "owner";
const FINGERPRINT: &str = "settings";
const BASTION: &str = "bastion_host_key";
const BASTION_ADDRESS: &str = "bastion_address";
const IMPORTED: &str = "imported";

/// The notes of a server in its private data.
pub(super) trait Records {
    /// The token by which the instance knows this resource; empty where it has none.
    fn owner(&self) -> String;
    /// The same, and a new one where there is none.
    fn own(&mut self) -> String;
    /// Notes the token of the server that is imported: who imports it owns it too.
    fn note_owner(&mut self, owner: &str);
    /// The settings with which it was started last, as the program in the instance tells them apart.
    fn settings(&self) -> Option<String>;
    /// Notes the settings of a job that the instance has accepted. From now on all about it is known.
    fn note_settings(&mut self, settings: &str);
    /// Notes that it was imported: with which key it runs, nobody here knows.
    fn note_import(&mut self);
    /// Whether it was, and no apply has confirmed it since.
    fn is_imported(&self) -> bool;
    /// The host key that the bastion at this address showed last: that of another one says nothing about it.
    fn bastion(&self, address: &str) -> Option<String>;
    /// Notes the bastion's address and its host key; none where the way there has no bastion.
    fn note_bastion(&mut self, seen: Option<(String, String)>);
}

impl Records for Private {
    fn owner(&self) -> String {
        self.entry(OWNER).unwrap_or_default()
    }

    fn own(&mut self) -> String {
        if self.owner().is_empty() {
            self.note_owner(&format!("{:032x}", rand::random::<u128>()));
        }
        self.owner()
    }

    fn note_owner(&mut self, owner: &str) {
        self.insert(OWNER, owner);
    }

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

    fn bastion(&self, address: &str) -> Option<String> {
        // Notes of before have no address: they are of the bastion that is configured, as far as anyone knows.
        let seen_at: Option<String> = self.entry(BASTION_ADDRESS);
        self.entry(BASTION).filter(|_| seen_at.is_none_or(|seen_at| seen_at == address))
    }

    fn note_bastion(&mut self, seen: Option<(String, String)>) {
        match seen {
            Some((address, key)) => {
                self.insert(BASTION_ADDRESS, address);
                self.insert(BASTION, key);
            }
            None => {
                self.remove(BASTION_ADDRESS);
                self.remove(BASTION);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_one_bastion_is_none_of_another() {
        let mut private = Private::default();
        private.note_bastion(Some(("a:22".to_owned(), "key".to_owned())));
        assert_eq!((private.bastion("a:22").as_deref(), private.bastion("b:22")), (Some("key"), None));
        private.note_bastion(None);
        assert_eq!((private.bastion("a:22"), private), (None, Private::default()));
    }

    #[test]
    fn a_note_without_an_address_goes_on_being_read() {
        let mut private = Private::default();
        private.insert(BASTION, "key");
        assert_eq!(private.bastion("a:22").as_deref(), Some("key"));
        private.note_bastion(Some(("a:22".to_owned(), "key".to_owned())));
        assert_eq!(private.bastion("b:22"), None);
    }
}
