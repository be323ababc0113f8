//! What the instance keeps of a job for whoever looks at it: it is handed back as it was given.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    fingerprint::Fingerprint,
    job::Build,
    report::{Failure, Kind},
    start::{self, Binary, Start, Supply},
};

/// A job that was begun. It holds no secret.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Record {
    /// The [`Fingerprint`], as it displays itself.
    pub(super) fingerprint: Option<String>,
    /// The word of the [`Build`].
    build: String,
    /// Why it is not the prebuilt one: the word of the [`Kind`], and its text.
    because: Option<(String, String)>,
    /// [`super::Prebuilt::hardware`].
    pub(super) hardware: Option<String>,
    /// The prebuilt server.
    pub(super) package: Option<String>,
    /// What is compiled, for people.
    pub(super) source: String,
    /// What is fetched or unpacked first, for people.
    pub(super) supply: String,
    /// What deserves a warning.
    pub(super) notes: Vec<String>,
    /// The flags that a server is given where it knows them.
    pub(super) flags: Vec<String>,
}

impl Record {
    /// That of a start.
    pub(super) fn of(start: &Start<'_>) -> Self {
        let (hardware, provided) = match start.binary {
            Binary::Prebuilt(prebuilt) => (&prebuilt.hardware, &prebuilt.provided),
            Binary::Source(recipe) => (&recipe.hardware, &recipe.source.provided),
        };
        let record = Self {
            fingerprint: Some(Fingerprint::of(start.job).to_string()),
            build: start.binary.build().as_str().to_owned(),
            because: start.because.map(|failure| (failure.kind.as_str().to_owned(), failure.text.clone())),
            hardware: Some(hardware.clone()).filter(|hardware| !hardware.is_empty()),
            supply: match provided.as_ref().map(|provided| &provided.from) {
                Some(Supply::Archive(archive)) => format!("the archive {archive} cannot be unpacked"),
                Some(Supply::Git { url, reference, commit, .. }) => {
                    format!("{url} at {reference} (commit {commit}) could not be fetched")
                }
                None => String::new(),
            },
            notes: start.login.note.iter().cloned().collect(),
            flags: start::flags(start.job).into_iter().map(str::to_owned).collect(),
            ..Self::default()
        };
        match start.binary {
            Binary::Prebuilt(prebuilt) => Self { package: Some(prebuilt.path.clone()), ..record },
            Binary::Source(recipe) => Self {
                source: format!(
                    "{} ({}) for CUDA architecture {}",
                    recipe.source.folder, recipe.source.name, recipe.architectures
                ),
                notes: recipe.note.iter().cloned().chain(record.notes).collect(),
                ..record
            },
        }
    }

    /// Reads what was kept. What a power cut left in pieces is nothing.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Which binary the job was begun with.
    pub(super) fn begun(&self) -> Option<Build> {
        [Build::Prebuilt, Build::Source].into_iter().find(|build| build.as_str() == self.build)
    }

    /// Why it was not begun with the prebuilt one.
    pub(super) fn because(&self) -> Option<Failure> {
        let (kind, text) = self.because.as_ref()?;
        Some(Failure { kind: kind.parse::<Kind>().ok()?, text: text.clone() })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}
