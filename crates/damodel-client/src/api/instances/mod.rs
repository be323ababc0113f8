//! The instance endpoints (service API, Instances).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    client::Client,
    code::Code,
    context::Context,
    endpoint::{Endpoint, Request},
    error::Error,
    flight::Flight,
    listing::Listing,
    object::{Creation, Object, ObjectKind, Objects, bare},
    pages::paged,
    presence::Presence,
    records::{Instance, InstanceDetail, InstanceStatus, InstanceUid, read},
    retry::Retry,
    snapshots::Snapshots,
    watch::{Poller, Watch},
};

impl Client {
    /// Calls on instances.
    #[must_use]
    pub fn instances(&self) -> Objects<Instance> {
        self.objects()
    }
}

/// Filters of the instance list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstanceFilter {
    /// Search by UID or name.
    pub query: Option<String>,
    /// One status, as the service writes it.
    pub status: Option<String>,
}

impl Objects<Instance> {
    /// The instances that match a filter, in a separate request.
    ///
    /// # Errors
    /// Those of a read.
    pub async fn list(&self, filter: &InstanceFilter, context: &Context) -> Result<Listing<Instance>, Error> {
        let request = Request::new(Endpoint::InstanceList)
            .query_if("query", filter.query.as_ref())
            .query_if("status", filter.status.as_ref());
        paged(&self.client, context, &request, Retry::AsConfigured).await
    }

    /// One instance with all its fields, in a separate request.
    ///
    /// # Errors
    /// Those of a read; 160003 if the account has no such instance (which alone proves nothing: [`Self::look`]).
    pub async fn detail(&self, uid: &InstanceUid, context: &Context) -> Result<InstanceDetail, Error> {
        self.ask_detail(uid, context, Retry::AsConfigured).await
    }

    pub(super) async fn ask_detail(
        &self,
        uid: &InstanceUid,
        context: &Context,
        retry: Retry,
    ) -> Result<InstanceDetail, Error> {
        let endpoint = Endpoint::InstanceDetail;
        let request = Request::new(endpoint).query("instance_uid", uid);
        let answer = self.client.read(context, &request, retry).await?;
        read::<InstanceDetail>(&answer.result).filter(|detail| detail.instance.uid == *uid).ok_or_else(|| {
            Error::undecodable(endpoint, "the result is not the instance that was asked for", answer.ids)
        })
    }
}

#[expect(private_interfaces, reason = "how it is asked for is this layer's own")]
impl Object for Instance {
    type Shown = InstanceDetail;

    const KIND: ObjectKind = ObjectKind::Instance;
    const LIST: Endpoint = Endpoint::InstanceList;
    const SEARCH: &'static str = "query";
    const DETAILS_AT_MOST: usize = 2;

    fn flight(snapshots: &Snapshots) -> &Flight<Listing<Self>> {
        &snapshots.instances
    }

    fn poller(watch: &Watch) -> &Arc<Poller<Self>> {
        &watch.instances
    }

