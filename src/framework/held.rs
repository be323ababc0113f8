//! What lives in this process between the open and the close of an ephemeral resource.

use std::{
    any::Any,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
};

use tokio_util::sync::CancellationToken;

use super::private::Private;

/// Anything whose end is its drop.
pub(super) type Thing = dyn Any + Send + Sync;

/// Under this key the private data say which thing is meant.
const KEY: &str = ".held";

/// The things of this process.
#[derive(Debug)]
pub(super) struct Holder {
    things: Arc<Mutex<HashMap<String, Arc<Thing>>>>,
    unheard: CancellationToken,
    watched: Once,
}

impl Holder {
    /// Holds nothing yet. When `unheard` is cancelled the core is gone, and everything is dropped: nobody will close it any more.
    pub(super) fn new(unheard: CancellationToken) -> Self {
        Self { things: Arc::default(), unheard, watched: Once::new() }
    }

    /// Holds a thing, and notes in the private data which.
    pub(super) fn hold(&self, thing: Arc<Thing>, private: &mut Private) {
        let key = format!("{:016x}", rand::random::<u64>());
        private.insert(KEY, &key);
        lock(&self.things).insert(key, thing);
        self.watched.call_once(|| {
            let (things, unheard) = (Arc::downgrade(&self.things), self.unheard.clone());
            tokio::spawn(async move {
                unheard.cancelled().await;
                if let Some(things) = things.upgrade() {
                    lock(&things).clear();
                }
            });
        });
    }

    /// The thing that the private data mean.
    pub(super) fn find(&self, private: &Private) -> Option<Arc<Thing>> {
        lock(&self.things).get(&private.entry::<String>(KEY)?).cloned()
    }

    /// The same, which is held no longer.
    pub(super) fn release(&self, private: &Private) -> Option<Arc<Thing>> {
        lock(&self.things).remove(&private.entry::<String>(KEY)?)
    }

    /// Lets new private data mean the same thing as those before.
    pub(super) fn follow(before: &Private, private: &mut Private) {
        if let Some(key) = before.entry::<String>(KEY) {
            private.insert(KEY, key);
        }
    }
}

fn lock(things: &Mutex<HashMap<String, Arc<Thing>>>) -> MutexGuard<'_, HashMap<String, Arc<Thing>>> {
    things.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thing_lives_until_it_is_released() {
        let holder = Holder::new(CancellationToken::new());
        let (one, mut private) = (Arc::new("one"), Private::default());
        holder.hold(one.clone(), &mut private);
        let mut renewed = Private::default();
        Holder::follow(&private, &mut renewed);
        assert!(holder.find(&renewed).is_some() && holder.find(&Private::default()).is_none());
        assert_eq!(Arc::strong_count(&one), 2);
        assert!(holder.release(&renewed).is_some() && holder.release(&private).is_none());
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[tokio::test]
    async fn nothing_outlives_the_core() {
        let unheard = CancellationToken::new();
        let holder = Holder::new(unheard.clone());
        let (dropped, mut private) = (CancellationToken::new(), Private::default());
        holder.hold(Arc::new(dropped.clone().drop_guard()), &mut private);
        unheard.cancel();
        dropped.cancelled().await;
        assert!(holder.find(&private).is_none());
    }
}
