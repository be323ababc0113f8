//! The caller's word before each request of a create.

use std::{fmt, future::Future, sync::Arc};

use futures_util::future::BoxFuture;

use crate::api::context::Context;

/// What a create does instead of sending, or not.
#[derive(Clone, Debug)]
pub enum Permission<K> {
    /// Takes this object, which an earlier run made for the same configuration, and whose record is lost.
    Adopt(Box<K>),
    /// Sends nothing, and fails with [`Error::Withdrawn`](crate::api::Error::Withdrawn).
    Refuse,
    /// Sends its request.
    Send,
}

type Question<K> = Arc<dyn Fn(Context) -> BoxFuture<'static, Permission<K>> + Send + Sync>;

/// A question to the caller before a create sends its request, at first and after each wait for capacity: much may have changed
/// meanwhile, the price first of all. What an earlier run left behind is adopted without it.
pub struct BeforeSending<K>(Option<Question<K>>);

impl<K> BeforeSending<K> {
    /// Asks this, within the time that the create has left.
    pub fn asks<F>(question: impl Fn(Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Permission<K>> + Send + 'static,
    {
        Self(Some(Arc::new(move |context| Box::pin(question(context)))))
    }

    /// The answer; without a question the request is sent.
    pub(super) async fn answer(&self, context: &Context) -> Permission<K> {
        match &self.0 {
            Some(question) => question(context.clone()).await,
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
