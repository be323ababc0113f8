//! Ephemeral resources, as their authors write them.

use std::{future::Future, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    diagnostics::Diagnostics, model::Model, private::Private, resource::Context, schema::Schema,
    server::DEFAULT_TIMEOUT,
};

/// A thing that is there while a run uses it and is never stored: opened in the plan, opened again in the apply, and
/// closed at the end of each (plugin protocol, ephemeral resources).
pub trait EphemeralResource: Send + Sync + 'static {
    /// What the provider's configuration became.
    type Client: Send + Sync + 'static;
    /// The typed form of a configuration and its result.
    type Model: Model;
    /// What lives in this process from open to close, such as a local listener; `()` for nothing. It is dropped after
    /// the close, and when the core is gone.
    type Held: Send + Sync + 'static;

    /// The full type name, such as `damodel_instance_access`.
    fn type_name(&self) -> &'static str;

    /// The schema.
    fn schema(&self) -> Schema;

    /// How long each step may take.
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
        context: Context<Self::Client>,
    ) -> impl Future<Output = Opened<Self::Model, Self::Held>> + Send;

    /// Makes what is open last longer, when the moment comes that [`Opened::renew_at`] named. The result stays what it
    /// was.
    fn renew(&self, open: Open<Self::Held>, _context: Context<Self::Client>) -> impl Future<Output = Renewed> + Send {
        async { Renewed { private: open.private, renew_at: None, diagnostics: Diagnostics::new() } }
    }

    /// Ends what is open, as far as dropping what is held does not.
    fn close(
        &self,
        _open: Open<Self::Held>,
        _context: Context<Self::Client>,
    ) -> impl Future<Output = Diagnostics> + Send {
        async { Diagnostics::new() }
    }
}

/// What an open led to.
#[derive(Debug)]
pub struct Opened<M, H> {
    /// The result; none only with errors.
    pub result: Option<M>,
    /// What lives until the close. With errors it is dropped at once.
    pub held: Option<H>,
    /// Handed to renew and close. The core keeps it in memory only.
    pub private: Private,
    /// When the core is to renew; none for never.
    pub renew_at: Option<Timestamp>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}

impl<M, H> Opened<M, H> {
    /// It is open, for as long as the run lasts.
    pub fn ready(result: M) -> Self {
        Self {
            result: Some(result),
            held: None,
            private: Private::default(),
            renew_at: None,
            diagnostics: Diagnostics::new(),
        }
    }

    /// It could not be opened.
    pub fn failed(diagnostics: impl Into<Diagnostics>) -> Self {
        Self { result: None, held: None, private: Private::default(), renew_at: None, diagnostics: diagnostics.into() }
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

/// What is open.
#[derive(Debug)]
pub struct Open<H: ?Sized> {
    /// What the open, or the last renewal that the core kept, left here.
    pub private: Private,
    /// What lives until the close; none where another process opened it.
    pub held: Option<Arc<H>>,
}

/// What a renewal led to.
#[derive(Debug)]
pub struct Renewed {
    /// Handed to the next renewal and to the close.
    pub private: Private,
    /// When the core is to renew next; none for never.
    pub renew_at: Option<Timestamp>,
    /// Messages for the operator.
    pub diagnostics: Diagnostics,
}
