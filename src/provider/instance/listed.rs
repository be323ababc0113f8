//! The data sources of instances, one instance with all reported attributes and all instances that match, and their
//! list resource.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::schema::{self, Instance, store_credentials};
use crate::{
    api::{self, InstanceFilter, InstanceUid},
    framework::{Type, Value, from_value, schema::Attribute, to_value},
    provider::{
        StepContext,
        client::limits,
        columns::{Column, attributes, moment, text, whole, word},
        lifecycle::rows,
        rules,
        source::{self, Filter, ListAll, ListedRows, Needs, Plural, RowsOrError, Singular, Source, Takes, equal},
        words::login_method,
    },
};

/// An instance of a list (service API, Instance).
pub(in crate::provider) static COLUMNS: &[Column] = &[
    text("instance_uid", "The instance's UID.").logged(),
    text("name", "The instance's name.").of_field("instance_alias").logged(),
    text("status", "The instance's status.").logged(),
    text("region", "The instance's region.").logged(),
    text("capacity_type", "`ondemand` or `spot`.").logged(),
    text("gpu_name", "The GPU model.").logged(),
    whole("gpu_num", "How many GPUs.").logged(),
    whole("spec_id", "The specification's number.").logged(),
    text("spec_type", "The specification's code.").logged(),
    text("payment_type", "The payment type.").logged(),
    whole("image_id", "The image's number.").logged(),
    text("image_name", "The image's name.").logged(),
    text("image_type", "`public` or `private`.").logged(),
    text("ssh_host", "The address for SSH.").logged(),
    whole("ssh_port", "The port for SSH.").logged(),
    word("login_method", login_method, "`ssh_key` or `password`.").logged(),
    text("ssh_pubkey_name", "The name of the registered public key.").logged(),
    text("external_ip", "The public address.").logged(),
    text("internal_ip", "The address within the service's network.").logged(),
    text("jupyter_url", "The notebook's address, without its token."),
    moment("start_time", "When it started (RFC 3339, UTC).").logged(),
    moment("stop_time", "When it stopped (RFC 3339, UTC).").logged(),
    moment("release_time", "When it was or will be released (RFC 3339, UTC).").logged(),
];

/// `damodel_instances`.
pub(in crate::provider) fn plural() -> Plural {
    Plural {
        source: Source {
            type_name: "damodel_instances",
            description: "The instances of the account. Released ones are shown as long as the service lists them.",
            columns: attributes(COLUMNS),
            filters: filters("`Creating`, `Running`, `Stopped`, `Released`, `Failed`, …"),
            list: |config, context| Box::pin(list(|_| true, config, context)),
        },
        rows: "instances",
        rows_description: "The instances that match, by UID, without their secrets.",
    }
}

/// `damodel_instance`.
pub(in crate::provider) fn singular() -> Singular {
    let either = |name, description: &str| Attribute::optional_computed(name, Type::String, description);
    let name = either("name", "The instance's name, which must be unique. Either this or `id`.");
    let id = either("id", "The instance's UID. Either this or `name`.").validate(rules::instance_uid());
    Singular {
        source: Source {
            type_name: "damodel_instance",
            description: "One instance, by id or by name, with everything that the service reports.",
            columns: reported(),
            filters: vec![
                Filter::On("name", equal, name),
                Filter::On("id", equal, id),
                Filter::Read(store_credentials()),
            ],
            list: by_id_or_name,
        },
        noun: "instance",
        needs: Needs::One(&["id", "name"]),
        takes: Takes::TheOnlyOne,
        label: source::numbered,
        rest: Some(rest),
    }
}

/// The list resource `damodel_instance`.
pub(in crate::provider) fn list_all() -> ListAll {
    ListAll {
        source: Source {
            type_name: "damodel_instance",
            description: "The instances of the account. Released ones are left out, and passwords and tokens are null.",
            columns: Vec::new(),
            filters: filters("`Creating`, `Running`, `Stopped`, `Failed`, …"),
            list: existing,
        },
        noun: "instance",
        rest: Some(rest),
    }
}

/// The filters. The list resource supports fewer statuses.
fn filters(statuses: &str) -> Vec<Filter> {
    let status = format!("Only instances with this status: {statuses}");
    vec![
        Filter::Read(Attribute::optional("query", Type::String, "A part of the UID or name.")),
        Filter::Read(Attribute::optional("status", Type::String, status)),
    ]
}

/// The attributes of the resource that the service reports, all computed, in the words of a list: arguments, and
/// results without the costs that the provider computes.
fn reported() -> Vec<Attribute> {
    let columns = attributes(COLUMNS);
    let arguments = schema::arguments();
    let is_argument = |column: &&Attribute| arguments.iter().any(|argument| argument.name == column.name);
    let image = Attribute::computed("image", Type::String, "The image's full address.");
    let results = schema::reported().into_iter().filter(|it| !["estimated_cost", "price_ceiling"].contains(&&*it.name));
    let results = results.map(|result| {
        columns.iter().find(|column| column.name == result.name).cloned().unwrap_or_else(|| Attribute {
            sensitive: result.sensitive,
            ..Attribute::computed(result.name, result.ty, result.description)
        })
    });
    columns.iter().filter(is_argument).cloned().chain([image]).chain(results).collect()
}

/// The instances that match and are not released.
fn existing<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    Box::pin(list(|instance| !instance.is_released(), config, context))
}

/// The instance of the configured id, for which no list is needed, or all that are not released.
fn by_id_or_name<'a>(config: &'a Value, context: &'a StepContext) -> BoxFuture<'a, RowsOrError> {
    let Some(id) = config.attribute("id").as_str() else { return existing(config, context) };
    let store_credentials = source::flag(config.attribute("store_credentials")).into();
    let named = Instance { id: id.into(), store_credentials, ..Instance::default() };
    Box::pin(async move { Ok(ListedRows::known(vec![to_value(&named).unwrap_or_default()])) })
}

async fn list(is_shown: fn(&api::Instance) -> bool, config: &Value, context: &StepContext) -> RowsOrError {
    let filter = InstanceFilter {
        query: source::text(config.attribute("query")),
        status: source::text(config.attribute("status")),
    };
    let (instances, limits) = (context.client.api.instances(), limits(context));
    let listing = if filter == InstanceFilter::default() {
        instances.snapshot(&limits).await
    } else {
        instances.list(&filter, &limits).await.map(Arc::new)
    };
    ListedRows::read(listing, "instances", config, |instances| {
        let mut rows = rows::<Instance>(instances, is_shown);
        for row in &mut rows {
            row.set_attribute("instance_uid", row.attribute("id").clone());
            for name in ["image_name", "stop_time", "release_time"] {
                row.set_attribute(name, row.attribute("reported").attribute(name).clone());
            }
            row.set_attribute("store_credentials", config.attribute("store_credentials").clone());
        }
        rows
    })
}

/// Reads the instance's detail.
fn rest<'a>(row: &'a Value, context: &'a StepContext) -> BoxFuture<'a, Result<Value, api::Error>> {
    Box::pin(async {
        let (client, limits) = (context.client.as_ref(), limits(context));
        let uid = InstanceUid::new(row.attribute("id").as_str().unwrap_or_default());
        let detail = client.api.instances().detail(&uid, &limits).await?;
        let mut state: Instance = from_value(row).unwrap_or_default();
        state.take_detail(&detail);
        state.complete_image(client, &limits).await;
        Ok(to_value(&state).unwrap_or_default())
    })
}
