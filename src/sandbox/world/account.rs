//! Accounts, and what they may do.

use serde::{Deserialize, Serialize};

use crate::sandbox::secret::Secret;

/// An account of the service (service API, Authentication).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Account {
    pub(in crate::sandbox) name: String,
    /// X-Service-Token.
    pub(in crate::sandbox) token: Secret,
    /// Further tokens that are valid too, oldest first.
    #[serde(default)]
    pub(in crate::sandbox) further_tokens: Vec<Secret>,
    /// The bearer key of the chat endpoint.
    pub(in crate::sandbox) chat_key: Secret,
    /// What the main account can still spend.
    pub(in crate::sandbox) balance: f64,
    /// Whether the main account has real-name certification.
    pub(in crate::sandbox) certified: bool,
    /// Whether the account or its risk state forbids creating instances.
    pub(in crate::sandbox) at_risk: bool,
    /// Whether cloud disk operations and storage specification queries are permitted.
    pub(in crate::sandbox) may_use_disks: bool,
    /// Whether private images may be renamed and deleted.
    #[serde(default = "permitted")]
    pub(in crate::sandbox) may_use_images: bool,
    #[serde(default)]
    pub(in crate::sandbox) saves: Saves,
}

impl Account {
    /// Whether this is one of its tokens.
    pub(in crate::sandbox) fn accepts(&self, token: &str) -> bool {
        [&self.token].into_iter().chain(&self.further_tokens).any(|known| known.reveal() == token)
    }

    /// Makes a token invalid; the oldest further one takes the place of the first. False when it is no token of the
    /// account, or its last.
    pub(in crate::sandbox) fn revoke(&mut self, token: &str) -> bool {
        if let Some(index) = self.further_tokens.iter().position(|known| known.reveal() == token) {
            self.further_tokens.remove(index);
            return true;
        }
        if self.token.reveal() != token || self.further_tokens.is_empty() {
            return false;
        }
        self.token = self.further_tokens.remove(0);
        true
    }
}

/// The image saves of an account that were accepted, as the limits count them (service API, Limits).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Saves {
    /// When the last one was accepted.
    last_ms: Option<i64>,
    /// How many there were on the day of the last one.
    on_last_day: u32,
}

impl Saves {
    /// Whether the last one is less than this long ago.
    pub(in crate::sandbox) fn is_busy(&self, now_ms: i64, window_ms: i64) -> bool {
        self.last_ms.is_some_and(|last_ms| now_ms.saturating_sub(last_ms) < window_ms)
    }

    /// How many there were today. A day begins at midnight UTC here.
    pub(in crate::sandbox) fn today(&self, now_ms: i64) -> u32 {
        let is_today = self.last_ms.is_some_and(|last_ms| day(last_ms) == day(now_ms));
        if is_today { self.on_last_day } else { 0 }
    }

    pub(in crate::sandbox) fn count(&mut self, now_ms: i64) {
        self.on_last_day = self.today(now_ms).saturating_add(1);
        self.last_ms = Some(now_ms);
    }
}

fn day(ms: i64) -> i64 {
    ms.div_euclid(86_400_000)
}

fn permitted() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_until_it_is_revoked() {
        let mut account = Account {
            name: "main".to_owned(),
            token: Secret::new("first"),
            further_tokens: vec![Secret::new("second"), Secret::new("third")],
            chat_key: Secret::new("key"),
            balance: 0.0,
            certified: true,
            at_risk: false,
            may_use_disks: true,
            may_use_images: true,
            saves: Saves::default(),
        };
        assert!(["first", "second", "third"].iter().all(|token| account.accepts(token)));
        assert!(account.revoke("third") && account.revoke("first") && !account.revoke("first"));
        assert_eq!(
            [account.accepts("first"), account.accepts("second"), account.accepts("third")],
            [false, true, false]
        );
        assert!(!account.revoke("second"), "an account keeps one token");
    }
}
