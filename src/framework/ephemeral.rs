//! Ephemeral resources, as their authors write them, and what of them lives in this process from open to close.

use std::{
    any::Any,
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{diagnostics::Diagnostics, model::Model, resource::StepContext, schema::Schema, server::DEFAULT_TIMEOUT};

/// An ephemeral resource: it is there while a run uses it and is never stored: opened in the plan, opened again in the
/// apply, and closed at the end of each (plugin protocol, ephemeral resources).
pub trait EphemeralResource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;
    /// What lives in this process from open to close, such as a local listener; `()` for nothing. Its drop is the
    /// close; it is dropped too when the core is gone.
    type Held: Send + Sync + 'static;

    /// The full type name, such as `damodel_instance_access`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// How long an open may take.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }

    /// Rules between attributes, judged without the service. Unknown values obey every rule.
    fn validate(&self, _config: &Self::Model, _diagnostics: &mut Diagnostics) {}

    /// Opens. The configuration is wholly known and has its defaults. What it says stands in the result as it is; the
    /// rest is what was found.
    fn open(
        &self,
        config: Self::Model,
        context: StepContext<Self::Client>,
    ) -> impl Future<Output = Opened<Self::Model, Self::Held>> + Send;
}

/// What an open led to.
#[derive(Debug)]
pub struct Opened<M, H> {
    /// The result; none only with errors.
    pub result: Option<M>,
    /// What lives until the close. With errors it is dropped at once.
    pub held: Option<H>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<M, H> Opened<M, H> {
    /// It is open, for as long as the run lasts.
    pub fn ready(result: M) -> Self {
        Self { result: Some(result), held: None, diagnostics: Diagnostics::new() }
    }

    /// It could not be opened.
    pub fn failed(diagnostics: impl Into<Diagnostics>) -> Self {
        Self { result: None, held: None, diagnostics: diagnostics.into() }
    }

    /// The same with something that lives until the close.
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

/// Anything whose end is its drop.
pub(super) type Thing = Box<dyn Any + Send + Sync>;

/// The objects that this process holds, by key, each with the task that drops it when its caller is gone.
#[derive(Debug, Default)]
pub(super) struct Holder(Arc<Mutex<Things>>);

type Things = HashMap<String, (Thing, AbortOnDropHandle<()>)>;

impl Holder {
    /// Holds an object, and says under which key. When `disconnected` is cancelled, no close will come, and it is
    /// dropped.
    pub(super) fn hold(&self, thing: Thing, disconnected: CancellationToken) -> String {
        let key = format!("{:016x}", rand::random::<u64>());
        let (things, own) = (Arc::downgrade(&self.0), key.clone());
        let watch = tokio::spawn(async move {
            disconnected.cancelled().await;
            if let Some(things) = things.upgrade() {
                lock(&things).remove(&own);
            }
        });
        lock(&self.0).insert(key.clone(), (thing, AbortOnDropHandle::new(watch)));
        key
    }

    /// Drops the object of a key.
    pub(super) fn release(&self, key: &str) {
        drop(lock(&self.0).remove(key));
    }
}

fn lock(things: &Mutex<Things>) -> MutexGuard<'_, Things> {
    things.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object, and what is cancelled when it is dropped.
    fn thing() -> (Thing, CancellationToken) {
        let dropped = CancellationToken::new();
        (Box::new(dropped.clone().drop_guard()), dropped)
    }

    #[tokio::test]
    async fn a_thing_lives_until_it_is_released_or_its_own_caller_is_gone() {
        let (holder, gone) = (Holder::default(), CancellationToken::new());
        let [(one, one_dropped), (other, other_dropped)] = [thing(), thing()];
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
