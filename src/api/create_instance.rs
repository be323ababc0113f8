//! What an instance create sends, strictly (service API, POST /api/instance/create).

use serde_json::{Map, Value, json};

use crate::api::{create::Creation, endpoint::Endpoint, records::Instance};

/// The wanted instance. What is `None` or empty is not sent.
#[derive(Debug, Clone)]
pub struct CreateInstance {
    /// `region`.
    pub region: String,
    /// `payment_type`, with `purchase_duration`.
    pub payment: Payment,
    /// `spec_id` or `spec_type`.
    pub spec: SpecSelector,
    /// `gpu_num`, at least 1.
    pub gpu_num: i64,
    /// `data_disk_expand_size`, in GB; 0 when not expanding.
    pub data_disk_expand_size: i64,
    /// `data_disk_mount_path`.
    pub data_disk_mount_path: Option<String>,
    /// `image_id` with `image_type`, or `image`.
    pub image: ImageSelector,
    /// The wanted `instance_alias`. What is sent carries a marker, and is to be renamed when accepted.
    pub name: Option<String>,
    /// `instance_hostname`.
    pub hostname: Option<String>,
    /// `login_method` and what belongs to it.
    pub login: Option<Login>,
    /// `external_ip`.
    pub external_ip: Option<String>,
    /// `auto_renew`.
    pub auto_renew: Option<bool>,
    /// `exist_disks`.
    pub exist_disks: Vec<ExistDisk>,
    /// `new_disks`.
    pub new_disks: Vec<NewDisk>,
    /// `object_mounts`; elements are not described.
    pub object_mounts: Vec<Value>,
    /// Whether this is one of several candidates, which differ in region, specification and number of GPUs.
    pub is_candidate: bool,
}

/// How an instance is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payment {
    /// `Hourly`, without a duration.
    Hourly,
    /// `Daily`, for this many days.
    Daily(i64),
    /// `Weekly`, for this many weeks.
    Weekly(i64),
    /// `Monthly`, for this many months.
    Monthly(i64),
}

/// Which specification an instance has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecSelector {
    /// `spec_id`, not 0.
    Id(i64),
    /// `spec_type`.
    Type(String),
}

/// Which image an instance starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSelector {
    /// `image`, the full address.
    Address(String),
    /// `image_id` of a private image.
    Private(i64),
    /// `image_id` of a public image.
    Public(i64),
}

/// How one logs in to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// With a password that the service makes.
    Password,
    /// With a key of the account.
    SshKey {
        /// `ssh_pubkey_id`.
        id: Option<i64>,
        /// `ssh_pubkey_name`.
        name: Option<String>,
    },
}

/// A cloud disk to mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistDisk {
    /// The database id.
    pub id: i64,
    /// The UID.
    pub uid: String,
    /// Where; none for the disk's own path.
    pub mount_path: Option<String>,
    /// Whether it dies with the instance.
    pub release_with_instance: bool,
}

/// A cloud disk to make with the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// In GB.
    pub size_gb: i64,
    /// A cloud disk specification.
    pub spec_id: i64,
    /// Where; none for the service's choice.
    pub mount_path: Option<String>,
    /// Whether it dies with the instance.
    pub release_with_instance: bool,
}

impl CreateInstance {
    /// The least that a create needs: hourly, without extra disk space.
    #[must_use]
    pub fn new(region: impl Into<String>, spec: SpecSelector, gpu_num: i64, image: ImageSelector) -> Self {
        Self {
            region: region.into(),
            payment: Payment::Hourly,
            spec,
            gpu_num,
            data_disk_expand_size: 0,
            data_disk_mount_path: None,
            image,
            name: None,
            hostname: None,
            login: None,
            external_ip: None,
            auto_renew: None,
            exist_disks: Vec::new(),
            new_disks: Vec::new(),
            object_mounts: Vec::new(),
            is_candidate: false,
        }
    }
}

impl Creation for CreateInstance {
    type Object = Instance;

