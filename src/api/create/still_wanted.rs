use std::{fmt, future::Future, sync::Arc};

use futures_util::future::BoxFuture;

use crate::api::context::Context;

/// A question to whoever wants a thing, before its create is sent again after a wait for capacity: is it still wanted? Much may have
/// changed meanwhile, its price first of all.
#[derive(Clone, Default)]
pub struct StillWanted(Option<Arc<dyn Fn(Context) -> BoxFuture<'static, bool> + Send + Sync>>);

impl StillWanted {
    /// Asks this, within the time that the create has left.
    pub fn asks<F>(question: impl Fn(Context) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        Self(Some(Arc::new(move |context| Box::pin(question(context)))))
    }

    /// The answer. What nobody asks about is wanted.
    pub(super) async fn answer(&self, context: &Context) -> bool {
        match &self.0 {
            Some(question) => question(context.clone()).await,
            None => true,
        }
    }
}

impl fmt::Debug for StillWanted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("StillWanted").field(&self.0.is_some()).finish()
    }
}
