//! Instances (service API, Instance).

use std::{borrow::Borrow, fmt};

use bigdecimal::BigDecimal;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use crate::api::{
    lenient::{self, Lenient},
    records::{Guarded, Record},
};

/// The UID of an instance (`instance_uid`), which identifies it in all operations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceUid(String);

impl InstanceUid {
    /// A UID as the service or a user wrote it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Lenient for InstanceUid {
    fn read(json: &Value) -> Option<Self> {
        String::read(json).map(Self)
    }
}

impl fmt::Display for InstanceUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The status of an instance (service API, States): the set is not closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstanceStatus {
    /// Accepted, not yet running.
    Creating,
    /// The creation failed.
    Failed,
    /// Released. This is final.
    Released,
    /// Running.
    Running,
    /// Stopped.
    Stopped,
    /// An undocumented status, as the service wrote it.
    Other(String),
}

impl InstanceStatus {
    /// Reads a status, whatever its case.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        [Self::Creating, Self::Failed, Self::Released, Self::Running, Self::Stopped]
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(text.trim()))
            .unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    /// The word that the service uses.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Creating => "Creating",
            Self::Failed => "Failed",
            Self::Released => "Released",
            Self::Running => "Running",
            Self::Stopped => "Stopped",
            Self::Other(text) => text,
        }
    }
}

impl Lenient for InstanceStatus {
    fn read(json: &Value) -> Option<Self> {
        String::read(json).map(|text| Self::parse(&text))
    }
}

impl fmt::Display for InstanceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An instance in a list. Every field but the UID may be absent.
#[derive(Debug, Clone, Deserialize)]
pub struct Instance {
    /// `instance_uid`.
    #[serde(rename = "instance_uid", deserialize_with = "lenient::key")]
    pub uid: InstanceUid,
    /// `instance_id`, the database id; the answer to a create contains it, lists may not.
    #[serde(default, deserialize_with = "lenient::field")]
    pub instance_id: Option<i64>,
    /// `instance_alias`.
    #[serde(default, rename = "instance_alias", deserialize_with = "lenient::field")]
    pub name: Option<String>,
    /// `status`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub status: Option<InstanceStatus>,
    /// `region`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub region: Option<String>,
    /// `capacity_type`: `ondemand` or `spot`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub capacity_type: Option<String>,
    /// `gpu_name`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub gpu_name: Option<String>,
    /// `gpu_num`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub gpu_num: Option<i64>,
    /// `spec_id`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub spec_id: Option<i64>,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub spec_type: Option<String>,
    /// `payment_type`: `Hourly`, `Daily`, `Weekly` or `Monthly`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub payment_type: Option<String>,
    /// `image_id`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_id: Option<i64>,
    /// `image_name`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_name: Option<String>,
    /// `image_type`, as the service wrote it: `1`, `public`, `2` or `private`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub image_type: Option<String>,
    /// `ssh_host`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub ssh_host: Option<String>,
    /// `ssh_port`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub ssh_port: Option<i64>,
    /// `login_method`: 1 SSH key, 2 password.
    #[serde(default, deserialize_with = "lenient::field")]
    pub login_method: Option<i64>,
    /// `ssh_pubkey_name`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub ssh_pubkey_name: Option<String>,
    /// `ssh_password`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub ssh_password: Option<SecretString>,
    /// `external_ip`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub external_ip: Option<String>,
    /// `internal_ip`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub internal_ip: Option<String>,
    /// `jupyter_url`; may contain the token.
    #[serde(default, deserialize_with = "lenient::field")]
    pub jupyter_url: Option<Guarded<String>>,
    /// `jupyter_token`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub jupyter_token: Option<SecretString>,
    /// `start_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub start_time: Option<i64>,
    /// `stop_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub stop_time: Option<i64>,
    /// `release_time`, Unix seconds.
    #[serde(default, deserialize_with = "lenient::time")]
    pub release_time: Option<i64>,
}

impl Instance {
    /// Whether the service reports it as released.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.status == Some(InstanceStatus::Released)
    }
}

impl Record for Instance {
    type Key = InstanceUid;

    fn key(&self) -> InstanceUid {
        self.uid.clone()
    }
}

/// An instance with the fields that only its detail shows (service API, Instance, detail-only fields).
#[derive(Debug, Clone)]
pub struct InstanceDetail {
    /// The fields that lists show too.
    pub instance: Instance,
    /// The detail-only fields.
    pub more: DetailFields,
}

impl Borrow<Instance> for InstanceDetail {
    fn borrow(&self) -> &Instance {
        &self.instance
    }
}

/// The detail-only fields. Undescribed values are kept unparsed.
#[derive(Debug, Clone, Deserialize)]
pub struct DetailFields {
    /// `cpu_core`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub cpu_core: Option<Value>,
    /// `memory_size`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub memory_size: Option<Value>,
    /// `gpu_memory`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub gpu_memory: Option<Value>,
    /// `sys_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::field")]
    pub sys_disk_size: Option<i64>,
    /// `data_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::field")]
    pub data_disk_size: Option<i64>,
    /// `cloud_disks`, the mounted ones; the service API does not describe the elements.
    #[serde(default, deserialize_with = "lenient::list")]
    pub cloud_disks: Vec<Value>,
    /// `gpu_price`, per billing period.
    #[serde(default, deserialize_with = "lenient::field")]
    pub gpu_price: Option<BigDecimal>,
    /// `data_disk_price`, per billing period.
    #[serde(default, deserialize_with = "lenient::field")]
    pub data_disk_price: Option<BigDecimal>,
    /// `rent_deadline`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub rent_deadline: Option<Value>,
    /// `services`; the service API does not describe the elements, which may contain tokens.
    #[serde(default, deserialize_with = "lenient::list")]
    pub services: Guarded<Vec<Value>>,
    /// `support_power_type`.
    #[serde(default, rename = "support_power_type", deserialize_with = "lenient::field")]
    pub supports_power: Option<bool>,
    /// `shutdown_status`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub shutdown_status: Option<Value>,
    /// `shutdown_stage`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub shutdown_stage: Option<Value>,
    /// `shutdown_push_progress`.
    #[serde(default, deserialize_with = "lenient::field")]
    pub shutdown_push_progress: Option<Value>,
}

impl<'de> Deserialize<'de> for InstanceDetail {
    /// Reads one object twice, because a flattened struct would need the exact types of the fields.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        Ok(Self {
            instance: Instance::deserialize(&value).map_err(D::Error::custom)?,
            more: DetailFields::deserialize(&value).map_err(D::Error::custom)?,
        })
    }
}
