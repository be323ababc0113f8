//! Records of instances and of the computers behind them. Their changes are in `due`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ImageKind, Spec, Visibility, World};
use crate::{
    ledger::{LedgerObject, LifeEvent, LifeKind},
    options::SandboxSecret,
    stand_in::{Gpu, Machine},
};

/// A billing type (service API, POST /api/instance/create: payment_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BillingType {
    Hourly,
    Daily,
    Weekly,
    Monthly,
}

impl BillingType {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "Hourly" => Some(Self::Hourly),
            "Daily" => Some(Self::Daily),
            "Weekly" => Some(Self::Weekly),
            "Monthly" => Some(Self::Monthly),
            _ => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Hourly => "Hourly",
            Self::Daily => "Daily",
            Self::Weekly => "Weekly",
            Self::Monthly => "Monthly",
        }
    }

    /// The length of one prepaid period; `None` for hourly billing. A month is 30 days here.
    pub(crate) fn term_ms(self) -> Option<i64> {
        const DAY_MS: i64 = 86_400_000;
        match self {
            Self::Hourly => None,
            Self::Daily => Some(DAY_MS),
            Self::Weekly => Some(7 * DAY_MS),
            Self::Monthly => Some(30 * DAY_MS),
        }
    }
}

/// The image from which an instance was created.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InstanceImage {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) kind: ImageKind,
    pub(crate) address: String,
}

/// A cloud disk of an instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mount {
    pub(crate) disk_id: i64,
    pub(crate) mount_path: String,
    pub(crate) release_with_instance: bool,
    /// Whether it was created with the instance.
    pub(crate) is_new: bool,
}

/// The next change of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Next {
    Failed,
    Released,
    Running,
}

/// A scheduled change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduledChange {
    pub(crate) at_ms: i64,
    pub(crate) to: Next,
}

/// An instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Instance {
    pub(crate) account: String,
    pub(crate) id: i64,
    pub(crate) uid: String,
    pub(crate) alias: String,
    pub(crate) hostname: String,
    /// A status of the service; a mutation may set one that the document does not name.
    pub(crate) status: String,
    pub(crate) next: Option<ScheduledChange>,
    pub(crate) visibility: Visibility,
    /// Whether a mutation made its release fail with 160012.
    pub(crate) unreleasable: bool,
    /// Whether its GPUs are taken from the stock.
    pub(crate) holds_stock: bool,
    /// The specification as it was when the instance was created.
    pub(crate) spec: Spec,
    pub(crate) gpu_num: i64,
    pub(crate) payment: BillingType,
    pub(crate) purchase_duration: i64,
    pub(crate) auto_renew: bool,
    pub(crate) image: InstanceImage,
    pub(crate) data_disk_expand_size: i64,
    pub(crate) data_disk_mount_path: String,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) object_mounts: Vec<Value>,
    /// 1 SSH key, 2 password.
    pub(crate) login_method: i64,
    pub(crate) ssh_pubkey_id: i64,
    pub(crate) ssh_pubkey_name: String,
    pub(crate) ssh_password: SandboxSecret,
    pub(crate) ssh_port: i64,
    pub(crate) jupyter_token: SandboxSecret,
    pub(crate) external_ip: String,
    pub(crate) internal_ip: String,
    pub(crate) create_ms: i64,
    /// When it first ran; 0 before.
    pub(crate) start_ms: i64,
    /// When it stopped; 0 before.
    pub(crate) stop_ms: i64,
    /// When it was or will be released; 0 for an hourly instance that was not released.
    pub(crate) release_ms: i64,
    /// The end of the prepaid term; 0 without one.
    pub(crate) rent_deadline_ms: i64,
    pub(crate) host: Host,
}

impl Instance {
    pub(crate) fn is_released(&self) -> bool {
        self.status == "Released"
    }

    /// Whether its release was accepted and is not finished.
    pub(crate) fn is_releasing(&self) -> bool {
        self.next.is_some_and(|step| step.to == Next::Released)
    }
}

impl World {
    /// The account's instance of this uid; reads may not show it yet.
    pub(crate) fn instance_mut(&mut self, account: &str, uid: &str) -> Option<&mut Instance> {
        self.instances.iter_mut().find(|instance| instance.uid == uid && instance.account == account)
    }

