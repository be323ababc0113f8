//! What a cloud disk create sends (service API, POST /api/storage/cloud_disk/create).

use serde_json::{Map, Value, json};

use crate::api::{create::Creation, endpoint::Endpoint, records::CloudDisk};

/// The wanted cloud disk. What is `None` is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateCloudDisk {
    /// `size_gb`, at least 20, at most the specification's `max_size_g`.
    pub size_gb: i64,
    /// `spec_id`, of the cloud disk specification list.
    pub spec_id: i64,
    /// The wanted `disk_name`. What is sent carries a marker, and is to be renamed when accepted.
    pub name: Option<String>,
    /// `mount_path`, absolute.
    pub mount_path: Option<String>,
    /// `purchase_duration`. Default: 1, which the document asks for while disks are paid by use only.
    pub purchase_duration: Option<i64>,
}

impl CreateCloudDisk {
    /// The least that a create needs.
    #[must_use]
    pub fn new(size_gb: i64, spec_id: i64) -> Self {
        Self { size_gb, spec_id, name: None, mount_path: None, purchase_duration: None }
    }
}

impl Creation for CreateCloudDisk {
    type Object = CloudDisk;

    const ENDPOINT: Endpoint = Endpoint::CloudDiskCreate;

    fn wanted_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn body(&self, marker: &str) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
        put("size_gb", json!(self.size_gb));
        put("spec_id", json!(self.spec_id));
        put("disk_name", json!(marker));
        if let Some(path) = &self.mount_path {
            put("mount_path", json!(path));
        }
        put("purchase_duration", json!(self.purchase_duration.unwrap_or(1)));
        Value::Object(body)
    }
}
