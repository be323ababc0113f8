//! A secret that the sandbox must be able to write into its state file and into answers.

use std::fmt;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// A secret of the simulated service. It serializes in clear (state file, answers), and prints as nothing.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(String);

impl Secret {
    pub(super) fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn to_secret_string(&self) -> SecretString {
        SecretString::from(self.0.clone())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
