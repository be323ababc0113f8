//! What a server was built as: its generation, and the GPUs it was compiled for.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::Call;

/// Tells what was built by the compiled launcher, which becomes this program.
const VARIABLE: &str = "LLAMA_STAND_IN_BUILD";

/// Beside a prebuilt server.
pub(super) const FILE: &str = "build.json";

/// The two kinds of servers that are about: before and after options, log lines and ends changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Generation {
    /// 0.5.0-dev of autumn 2026.
    New,
    /// b4748 of February 2025.
    Old,
}

/// A build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Build {
    pub(super) generation: Generation,
    pub(super) commit: String,
    /// CUDA architectures, such as 75; none for a build without CUDA.
    pub(super) architectures: Vec<u32>,
}

impl Build {
    /// A prebuilt one of the public storage. No architecture below 75, as with CUDA 13.
    pub(super) fn prebuilt(generation: Generation) -> Self {
        let commit = match generation {
            Generation::New => "0c1e57098",
            Generation::Old => "c392e5094",
        };
        Self { generation, commit: commit.to_owned(), architectures: vec![75, 80, 86, 89, 90] }
    }

    /// The build that was started: what the launcher tells, or what lies beside the program.
    pub(super) fn of(call: &Call<'_>) -> Self {
        let told = call.text(VARIABLE).and_then(|text| Self::parse(&text));
        told.or_else(|| beside(&found(call))).unwrap_or_else(|| Self::prebuilt(Generation::New))
    }

    /// `new f1e2d3c4b 70,75`.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let generation = match words.next()? {
            "new" => Generation::New,
            "old" => Generation::Old,
            _ => return None,
        };
        let commit = words.next()?.to_owned();
        let architectures = words.next().unwrap_or_default().split(',').filter_map(|text| text.parse().ok()).collect();
        Some(Self { generation, commit, architectures })
    }

    pub(super) fn is_old(&self) -> bool {
        self.generation == Generation::Old
    }

    /// As `system_fingerprint` and `build_info` tell it.
    pub(super) fn info(&self) -> String {
        match self.generation {
            Generation::New => format!("b0-{}", self.commit),
            Generation::Old => format!("b4748-{}", self.commit),
        }
    }

    /// As `--version` tells it.
    pub(super) fn version(&self) -> String {
        match self.generation {
            Generation::New => {
                format!(
                    "version: 0.5.0-dev (build 0, commit {})\nbuilt with GNU 12.2.0 for Linux x86_64\n",
                    self.commit
                )
            }
            Generation::Old => {
                let by = "built with cc (Debian 12.2.0-14) 12.2.0 for x86_64-linux-gnu";
                format!("version: 4748 ({})\n{by}\n", self.commit)
            }
        }
    }

    /// Whether its kernels run on this architecture: those for an older one are compiled again by the driver, those for
    /// a newer one are not.
    pub(super) fn runs_on(&self, architecture: u32) -> bool {
        self.architectures.iter().any(|&own| own <= architecture)
    }
}

/// The program's file: where it was started from, or where PATH has it.
fn found(call: &Call<'_>) -> PathBuf {
    if call.program.components().count() > 1 {
        return call.program.clone();
    }
    let path = call.text("PATH").unwrap_or_default();
    let places = path.split(':').map(|folder| Path::new(folder).join(&call.program));
    places.into_iter().find(|place| place.exists()).unwrap_or_else(|| call.program.clone())
}

/// What lies beside the program, or beside what it is a link to.
fn beside(program: &Path) -> Option<Build> {
    let mut program = program.to_owned();
    loop {
        let folder = program.parent()?;
        if let Ok(text) = fs::read(folder.join(FILE)) {
            return serde_json::from_slice(&text).ok();
        }
        program = folder.join(fs::read_link(&program).ok()?);
    }
}
