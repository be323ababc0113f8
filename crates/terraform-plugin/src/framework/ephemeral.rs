//! The trait of ephemeral resources, and the objects that this process keeps for them from open to close.

use std::{
    any::Any,
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    diagnostics::{Diagnostics, Result},
    model::Model,
    resource::StepContext,
    schema::Schema,
    timeouts::DEFAULT_TIMEOUT,
};

/// An ephemeral resource: it exists while a run uses it and is never stored. It is opened in the plan, opened again in
/// the apply, and closed at the end of each (plugin protocol, ephemeral resources).
pub trait EphemeralResource: Send + Sync + 'static {
    /// The client that the provider's configuration yields.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;
    /// The object that exists in this process from open to close, such as a local listener; `()` if none is needed.
    /// Dropping it is the close; it is also dropped when the core has exited.
    type Held: Send + Sync + 'static;

    /// The full type name, such as `acme_access`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// The timeout of an open.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Checks rules between attributes without the service. Unknown values satisfy every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Opens. The configuration is wholly known and has its defaults. The result repeats the configured values; the
    /// open fills in the others.
    fn open(
        &self,
        config: Self::Model,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Result<Opened<Self::Model, Self::Held>>> + Send;
}

/// The outcome of an open.
#[derive(Debug)]
pub struct Opened<M, H> {
    /// The result.
    pub result: M,
    /// The object kept until the close. With errors it is dropped at once.
    pub held: Option<H>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<M, H> Opened<M, H> {
    /// A successful open that needs no object in this process.
    pub fn ready(result: M) -> Self {
        Self { result, held: None, diagnostics: Diagnostics::new() }
    }

    /// The same with an object that is kept until the close.
    #[must_use]
    pub fn holding(mut self, held: H) -> Self {
        self.held = Some(held);
        self
    }

    /// The same with messages.
    #[must_use]
    pub fn with(mut self, diagnostics: impl Into<Diagnostics>) -> Self {
        self.diagnostics.extend(diagnostics.into());
        self
    }
}

/// An open object, which is closed by its drop.
pub(super) type OpenObject = Box<dyn Any + Send + Sync>;

/// The open objects of this process by key, each with the task that drops it when its caller is gone.
#[derive(Debug, Default)]
pub(super) struct HeldObjects(Arc<Mutex<ObjectsByKey>>);

type ObjectsByKey = HashMap<String, (OpenObject, AbortOnDropHandle<()>)>;

impl HeldObjects {
    /// Keeps an object, and returns its key. It is dropped when `disconnected` is cancelled, because no close can
    /// follow.
    pub(super) fn hold(&self, object: OpenObject, disconnected: CancellationToken) -> String {
        let key = format!("{:016x}", rand::random::<u64>());
        let (objects, own) = (Arc::downgrade(&self.0), key.clone());
        let watch = tokio::spawn(async move {
            disconnected.cancelled().await;
            if let Some(objects) = objects.upgrade() {
                lock(&objects).remove(&own);
            }
        });
        lock(&self.0).insert(key.clone(), (object, AbortOnDropHandle::new(watch)));
        key
    }

    /// Drops the object of a key.
    pub(super) fn release(&self, key: &str) {
        drop(lock(&self.0).remove(key));
    }
}

fn lock(objects: &Mutex<ObjectsByKey>) -> MutexGuard<'_, ObjectsByKey> {
    objects.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object, and the token that its drop cancels.
    fn object() -> (OpenObject, CancellationToken) {
        let dropped = CancellationToken::new();
        (Box::new(dropped.clone().drop_guard()), dropped)
    }

    #[tokio::test]
    async fn an_object_is_held_until_it_is_released_or_its_own_caller_is_gone() {
        let (holder, gone) = (HeldObjects::default(), CancellationToken::new());
        let [(one, one_dropped), (other, other_dropped)] = [object(), object()];
        holder.hold(one, gone.clone());
        let key = holder.hold(other, CancellationToken::new());
        assert!(!one_dropped.is_cancelled());
        gone.cancel();
        one_dropped.cancelled().await;
        assert!(!other_dropped.is_cancelled());
        holder.release(&key);
        assert!(other_dropped.is_cancelled());
        holder.release(&key);
    }
}
