//! What happened to the machine behind an instance: what its sshd, its host key and its hardware are.

use serde::{Deserialize, Serialize};

use super::Instance;
use crate::sandbox::stand_in::{Gpu, Machine};

/// The machine of an instance, as far as it differs from a new one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::sandbox) struct Host {
    /// Whether `ssh_port` is one that was listened on; else it is invented.
    pub(in crate::sandbox) has_port: bool,
    /// Another number, another host key.
    pub(in crate::sandbox) key_generation: u64,
    /// How often it was rebooted, and when it was the last time; 0 for never.
    pub(in crate::sandbox) reboots: u64,
    pub(in crate::sandbox) rebooted_ms: i64,
    pub(in crate::sandbox) is_sshd_down: bool,
    /// From Running or a reboot to a listening sshd, where it is not the sandbox's usual time.
    pub(in crate::sandbox) sshd_delay_ms: Option<i64>,
    /// The version of the CUDA toolkit where it is not the specification's; "" for none.
    pub(in crate::sandbox) toolkit: Option<String>,
    /// Whether the driver finds the GPU.
    pub(in crate::sandbox) has_driver: bool,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            has_port: false,
            key_generation: 0,
            reboots: 0,
            rebooted_ms: 0,
            is_sshd_down: false,
            sshd_delay_ms: None,
            toolkit: None,
            has_driver: true,
        }
    }
}

impl Instance {
    /// When its sshd listens, in milliseconds of the life clock, where the usual delay is this long.
    pub(in crate::sandbox) fn sshd_from_ms(&self, usual_delay_ms: i64) -> i64 {
        let delay_ms = self.host.sshd_delay_ms.unwrap_or(usual_delay_ms);
        self.start_ms.max(self.host.rebooted_ms).saturating_add(delay_ms)
    }

    /// The hardware and toolkit that programs in the instance see.
    pub(in crate::sandbox) fn machine(&self) -> Machine {
        let gpu = Gpu::of_spec(&self.spec.gpu_name, self.spec.gpu_mem);
        let toolkit = self.host.toolkit.clone().unwrap_or_else(|| self.spec.highest_cuda.clone());
        Machine {
            gpu_count: if gpu.is_some() { u32::try_from(self.gpu_num).unwrap_or(1) } else { 0 },
            gpu,
            has_driver: self.host.has_driver,
            toolkit: (!toolkit.is_empty()).then_some(toolkit),
        }
    }
}
