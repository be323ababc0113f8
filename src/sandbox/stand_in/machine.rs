//! The hardware and toolkit that the stand-ins find.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

/// Where it is written down, below the home.
const FILE: &str = ".machine/machine.json";

/// GPUs of the service: what a specification's name holds, the name that the driver tells, the compute capability times
/// ten, and the driver. Capabilities as NVIDIA publishes them; the K80's driver is of the last branch that knew it.
const GPUS: [(&str, &str, u32, &str); 6] = [
    ("A100", "NVIDIA A100-SXM4-80GB", 80, "550.54.15"),
    ("H100", "NVIDIA H100 80GB HBM3", 90, "570.86.15"),
    ("K80", "Tesla K80", 37, "470.256.02"),
    ("P40", "Tesla P40", 61, "535.183.01"),
    ("RTX-4090", "NVIDIA GeForce RTX 4090", 89, "560.35.03"),
    ("V100", "Tesla V100-SXM2-32GB", 70, "535.183.01"),
];

/// A GPU, as its driver tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Its name.
    pub name: String,
    /// Its compute capability, times ten: 70 for a V100.
    pub architecture: u32,
    /// Its memory in MiB.
    pub memory_mib: i64,
    /// The version of the driver.
    pub driver: String,
}

impl Gpu {
    /// The GPU of a specification by its `gpu_name`; none for one that names a CPU.
    #[must_use]
    pub fn of_spec(name: &str, memory_mib: i64) -> Option<Self> {
        if name.starts_with("CPU") {
            return None;
        }
        let known = GPUS.iter().find(|(part, ..)| name.contains(part));
        let (name, architecture, driver) =
            known.map_or((name, 86, "550.54.15"), |(_, name, architecture, driver)| (*name, *architecture, *driver));
        Some(Self { name: name.to_owned(), architecture, memory_mib, driver: driver.to_owned() })
    }
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The kind of its GPUs.
    pub gpu: Option<Gpu>,
    /// How many there are.
    pub gpu_count: u32,
    /// Whether the driver finds them.
    pub has_driver: bool,
    /// The version of the CUDA toolkit, such as `12.2`; none where there is none.
    pub toolkit: Option<String>,
}

impl Machine {
    /// A machine with one GPU of a specification's `gpu_name`, such as `NVIDIA-V100-32G`, and this CUDA toolkit.
    #[must_use]
    pub fn with(gpu_name: &str, toolkit: &str) -> Self {
        let gpu = Gpu::of_spec(gpu_name, 24_576);
        Self { gpu_count: 1, gpu, has_driver: true, toolkit: (!toolkit.is_empty()).then(|| toolkit.to_owned()) }
    }

    /// The GPU, where the driver finds it.
    pub(super) fn usable_gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref().filter(|_| self.has_driver)
    }

    /// What was written down for this home; a machine without GPU where nothing was.
    pub(super) fn read(home: &Path) -> Self {
        fs::read(home.join(FILE)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn write(&self, home: &Path) -> io::Result<()> {
        fs::write(home.join(FILE), serde_json::to_vec_pretty(self)?)
    }
}
