//! The data source `damodel_cloud_disk`: one disk.

use super::{model::Record, schema::reported};
use crate::{
    api,
    framework::{Context, DataSource, Diagnostics, Outcome, Path, Private, Schema, schema::Presence},
    provider::{
        Client,
        choose::{Choice, Takes},
        client::limits,
        errors::Failure,
    },
};

/// The data source.
#[derive(Debug)]
pub(in crate::provider) struct Single;

impl DataSource for Single {
    type Client = Client;
    type Model = Record;

    fn type_name(&self) -> &'static str {
        "damodel_cloud_disk"
    }

    fn schema(&self) -> Schema {
        let as_argument = |mut attribute: crate::framework::schema::Attribute| {
            if matches!(attribute.name.as_str(), "id" | "uid" | "name") {
                attribute.presence = Presence::OptionalComputed;
                attribute.description.push_str(" As an argument it must match exactly.");
            }
            attribute
        };
        Schema::new("One cloud disk, by id, UID or name.", reported().into_iter().map(as_argument).collect())
    }

    fn validate(&self, config: &Record, diagnostics: &mut Diagnostics) {
        if config.id.is_null() && config.uid.is_null() && config.name.is_null() {
            diagnostics.error_at(Path::to("id"), "Which disk?", "Set id, uid or name.");
        }
    }

    async fn read(&self, config: Record, context: Context<Client>) -> Outcome<Record> {
        let listing = match context.client.api.cloud_disks().snapshot(&limits(&context)).await {
            Ok(listing) => listing,
            Err(error) => {
                let failure = Failure { error: &error, tried: "list the cloud disks".to_owned(), now: String::new() };
                return Outcome::absent().with(failure.whole());
            }
        };
        let choice = Choice {
            what: "cloud disk",
            takes: Takes::TheOnlyOne,
            label: |disk: &api::CloudDisk| {
                format!(
                    "{} {:?} ({})",
                    disk.id,
                    disk.name.as_deref().unwrap_or_default(),
                    disk.uid.as_deref().unwrap_or("no uid")
                )
            },
        };
        let matches = |disk: &api::CloudDisk| {
            !disk.is_released()
                && config.id.as_str().is_none_or(|id| disk.id.to_string() == id)
                && config.uid.as_str().is_none_or(|uid| disk.uid.as_deref() == Some(uid))
                && config.name.as_str().is_none_or(|name| disk.name.as_deref() == Some(name))
        };
        match choice.one(&listing.records, matches) {
            Ok(disk) => Outcome::present(Record::of(disk), Private::default()),
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}
