//! The list resource `damodel_instance`: the instances of the account, for `terraform query`.

use std::ops::ControlFlow;

use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{
    listed::{arguments, matching},
    model::Instance,
};
use crate::{
    api::{self, Code},
    framework::{Attr, Context, Diagnostics, Found, ListResource, Listed, Schema},
    provider::{Client, client::limits, errors::Failure, words::title},
};

/// How many details are asked for at once.
const AT_ONCE: usize = 8;

/// The list resource.
#[derive(Debug)]
pub(in crate::provider) struct ListAll;

/// Its filters, which are those of the data source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Filters {
    query: Attr<String>,
    status: Attr<String>,
}

impl ListResource for ListAll {
    type Client = Client;
    type Model = Filters;
    type Resource = Instance;

    fn type_name(&self) -> &'static str {
        "damodel_instance"
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "The instances of the account. Released ones are left out, and passwords and tokens are null.",
            arguments("`Creating`, `Running`, `Stopped`, `Failed`, …"),
        )
    }

    async fn list(&self, config: Filters, mut found: Found<'_, Instance>, context: Context<Client>) -> Diagnostics {
        let listing = match matching(&config.query, &config.status, &context).await {
            Ok(listing) => listing,
            Err(diagnostic) => return diagnostic.into(),
        };
        let living = listing.records.iter().filter(|instance| !instance.is_released());
        let mut living: Vec<api::Instance> = living.cloned().collect();
        living.sort_by(|a, b| a.uid.cmp(&b.uid));
        let whole = found.wants_state();
        let states = living.into_iter().take(found.wanted()).map(|record| state(record, whole, &context));
        let mut states = stream::iter(states).buffered(AT_ONCE);
        while let Some(listed) = states.next().await {
            match listed {
                Ok(None) => {}
                Ok(Some(listed)) => {
                    if let ControlFlow::Break(()) = found.tell(listed).await {
                        break;
                    }
                }
                Err(diagnostics) => return diagnostics,
            }
        }
        Diagnostics::new()
    }
}

/// An instance as it is told of; none for one that has gone since the list was made.
async fn state(
    record: api::Instance,
    whole: bool,
    context: &Context<Client>,
) -> Result<Option<Listed<Instance>>, Diagnostics> {
    let display_name = record.name.clone().unwrap_or_else(|| record.uid.to_string());
    let mut state = Instance::default();
    if !whole {
        state.take_record(&record);
        return Ok(Some(Listed { display_name, state }));
    }
    let (client, limits) = (context.client.as_ref(), limits(context));
    match client.api.instances().detail(&record.uid, &limits).await {
        Ok(detail) if detail.instance.is_released() => Ok(None),
        Ok(detail) => {
            state.take_detail(&detail);
            state.complete_image(client, &limits).await;
            Ok(Some(Listed { display_name, state }))
        }
        Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => Ok(None),
        Err(error) => {
            let tried = format!("read {}", title("instance", record.name.as_deref(), Some(record.uid.as_str())));
            Err(Failure { error: &error, tried, now: String::new() }.whole().into())
        }
    }
}
