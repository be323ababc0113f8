//! The data sources of private images, one image and all images that match, and their list resource (service API, GET
//! /api/image/privates).

use futures_util::future::BoxFuture;

use super::{COLUMNS, PrivateImage};
use crate::{
    framework::{
        Type, Value,
        schema::{Attribute, Validator},
    },
    provider::{
        StepContext,
        client::limits,
        columns::attributes,
        images::name_filters,
        lifecycle::rows,
        source::{
            self, Filter, ListAll, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes, containing, equal,
        },
    },
};

/// `damodel_private_images`.
pub(in crate::provider) fn plural() -> Plural {
    Plural {
        source: Source {
            type_name: "damodel_private_images",
            description: "The private images of the account.",
            columns: columns(),
            filters: filters(),
            list,
        },
        rows: "images",
        rows_description: "The images that match, by id.",
    }
}

/// `damodel_private_image`.
pub(in crate::provider) fn singular() -> Singular {
    let id = Attribute::optional_computed("id", Type::String, "The image's number, as text.");
    let most_recent = "Whether to take the most recently created of several.";
    let mut columns = columns();
    columns.push(id.clone());
    let mut filters = filters();
    filters.push(Filter::On("id", equal, id));
    filters.push(Filter::Read(Attribute::with_default("most_recent", Type::Bool, false, most_recent)));
    Singular {
        source: Source {
            type_name: "damodel_private_image",
            description: "One private image: by id or name, or by filters that match only one, or the most recent of \
                          several.",
            columns,
            filters,
            list,
        },
        noun: "private image",
        needs: Needs::Any(&["id", "name", "name_contains", "name_regex", "status", "region"]),
        takes: Takes::MostRecent("most_recent", &["create_time"]),
        label: source::numbered,
        rest: None,
    }
}

/// The list resource `damodel_private_image`.
pub(in crate::provider) fn list_all() -> ListAll {
    ListAll {
        source: Source {
            type_name: "damodel_private_image",
            description: "The private images of the account.",
            columns: columns(),
            filters: filters(),
            list,
        },
        noun: "private image",
        rest: None,
    }
}

fn columns() -> Vec<Attribute> {
    let mut columns = attributes(COLUMNS);
    if let Some(status) = columns.iter_mut().find(|column| &*column.name == "status") {
        status.validators.push(Validator::one_of(&["creating", "ready"]));
    }
    columns
}

/// All of them are tested here: the service's own search by name is not described.
fn filters() -> Vec<Filter> {
    let part = "A part of the name, in upper or lower case.";
    let mut filters = Vec::from(name_filters(part, |part| Filter::On("name", containing, part)));
    filters.extend(["status", "region"].map(Filter::Exact));
    filters
}

fn list<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(async {
        let images = context.client.api.private_images().snapshot(&limits(context)).await;
        ListedRows::read(images, "private images", config, |images| rows::<PrivateImage>(images, |_| true))
    })
}