    /// The random values of a new instance: database id, uid, password, notebook token.
    pub(crate) fn identity(&mut self) -> (i64, String, SandboxSecret, SandboxSecret) {
        let id = self.next_id();
        let mut random = self.draw();
        (
            id,
            format!("ins-{}", random.text(12)),
            SandboxSecret::new(random.text(16)),
            SandboxSecret::new(random.text(32)),
        )
    }

    /// The uid after those of all instances so far.
    pub(crate) fn counted_uid(&self) -> String {
        let is_birth = |event: &&LifeEvent| event.object == LedgerObject::Instance && event.kind == LifeKind::Created;
        format!("ins-{}", self.life.iter().filter(is_birth).count() + 1)
    }

    /// Adds a Running instance without a request, for load tests.
    pub(crate) fn generate_instance(&mut self, number: u32, now_ms: i64) {
        let (id, uid, ssh_password, jupyter_token) = self.identity();
        let (Some(account), Some(spec), Some(image)) = (
            self.accounts.first(),
            self.specs.iter().find(|spec| spec.gpu_name.starts_with("CPU")),
            self.public_images.first(),
        ) else {
            return;
        };
        let alias = format!("generated-{number:05}");
        let instance = Instance {
            account: account.name.clone(),
            id,
            uid: uid.clone(),
            alias: alias.clone(),
            hostname: String::new(),
            status: "Running".to_owned(),
            next: None,
            visibility: Visibility::default(),
            unreleasable: false,
            holds_stock: false,
            spec: spec.clone(),
            gpu_num: 1,
            payment: BillingType::Hourly,
            purchase_duration: 0,
            auto_renew: false,
            image: InstanceImage {
                id: image.id,
                name: image.name.clone(),
                kind: ImageKind::Public,
                address: image.image_url.clone(),
            },
            data_disk_expand_size: 0,
            data_disk_mount_path: "/root/damodel-tmp".to_owned(),
            mounts: Vec::new(),
            object_mounts: Vec::new(),
            login_method: 2,
            ssh_pubkey_id: 0,
            ssh_pubkey_name: String::new(),
            ssh_password,
            ssh_port: ssh_port(id),
            jupyter_token,
            external_ip: String::new(),
            internal_ip: internal_ip(id),
            create_ms: now_ms,
            start_ms: now_ms,
            stop_ms: 0,
            release_ms: 0,
            rent_deadline_ms: 0,
            host: Host::default(),
        };
        let account = instance.account.clone();
        self.instances.push(instance);
        self.record(now_ms, LedgerObject::Instance, LifeKind::Created, &uid, &alias, &account);
    }
}

/// The SSH port in an instance's records until its sshd has one.
pub(crate) fn ssh_port(id: i64) -> i64 {
    20_000 + id.rem_euclid(40_000)
}

/// A private address for each id.
pub(crate) fn internal_ip(id: i64) -> String {
    format!("10.{}.{}.{}", id / 65_536 % 256, id / 256 % 256, id % 256)
}

/// The machine of an instance, as far as it differs from a new one.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    /// Each generation has another host key.
    pub(crate) key_generation: u64,
    /// The number of reboots, and the time of the last one; 0 for never.
    pub(crate) reboots: u64,
    pub(crate) rebooted_ms: i64,
    pub(crate) is_sshd_down: bool,
    /// The time from Running or a reboot to a listening sshd, if it is not the sandbox's usual one.
    pub(crate) sshd_delay_ms: Option<i64>,
    /// The version of the CUDA toolkit if it differs from the specification's; "" for no toolkit.
    pub(crate) toolkit: Option<String>,
    /// Whether the driver finds the GPU.
    pub(crate) has_driver: bool,
}

impl Default for Host {
    fn default() -> Self {
        Self {
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

#[cfg_attr(not(unix), expect(dead_code, reason = "instances can be logged in to on Unix only"))]
impl Instance {
    /// When its sshd listens, in milliseconds of the life clock, if the usual delay is this long.
    pub(crate) fn sshd_from_ms(&self, usual_delay_ms: i64) -> i64 {
        let delay_ms = self.host.sshd_delay_ms.unwrap_or(usual_delay_ms);
        self.start_ms.max(self.host.rebooted_ms).saturating_add(delay_ms)
    }

    /// The hardware and toolkit that programs in the instance see.
    pub(crate) fn machine(&self) -> Machine {
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
