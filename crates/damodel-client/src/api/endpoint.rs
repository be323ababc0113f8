//! The documented endpoints by name, and a request to one. Errors, logs and retry rules use these names.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use serde_json::Value;

/// One endpoint of the service (service API, Endpoints), in the order of that section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `POST /chat/completions`, the hosted chat (service API, Chat completions).
    ChatCompletions,
    /// `POST /api/instance/create`.
    InstanceCreate,
    /// `GET /api/instance/list`.
    InstanceList,
    /// `GET /api/instance/detail`.
    InstanceDetail,
    /// `POST /api/instance/rename`.
    InstanceRename,
    /// `POST /api/instance/release`.
    InstanceRelease,
    /// `POST /api/storage/cloud_disk/create`.
    CloudDiskCreate,
    /// `GET /api/storage/cloud_disk/list`.
    CloudDiskList,
    /// `POST /api/storage/cloud_disk/rename`.
    CloudDiskRename,
    /// `POST /api/storage/cloud_disk/resize`.
    CloudDiskResize,
    /// `POST /api/storage/cloud_disk/release`.
    CloudDiskRelease,
    /// `GET /api/storage/cloud_disk/spec`.
    CloudDiskSpecList,
    /// `GET /api/image/publics_v2`.
    PublicImageList,
    /// `GET /api/image/privates`.
    PrivateImageList,
    /// `POST /api/instance/save_image_v2`.
    ImageSave,
    /// `PUT /api/image/update`.
    ImageRename,
    /// `DELETE /api/image/delete/{image_id}`.
    ImageDelete,
    /// `GET /api/spec/list`.
    SpecList,
}

/// The effect of sending a request twice, which decides whether it may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Creates an object: two requests create two objects, so it is sent once.
    Creates,
    /// Changes nothing.
    Reads,
    /// Changes an object, and a second request asks for the same end state.
    Repeatable,
}

impl Endpoint {
    /// The HTTP method, as the service API writes it.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::InstanceList
            | Self::InstanceDetail
            | Self::CloudDiskList
            | Self::CloudDiskSpecList
            | Self::PublicImageList
            | Self::PrivateImageList
            | Self::SpecList => "GET",
            Self::ImageRename => "PUT",
            Self::ImageDelete => "DELETE",
            Self::ChatCompletions
            | Self::InstanceCreate
            | Self::InstanceRename
            | Self::InstanceRelease
            | Self::CloudDiskCreate
            | Self::CloudDiskRename
            | Self::CloudDiskResize
            | Self::CloudDiskRelease
            | Self::ImageSave => "POST",
        }
    }

    /// The path below the base address; the image delete's without its id.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::InstanceCreate => "/api/instance/create",
            Self::InstanceList => "/api/instance/list",
            Self::InstanceDetail => "/api/instance/detail",
            Self::InstanceRename => "/api/instance/rename",
            Self::InstanceRelease => "/api/instance/release",
            Self::CloudDiskCreate => "/api/storage/cloud_disk/create",
            Self::CloudDiskList => "/api/storage/cloud_disk/list",
            Self::CloudDiskRename => "/api/storage/cloud_disk/rename",
            Self::CloudDiskResize => "/api/storage/cloud_disk/resize",
            Self::CloudDiskRelease => "/api/storage/cloud_disk/release",
            Self::CloudDiskSpecList => "/api/storage/cloud_disk/spec",
            Self::PublicImageList => "/api/image/publics_v2",
            Self::PrivateImageList => "/api/image/privates",
            Self::ImageSave => "/api/instance/save_image_v2",
            Self::ImageRename => "/api/image/update",
            Self::ImageDelete => "/api/image/delete/",
            Self::SpecList => "/api/spec/list",
        }
    }

    /// The effect of a second, equal request.
    ///
    /// A release, rename, resize or delete names its object and its end state, so a repetition changes nothing. A
    /// create and an image save each create (and bill) an object per request. A chat is billed but leaves no object:
    /// until its answer begins it is retried like a read.
    #[must_use]
    pub fn effect(self) -> Effect {
        match self {
            Self::InstanceCreate | Self::CloudDiskCreate | Self::ImageSave => Effect::Creates,
            Self::InstanceRename
            | Self::InstanceRelease
            | Self::CloudDiskRename
            | Self::CloudDiskResize
            | Self::CloudDiskRelease
            | Self::ImageRename
            | Self::ImageDelete => Effect::Repeatable,
            Self::ChatCompletions
            | Self::InstanceList
            | Self::InstanceDetail
            | Self::CloudDiskList
            | Self::CloudDiskSpecList
            | Self::PublicImageList
            | Self::PrivateImageList
            | Self::SpecList => Effect::Reads,
        }
    }

    /// Whether a request may change objects of the service.
    #[must_use]
    pub fn mutates(self) -> bool {
        self.effect() != Effect::Reads
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method(), self.path())
    }
}

/// A request: an endpoint and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(super) endpoint: Endpoint,
    /// The id at the end of the path, for an endpoint whose path names its object.
    id: Option<i64>,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) body: Option<Bytes>,
}

impl Request {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, id: None, query: Vec::new(), body: None }
    }

    /// Sets the object's id in the path (service API, DELETE /api/image/delete/{image_id}).
    pub(super) fn id(mut self, id: i64) -> Self {
        self.id = Some(id);
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// The same with a parameter, if it has a value.
    pub(super) fn query_if(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    /// The path below the base address.
    pub(super) fn path(&self) -> String {
        let id = self.id.map(|id| id.to_string()).unwrap_or_default();
        format!("{}{id}", self.endpoint.path())
    }
}

/// A change in flight: answers requested before its end are outdated after it, however it ends.
pub(super) struct ChangeUnderWay<'a>(&'a AtomicU64);

impl<'a> ChangeUnderWay<'a> {
    pub(super) fn begin(changes: &'a AtomicU64) -> Self {
        changes.fetch_add(1, Ordering::SeqCst);
        Self(changes)
    }
}

impl Drop for ChangeUnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
