//! Where a caught panic came from. Only the panic hook is told that, so there is one hook, which notes it for the call at hand.

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Once, OnceLock},
};

use futures_util::FutureExt as _;

tokio::task_local! {
    static LOCATION: Arc<OnceLock<String>>;
}

/// A panic that was caught.
pub(super) struct Panic {
    /// What it said.
    pub(super) message: String,
    /// File and line.
    pub(super) location: String,
}

/// Lets panics inside [`catch`] be noted there; all others go to the hook that was there before. A hook that is set later must not
/// expect to see the first kind unseen.
pub(super) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let noted = LOCATION.try_with(|slot| {
                if let Some(location) = info.location() {
                    // A second panic of the same call happens while the first one unwinds, and says less.
                    let _ = slot.set(location.to_string());
                }
            });
            if noted.is_err() {
                earlier(info);
            }
        }));
    });
}

/// Runs some work and catches its panic.
pub(super) async fn catch<T>(work: impl Future<Output = T>) -> Result<T, Panic> {
    let slot = Arc::new(OnceLock::new());
    LOCATION.scope(Arc::clone(&slot), AssertUnwindSafe(work).catch_unwind()).await.map_err(|payload| Panic {
        message: message(&*payload),
        location: slot.get().cloned().unwrap_or_else(|| "an unknown place".to_owned()),
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}
