//! Deferrals as messages.

use crate::{
    framework::server::Deferral,
    protocol::tfplugin6::{Deferred, deferred::Reason},
};

/// Why an answer was put off, as a message.
pub(in crate::protocol) fn deferred(deferral: Deferral) -> Deferred {
    let reason = match deferral {
        Deferral::ProviderConfigUnknown => Reason::ProviderConfigUnknown,
    };
    Deferred { reason: reason.into() }
}
