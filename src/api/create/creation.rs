//! What tells one kind of create from another.

use std::{future::Future, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use crate::api::{
    client::Client,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    marker,
    pending::{Ids, Kind, Record},
    settings::Random,
};

/// What a kind of thing needs to be created this way.
pub(in crate::api) trait Creation: Send + Sync + 'static {
    /// What the service calls it.
    type Made: Send + 'static;

    const ENDPOINT: Endpoint;
    const KIND: Kind;

    fn wanted_name(&self) -> Option<&str>;

    /// The name that is sent, by which the thing is found without an answer.
    fn marker(&self, random: &Random) -> String {
        marker::mark(self.wanted_name(), random)
    }

    /// The request, with the name that is sent.
    fn body(&self, marker: &str) -> Value;

    /// What an answer says; none when it does not say what was made.
    fn read(&self, result: &Value) -> Option<Self::Made>;

    /// What carries the name that was sent, by a list of all that was asked for at `since` or later.
    fn find(
        &self,
        client: &Client,
        sent: &Record,
        since: Instant,
        context: &Context,
    ) -> impl Future<Output = Result<Sought<Self::Made>, Error>> + Send;

    /// What carries the name that was sent, by a search for it: the last look, before what no list shows is
    /// called not there. An endpoint without a search has no second opinion.
    fn search(
        &self,
        _client: &Client,
        _sent: &Record,
        _context: &Context,
    ) -> impl Future<Output = Result<Sought<Self::Made>, Error>> + Send {
        async { Ok(Sought { found: Vec::new(), complete: true }) }
    }

    /// Whether what an earlier run made is gone by now, for sure; `age` is the age of its create.
    fn is_gone(
        &self,
        client: &Client,
        ids: &Ids,
        age: Duration,
        context: &Context,
    ) -> impl Future<Output = bool> + Send;

    fn ids(made: &Self::Made) -> Ids;

    /// What the journal remembers; none when it is not what [`Self::ids`] wrote.
    fn recall(&self, ids: &Ids) -> Option<Self::Made>;
}

/// What a look found.
#[derive(Debug)]
pub(in crate::api) struct Sought<T> {
    pub(in crate::api) found: Vec<T>,
    /// Whether what was not found is not there.
    pub(in crate::api) complete: bool,
}
