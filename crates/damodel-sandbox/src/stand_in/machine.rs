//! The machine of an instance, which its stand-ins read, and how a stand-in was started.

#[cfg(unix)]
use std::{ffi::OsString, path::PathBuf};
use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

/// The variable that names the folder of a port space.
pub const PORTS: &str = "SANDBOX_PORTS";

/// How a stand-in was started.
#[cfg(unix)]
pub(super) struct Call<'a> {
    /// `argv[0]`.
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

#[cfg(unix)]
impl Call<'_> {
    pub(super) fn text(&self, name: &str) -> Option<String> {
        (self.variable)(name)?.into_string().ok()
    }

    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The machine of the home.
    pub(super) fn machine(&self) -> Machine {
        self.path("HOME").map(|home| Machine::read(&home)).unwrap_or_default()
    }
}

/// The description of the machine, below the home.
const FILE: &str = ".machine/machine.json";

/// GPUs of the service: a part of the specification's name, the driver's name for it, the compute capability times ten,
/// and the driver. Capabilities as NVIDIA publishes them; the K80's driver is of the last branch that supports it.
const GPUS: [(&str, &str, u32, &str); 6] = [
    ("A100", "NVIDIA A100-SXM4-80GB", 80, "550.54.15"),
    ("H100", "NVIDIA H100 80GB HBM3", 90, "570.86.15"),
    ("K80", "Tesla K80", 37, "470.256.02"),
    ("P40", "Tesla P40", 61, "535.183.01"),
    ("RTX-4090", "NVIDIA GeForce RTX 4090", 89, "560.35.03"),
    ("V100", "Tesla V100-SXM2-32GB", 70, "535.183.01"),
];

/// A GPU, as its driver reports it.
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
    /// The GPU of a specification by its `gpu_name`; `None` for a CPU.
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

/// The hardware of an instance, and its CUDA toolkit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The kind of its GPUs.
    pub gpu: Option<Gpu>,
    /// The number of GPUs.
    pub gpu_count: u32,
    /// Whether the driver finds the GPUs.
    pub has_driver: bool,
    /// The version of the CUDA toolkit, such as `12.2`; `None` without a toolkit.
    pub toolkit: Option<String>,
}

impl Machine {
    /// A machine with one GPU of a specification's `gpu_name`, such as `NVIDIA-V100-32G`, and this CUDA toolkit.
    #[must_use]
    pub fn with(gpu_name: &str, toolkit: &str) -> Self {
        let gpu = Gpu::of_spec(gpu_name, 24_576);
        Self { gpu_count: 1, gpu, has_driver: true, toolkit: (!toolkit.is_empty()).then(|| toolkit.to_owned()) }
    }
}

#[cfg_attr(not(unix), expect(dead_code, reason = "instances can be logged in to on Unix only"))]
impl Machine {
    /// The GPU, if the driver finds it.
    pub(super) fn usable_gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref().filter(|_| self.has_driver)
    }

    /// The machine that was written for this home, else a machine without GPU.
    pub(super) fn read(home: &Path) -> Self {
        fs::read(home.join(FILE)).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn write(&self, home: &Path) -> io::Result<()> {
        fs::write(home.join(FILE), serde_json::to_vec_pretty(self)?)
    }
}
