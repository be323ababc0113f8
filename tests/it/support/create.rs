//! Creates through the client of the service, without the provider's checks.

use damodel_client::{
    api::{Client, Context, Creation, Error},
    creation::{Accepted, Attempt, Choices, CreateOptions, Guard, Journal, Leftover, Permission},
};

/// A guard that permits everything.
struct Permits;

impl Guard for Permits {
    fn judge(&mut self, _: Result<Vec<Leftover>, Error>) -> Permission {
        Permission::Send
    }

    async fn permit(&mut self, _: Attempt) -> Permission {
        Permission::Send
    }
}

/// Creates what nothing forbids.
pub(crate) async fn create<C: Creation>(
    client: &Client,
    request: C,
    journal: &Journal,
    context: &Context,
) -> Result<Accepted<C::Object>, Error> {
    damodel_client::creation::create(
        client,
        Choices::from(request),
        Permits,
        journal,
        CreateOptions::default(),
        context,
    )
    .await
    .1
}
