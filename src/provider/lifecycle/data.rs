//! The two data sources of a kind: one object that matches the configuration, and all objects that match the filters.

use std::{future::Future, marker::PhantomData, sync::Arc};

use super::{Filters, Managed, ObjectRecord, noun};
use crate::{
    api::{Listing, Object as _, Record as _},
    framework::{
        Attr, DataSource, Diagnostic, Diagnostics, Model, Outcome, Private, Schema, StepContext, overlay, project,
    },
    provider::{
        ProviderClient,
        choose::{Selection, Takes},
        client::limits,
        errors::Failure,
    },
};

/// The configuration and result of the data source that reads all objects of a kind: the attributes of
/// [`Self::Filters`], and one with a row for each object.
pub(in crate::provider) trait PluralModel: Model {
    /// The filters.
    type Filters: Filters + Default;
    /// The attributes of one object: a part of the resource's.
    type Row: Model + Default;

    /// Its type in HCL.
    const TYPE_NAME: &'static str;

    /// The schema.
    fn schema() -> Schema;

    /// The attribute with the rows.
    fn rows(&mut self) -> &mut Attr<Vec<Self::Row>>;

    /// The row of one object.
    fn row(record: &ObjectRecord<<Self::Filters as Filters>::Managed>) -> Self::Row {
        project(&state::<<Self::Filters as Filters>::Managed>(record)).unwrap_or_default()
    }
}

/// The state of an object, as far as a list shows it.
pub(in crate::provider) fn state<M: Managed>(record: &ObjectRecord<M>) -> M {
    let mut state = M::default();
    state.take_record(record);
    state
}

/// The data source that reads all objects of a kind.
#[derive(Debug)]
pub(in crate::provider) struct Plural<D>(PhantomData<fn() -> D>);

impl<D> Default for Plural<D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<D: PluralModel> DataSource for Plural<D> {
    type Client = ProviderClient;
    type Model = D;

    fn type_name(&self) -> &'static str {
        D::TYPE_NAME
    }

    fn schema(&self) -> Schema {
        D::schema()
    }

    async fn read(&self, mut config: D, context: StepContext<ProviderClient>) -> Outcome<D> {
        let filters: D::Filters = project(&config).unwrap_or_default();
        match filters.matching(&context).await {
            Ok(listing) => {
                let accepts = filters.accepts();
                let records = listing.records.iter().filter(|record| accepts(record));
                *config.rows() = Attr::Known(records.map(D::row).collect());
                Outcome::present(config, Private::default())
            }
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}

/// The configuration and result of the data source that reads one object of a kind.
pub(in crate::provider) trait SingularModel: Model {
    /// The kind.
    type Managed: Managed;

    /// The schema.
    fn schema() -> Schema;

    /// Checks the rules between arguments without the service.
    fn validate(&self, diagnostics: &mut Diagnostics);

    /// The object, if the configuration has its key and no list is needed.
    fn named(&self) -> Option<ObjectRecord<Self::Managed>> {
        None
    }

    /// The handling of several matches.
    fn takes(&self) -> Takes<ObjectRecord<Self::Managed>> {
        Takes::TheOnlyOne
    }

    /// The name of an object in an error.
    fn label(record: &ObjectRecord<Self::Managed>) -> String {
        format!("{} {:?}", record.key(), record.name().unwrap_or_default())
    }

    /// Whether an object matches the configuration.
    fn matches(&self) -> impl Fn(&ObjectRecord<Self::Managed>) -> bool + Send + Sync;

    /// Reads the attributes of the object.
    fn read(
        self,
        record: &ObjectRecord<Self::Managed>,
        _context: &StepContext<ProviderClient>,
    ) -> impl Future<Output = Result<Self, Diagnostic>> + Send {
        let read = overlay(&self, &state::<Self::Managed>(record));
        async { read.map_err(unreadable) }
    }
}

/// The diagnostic for a state that does not fit the data source's model; tests exclude this.
pub(in crate::provider) fn unreadable(error: crate::framework::ModelError) -> Diagnostic {
    Diagnostic::error("The provider could not read a value", error.to_string())
}

/// The data source that reads one object of a kind.
#[derive(Debug)]
pub(in crate::provider) struct Singular<D>(PhantomData<fn() -> D>);

impl<D> Default for Singular<D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<D: SingularModel> DataSource for Singular<D> {
    type Client = ProviderClient;
    type Model = D;

    fn type_name(&self) -> &'static str {
        D::Managed::TYPE_NAME
    }

    fn schema(&self) -> Schema {
        D::schema()
    }

    fn validate(&self, config: &D, diagnostics: &mut Diagnostics) {
        config.validate(diagnostics);
    }

    async fn read(&self, config: D, context: StepContext<ProviderClient>) -> Outcome<D> {
        match read_single(config, &context).await {
            Ok(found) => Outcome::present(found, Private::default()),
            Err(diagnostic) => Outcome::absent().with(diagnostic),
        }
    }
}

async fn read_single<D: SingularModel>(config: D, context: &StepContext<ProviderClient>) -> Result<D, Diagnostic> {
    let record = match config.named() {
        Some(record) => record,
        None => choose(&config, snapshot::<D::Managed>(context).await?.as_ref())?,
    };
    config.read(&record, context).await
}

fn choose<D: SingularModel>(
    config: &D,
    listing: &Listing<ObjectRecord<D::Managed>>,
) -> Result<ObjectRecord<D::Managed>, Diagnostic> {
    let choice = Selection { what: noun::<D::Managed>(), takes: config.takes(), label: D::label };
    let matches = config.matches();
    choice.one(&listing.records, |record| !record.is_released() && matches(record)).cloned()
}

/// All objects of a kind, from the shared snapshot.
pub(in crate::provider) async fn snapshot<M: Managed>(
    context: &StepContext<ProviderClient>,
) -> Result<Arc<Listing<ObjectRecord<M>>>, Diagnostic> {
    context.client.api.objects::<M::Object>().snapshot(&limits(context)).await.map_err(|error| {
        Failure { error: &error, tried: format!("list the {}s", noun::<M>()), now: String::new() }.whole()
    })
}
