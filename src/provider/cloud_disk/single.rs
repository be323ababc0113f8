//! The data source `damodel_cloud_disk`: one disk.

use super::{
    model::{CloudDisk, Record},
    schema::reported,
};
use crate::{
    api,
    framework::{
        Diagnostics, Path, Schema,
        schema::{Attribute, Presence},
    },
    provider::lifecycle::SingularModel,
};

impl SingularModel for Record {
    type Managed = CloudDisk;

    fn schema() -> Schema {
        let as_argument = |mut attribute: Attribute| {
            if matches!(attribute.name.as_str(), "id" | "uid" | "name") {
                attribute.presence = Presence::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attribute
        };
        Schema::new("One cloud disk, by id, UID or name.", reported().into_iter().map(as_argument).collect())
    }

    fn validate(&self, diagnostics: &mut Diagnostics) {
        if self.id.is_null() && self.uid.is_null() && self.name.is_null() {
            diagnostics.error_at(Path::to("id"), "Which disk?", "Set id, uid or name.");
        }
    }

    fn label(disk: &api::CloudDisk) -> String {
        let (name, uid) = (disk.name.as_deref().unwrap_or_default(), disk.uid.as_deref().unwrap_or("no uid"));
        format!("{} {name:?} ({uid})", disk.id)
    }

    fn matches(&self) -> impl Fn(&api::CloudDisk) -> bool + Send + Sync {
        |disk| {
            self.id.as_str().is_none_or(|id| disk.id.to_string() == id)
                && self.uid.as_str().is_none_or(|uid| disk.uid.as_deref() == Some(uid))
                && self.name.as_str().is_none_or(|name| disk.name.as_deref() == Some(name))
        }
    }
}
