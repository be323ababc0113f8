//! The data sources of private images, one image and all images that match, and their list resource (service API, GET
//! /api/image/privates).

use futures_util::future::BoxFuture;

use super::schema::{COLUMNS, PrivateImage};
use crate::{
    framework::{
        StepContext, Type, Value,
        schema::{Attribute, Validator},
    },
    provider::{
        ProviderClient,
        client::limits,
        columns::attributes,
        lifecycle::rows,
        source::{
            self, Filter, ListAll, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes, equal, matching,
        },
    },
};

/// `damodel_private_images`.
pub(in crate::provider) fn plural() -> Plural {
    Plural {
        source: Source {
            type_name: "damodel_private_images",
            description: "The private images of the account.",
            columns: attributes(COLUMNS),
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
    let mut columns = vec![id.clone()];
    columns.extend(attributes(COLUMNS));
    Singular {
        source: Source {
            type_name: "damodel_private_image",
            description: "One private image: by id or name, or by filters that match only one, or the most recent of \
                          several.",
            columns,
            filters: vec![
                Filter::On("id", equal, id),
                pattern(),
                Filter::Read(Attribute::with_default("most_recent", Type::Bool, false, most_recent)),
                Filter::Exact("name"),
                Filter::Exact("status"),
                Filter::Exact("region"),
            ],
            list,
        },
        noun: "private image",
        needs: Needs::Any(&["id", "name", "name_regex", "status", "region"]),
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
            columns: Vec::new(),
            filters: filters(),
            list,
        },
        noun: "private image",
        rest: None,
    }
}

/// The service supports none of these filters.
fn filters() -> Vec<Filter> {
    let text = |name, description: &str| Attribute::optional(name, Type::String, description);
    vec![
        Filter::On("name", equal, text("name", "The name, exactly.")),
        pattern(),
        Filter::On(
            "status",
            equal,
            text("status", "`creating` or `ready`.").validate(Validator::one_of(&["creating", "ready"])),
        ),
        Filter::On("region", equal, text("region", "Only images of this region.")),
    ]
}

fn pattern() -> Filter {
    let description = "A regular expression that the name must match.";
    let pattern =
        Attribute::optional("name_regex", Type::String, description).validate(Validator::regular_expression());
    Filter::On("name", matching, pattern)
}

fn list<'a>(config: &'a Value, context: &'a StepContext<ProviderClient>) -> BoxFuture<'a, RowsOrError> {
    Box::pin(async {
        let images = context.client.api.private_images().snapshot(&limits(context)).await;
        ListedRows::read(images, "private images", config, |images| rows::<PrivateImage>(images, |_| true))
    })
}
