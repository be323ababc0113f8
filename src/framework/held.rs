//! What lives in this process between the open and the close of an ephemeral resource.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::private::Private;

/// Anything whose end is its drop.
pub(super) type Thing = dyn Any + Send + Sync;

/// Under this key the private data say which thing is meant.
const KEY: &str = ".held";

/// The things of this process.
#[derive(Debug, Default)]
pub(super) struct Holder(Arc<Mutex<Things>>);

/// By key, each with the task that drops it when its caller is gone.
type Things = HashMap<String, (Arc<Thing>, AbortOnDropHandle<()>)>;

impl Holder {
    /// Holds a thing, and notes in the private data which. When `disconnected` is cancelled nobody will close it, and
    /// it is dropped.
    pub(super) fn hold(&self, thing: Arc<Thing>, private: &mut Private, disconnected: CancellationToken) {
        let key = format!("{:016x}", rand::random::<u64>());
        private.insert(KEY, &key);
        let (things, own) = (Arc::downgrade(&self.0), key.clone());
        let watch = tokio::spawn(async move {
            disconnected.cancelled().await;
            if let Some(things) = things.upgrade() {
                lock(&things).remove(&own);
            }
        });
        lock(&self.0).insert(key, (thing, AbortOnDropHandle::new(watch)));
    }

    /// The thing that the private data mean.
    pub(super) fn find(&self, private: &Private) -> Option<Arc<Thing>> {
        lock(&self.0).get(&private.entry::<String>(KEY)?).map(|(thing, _)| Arc::clone(thing))
    }

    /// The same, which is held no longer.
    pub(super) fn release(&self, private: &Private) -> Option<Arc<Thing>> {
        lock(&self.0).remove(&private.entry::<String>(KEY)?).map(|(thing, _)| thing)
    }

    /// Lets new private data mean the same thing as those before.
    pub(super) fn follow(before: &Private, private: &mut Private) {
        if let Some(key) = before.entry::<String>(KEY) {
            private.insert(KEY, key);
        }
    }
}

fn lock(things: &Mutex<Things>) -> MutexGuard<'_, Things> {
    things.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thing, and what is cancelled when it is dropped.
    fn thing() -> (Arc<Thing>, CancellationToken) {
        let dropped = CancellationToken::new();
        (Arc::new(dropped.clone().drop_guard()), dropped)
    }

    #[tokio::test]
    async fn a_thing_lives_until_it_is_released() {
        let (holder, mut private) = (Holder::default(), Private::default());
        let (one, dropped) = thing();
        holder.hold(one, &mut private, CancellationToken::new());
        let mut renewed = Private::default();
        Holder::follow(&private, &mut renewed);
        assert!(holder.find(&renewed).is_some() && holder.find(&Private::default()).is_none());
        assert!(!dropped.is_cancelled());
        assert!(holder.release(&renewed).is_some() && holder.release(&private).is_none());
        assert!(dropped.is_cancelled());
    }

    #[tokio::test]
    async fn a_thing_outlives_no_caller_but_its_own() {
        let holder = Holder::default();
        let (gone, stays) = (CancellationToken::new(), CancellationToken::new());
        let [(one, one_dropped), (other, other_dropped)] = [thing(), thing()];
        let (mut private, mut of_other) = (Private::default(), Private::default());
        holder.hold(one, &mut private, gone.clone());
        holder.hold(other, &mut of_other, stays);
        gone.cancel();
        one_dropped.cancelled().await;
        assert!(holder.find(&private).is_none());
        assert!(holder.find(&of_other).is_some() && !other_dropped.is_cancelled());
    }
}