    fn of_id(id: &str) -> Option<Self> {
        bare("instance_uid", &json!(id))
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn uid(&self) -> Option<&str> {
        None
    }

    fn is_released(&self) -> bool {
        Self::is_released(self)
    }

    fn is_living(&self) -> bool {
        let ends = [InstanceStatus::Released.as_str(), InstanceStatus::Failed.as_str(), "Releasing"];
        self.status.as_ref().is_none_or(|status| !ends.iter().any(|end| status.as_str().eq_ignore_ascii_case(end)))
    }

    fn status_text(&self) -> String {
        self.status.as_ref().map_or_else(|| "without a status".to_owned(), ToString::to_string)
    }

    fn as_shown(&self) -> Option<InstanceDetail> {
        None
    }

    fn rename_request(uid: &InstanceUid, name: &str) -> Request {
        Request::new(Endpoint::InstanceRename).body(&json!({ "instance_uid": uid.as_str(), "name": name }))
    }

    /// Deletes the instance, its system disk and data disk permanently.
    fn release_request(uid: &InstanceUid) -> Request {
        Request::new(Endpoint::InstanceRelease).body(&json!({ "instance_uid": uid.as_str() }))
    }

    async fn look(
        objects: &Objects<Self>,
        uid: &InstanceUid,
        _hint: Option<&str>,
        context: &Context,
    ) -> Result<Presence<InstanceDetail>, Error> {
        match objects.detail(uid, context).await {
            Ok(detail) if detail.instance.is_released() => return Ok(Presence::Released),
            Ok(detail) => return Ok(Presence::Present(Box::new(detail))),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {}
            Err(error) => return Err(error),
        }
        let listing = objects.fresh(context).await?;
        Ok(match listing.find(uid) {
            Some(record) if record.is_released() => Presence::Released,
            Some(_) => {
                Presence::Unproved { reason: "its detail reports that it does not exist, but the list contains it" }
            }
            None if listing.complete => Presence::Absent,
            None => {
                Presence::Unproved { reason: "its detail reports that it does not exist, but the list is not complete" }
            }
        })
    }

    async fn one(objects: &Objects<Self>, uid: &InstanceUid, context: &Context) -> Result<Option<Self>, Error> {
        match objects.ask_detail(uid, context, Retry::Never).await {
            Ok(detail) => Ok(Some(detail.instance)),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {
                // This answer alone proves nothing, and a released instance may be in the list only.
                let listing = objects.ask(context, Retry::Never).await?;
                match listing.find(uid) {
                    None if !listing.complete => Err(error),
                    found => Ok(found.cloned()),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// The configured instance. A field that is `None` or empty is not sent.
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
    /// `data_disk_expand_size`, in GB; 0 for no expansion.
    pub data_disk_expand_size: i64,
    /// `data_disk_mount_path`.
    pub data_disk_mount_path: Option<String>,
    /// `image_id` with `image_type`, or `image`.
    pub image: ImageSelector,
    /// The configured `instance_alias`. The create sends a name with a marker, and the instance is renamed after it was
    /// accepted.
    pub name: Option<String>,
    /// `instance_hostname`.
    pub hostname: Option<String>,
    /// `login_method` and its parameters.
    pub login: Option<LoginMethod>,
    /// `external_ip`.
    pub external_ip: Option<String>,
    /// `auto_renew`.
    pub auto_renew: Option<bool>,
    /// `exist_disks`.
    pub exist_disks: Vec<ExistDisk>,
    /// `new_disks`.
    pub new_disks: Vec<NewDisk>,
    /// `object_mounts`; the service API does not describe the elements.
    pub object_mounts: Vec<Value>,
    /// Whether this is one of several candidates, which differ in region, specification and number of GPUs.
    pub is_candidate: bool,
}

/// The payment type of an instance.
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

/// The specification of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecSelector {
    /// `spec_id`, not 0.
    Id(i64),
    /// `spec_type`.
    Type(String),
}

/// The image of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSelector {
    /// `image`, the full address.
    Address(String),
    /// `image_id` of a private image.
    Private(i64),
    /// `image_id` of a public image.
    Public(i64),
}

/// The login method of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginMethod {
    /// With a password that the service generates.
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
    /// The mount path; `None` for the disk's own path.
    pub mount_path: Option<String>,
    /// Whether it is released with the instance.
    pub release_with_instance: bool,
}

/// A cloud disk to create with the instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// The size in GB.
    pub size_gb: i64,
    /// A cloud disk specification.
    pub spec_id: i64,
    /// The mount path; `None` for the service's choice.
    pub mount_path: Option<String>,
    /// Whether it is released with the instance.
    pub release_with_instance: bool,
}

impl CreateInstance {
    /// A create with only the required fields: hourly, without extra disk space.
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

    /// Without the uids of disks, which no plan has, and without the fields in which candidates differ, so that a
    /// changed list adopts the same object.
    fn wanted(&self) -> Value {
        let mut configured = self.clone();
        configured.exist_disks.iter_mut().for_each(|disk| disk.uid.clear());
        let mut wanted = configured.body(self.wanted_name().unwrap_or_default());
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
            Some(LoginMethod::Password) => put("login_method", json!(2)),
            Some(LoginMethod::SshKey { id, name }) => {
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
