//! The caller's word before each request of a create.

use std::{fmt, future::Future, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::api::context::Context;

/// What a create does instead of sending, or not.
#[derive(Clone, Debug)]
pub enum Permission<K> {
    /// Takes this object, which an earlier run made for the same configuration, and whose record is lost.
    Adopt(Box<K>),
    /// Does not send this request. A create without another choice fails with
    /// [`Error::Withdrawn`](crate::api::Error::Withdrawn).
    Refuse,
    /// Sends its request.
    Send,
}

/// One request of a create, about to be sent.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its place among the choices.
    pub choice: usize,
    /// When the round over the choices began: what was asked for since then is not asked again.
    pub since: Instant,
    /// The name that is sent: that of all requests of this create.
    pub marker: String,
}

type Question<K> = Arc<dyn Fn(Attempt, Context) -> BoxFuture<'static, Permission<K>> + Send + Sync>;

/// A question to the caller before a create sends a request, each choice in each round: much may have changed
/// meanwhile, the price first of all. What an earlier run left behind is adopted without it.
pub struct BeforeSending<K>(Option<Question<K>>);

impl<K> BeforeSending<K> {
    /// Asks this, within the time that the create has left.
    pub fn asks<F>(question: impl Fn(Attempt, Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Permission<K>> + Send + 'static,
    {
        Self(Some(Arc::new(move |attempt, context| Box::pin(question(attempt, context)))))
    }

    /// The answer; without a question the request is sent.
    pub(super) async fn answer(&self, attempt: Attempt, context: &Context) -> Permission<K> {
        match &self.0 {
            Some(question) => question(attempt, context.clone()).await,
            None => Permission::Send,
        }
    }
}

impl<K> Clone for BeforeSending<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> Default for BeforeSending<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K> fmt::Debug for BeforeSending<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("BeforeSending").field(&self.0.is_some()).finish()
    }
}