    const ENDPOINT: Endpoint = Endpoint::InstanceCreate;

    fn wanted_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn candidate(&self) -> Option<String> {
        let spec = match &self.spec {
            SpecSelector::Id(id) => format!("spec_id {id}"),
            SpecSelector::Type(code) => code.clone(),
        };
        self.is_candidate.then(|| format!("{} \u{d7} {spec} in {}", self.gpu_num, self.region))
    }

    /// Without the fields in which candidates differ, so that a changed list leads to the same object.
    fn wanted(&self) -> Value {
        let mut wanted = self.body(self.wanted_name().unwrap_or_default());
        if let (true, Value::Object(fields)) = (self.is_candidate, &mut wanted) {
            fields.retain(|name, _| !["region", "spec_id", "spec_type", "gpu_num"].contains(&name.as_str()));
        }
        wanted
    }

    fn body(&self, marker: &str) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        put("region", json!(self.region));
        let (payment, duration) = match self.payment {
            Payment::Hourly => ("Hourly", None),
            Payment::Daily(days) => ("Daily", Some(days)),
            Payment::Weekly(weeks) => ("Weekly", Some(weeks)),
            Payment::Monthly(months) => ("Monthly", Some(months)),
        };
        put("payment_type", json!(payment));
        if let Some(duration) = duration {
            put("purchase_duration", json!(duration));
        }
        match &self.spec {
            SpecSelector::Id(id) => put("spec_id", json!(id)),
            SpecSelector::Type(name) => put("spec_type", json!(name)),
        }
        put("gpu_num", json!(self.gpu_num));
        put("data_disk_expand_size", json!(self.data_disk_expand_size));
        if let Some(path) = &self.data_disk_mount_path {
            put("data_disk_mount_path", json!(path));
        }
        match &self.image {
            ImageSelector::Address(address) => put("image", json!(address)),
            ImageSelector::Private(id) => {
                put("image_id", json!(id));
                put("image_type", json!("private"));
            }
            ImageSelector::Public(id) => {
                put("image_id", json!(id));
                put("image_type", json!("public"));
            }
        }
        put("instance_alias", json!(marker));
        if let Some(hostname) = &self.hostname {
            put("instance_hostname", json!(hostname));
        }
        match &self.login {
            Some(Login::Password) => put("login_method", json!(2)),
            Some(Login::SshKey { id, name }) => {
                put("login_method", json!(1));
                if let Some(id) = id {
                    put("ssh_pubkey_id", json!(id));
                }
                if let Some(name) = name {
                    put("ssh_pubkey_name", json!(name));
                }
            }
            None => {}
        }
        if let Some(address) = &self.external_ip {
            put("external_ip", json!(address));
        }
        if let Some(flag) = self.auto_renew {
            put("auto_renew", json!(flag));
        }
        if !self.exist_disks.is_empty() {
            put("exist_disks", self.exist_disks.iter().map(ExistDisk::body).collect());
        }
        if !self.new_disks.is_empty() {
            put("new_disks", self.new_disks.iter().map(NewDisk::body).collect());
        }
        if !self.object_mounts.is_empty() {
            put("object_mounts", Value::Array(self.object_mounts.clone()));
        }
        Value::Object(body)
    }
}

impl ExistDisk {
    fn body(&self) -> Value {
        let mut body = json!({
            "id": self.id,
            "uid": self.uid,
            "release_with_instance": i64::from(self.release_with_instance),
        });
        mount_at(&mut body, self.mount_path.as_deref());
        body
    }
}

impl NewDisk {
    fn body(&self) -> Value {
        let mut body = json!({
            "size_gb": self.size_gb,
            "spec_id": self.spec_id,
            "release_with_instance": i64::from(self.release_with_instance),
        });
        mount_at(&mut body, self.mount_path.as_deref());
        body
    }
}

fn mount_at(body: &mut Value, path: Option<&str>) {
    if let (Value::Object(fields), Some(path)) = (body, path) {
        fields.insert("mount_path".to_owned(), json!(path));
    }
}
