//! The list resource of a kind, for `terraform query`.

use std::{future::Future, marker::PhantomData, ops::ControlFlow, sync::Arc};

use futures_util::{StreamExt, stream};

use super::{Managed, ObjectRecord, data::state};
use crate::{
    api::{Listing, Object, Record as _},
    framework::{Diagnostic, Diagnostics, ListResource, ListSender, Listed, Model, Schema, StepContext},
    provider::ProviderClient,
};

/// The number of concurrent requests for details.
const AT_ONCE: usize = 8;

/// The filters of a kind's list, which are those of its data source.
pub(in crate::provider) trait Filters: Model {
    /// The listed kind.
    type Managed: Managed;

    /// The schema of the list resource.
    fn schema() -> Schema;

    /// The objects that match the filters of the service.
    fn matching(
        &self,
        context: &StepContext<ProviderClient>,
    ) -> impl Future<Output = Result<Arc<Listing<ObjectRecord<Self::Managed>>>, Diagnostic>> + Send;

    /// The filters that the service does not support.
    fn accepts(&self) -> impl Fn(&ObjectRecord<Self::Managed>) -> bool + Send + Sync {
        |_| true
    }

    /// The state of a listed object; `None` if it has disappeared since the list was read.
    fn state(
        record: ObjectRecord<Self::Managed>,
        _whole: bool,
        _context: &StepContext<ProviderClient>,
    ) -> impl Future<Output = Result<Option<Self::Managed>, Diagnostic>> + Send {
        let state = state(&record);
        async { Ok(Some(state)) }
    }
}

#[derive(Debug)]
pub(in crate::provider) struct ListAll<F>(PhantomData<fn() -> F>);

impl<F> Default for ListAll<F> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<F: Filters> ListResource for ListAll<F> {
    type Client = ProviderClient;
    type Model = F;
    type Resource = F::Managed;

    fn type_name(&self) -> &'static str {
        F::Managed::TYPE_NAME
    }

    fn schema(&self) -> Schema {
        F::schema()
    }

    async fn list(
        &self,
        filters: F,
        mut found: ListSender<'_, F::Managed>,
        context: StepContext<ProviderClient>,
    ) -> Diagnostics {
        let listing = match filters.matching(&context).await {
            Ok(listing) => listing,
            Err(diagnostic) => return diagnostic.into(),
        };
        let (whole, wanted) = (found.wants_state(), found.wanted());
        let records: Vec<_> = {
            let accepts = filters.accepts();
            let records = listing.records.iter().filter(|record| !record.is_released() && accepts(record));
            records.take(wanted).cloned().collect()
        };
        let states = records.into_iter().map(|record| {
            let display_name = record.name().map_or_else(|| record.key().to_string(), str::to_owned);
            let state = F::state(record, whole, &context);
            async move { Ok(state.await?.map(|state| Listed { display_name, state })) }
        });
        let mut states = stream::iter(states).buffered(AT_ONCE);
        while let Some(listed) = states.next().await {
            let listed: Result<Option<Listed<F::Managed>>, Diagnostic> = listed;
            match listed {
                Ok(None) => {}
                Ok(Some(listed)) => {
                    if let ControlFlow::Break(()) = found.send(listed).await {
                        break;
                    }
                }
                Err(diagnostic) => return diagnostic.into(),
            }
        }
        Diagnostics::new()
    }
}
