use super::{model::Instance, witness_key};
use crate::{
    api::{InstanceUid, Presence},
    framework::{Context, Diagnostic, Outcome, Private},
    provider::{Client, client::limits, errors::Failure, presence},
};

/// Under this key an import tells the refresh that completes it that nobody has said yet whether credentials are kept.
const IMPORTING: &str = "importing";

/// Imports by UID. Everything that the service reports is filled in; what it never reports stays null. So do the credentials: an
/// import does not see the configuration, which may not want them in the state.
pub(super) async fn import(id: &str, context: &Context<Client>) -> Outcome<Instance> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let uid = InstanceUid::new(id.trim());
    let failed = |summary: String, detail: &str| Outcome::absent().with(Diagnostic::error(summary, detail));
    if uid.as_str().is_empty() {
        return failed("Cannot import an instance".to_owned(), "The import id is the instance's UID; it is empty.");
    }
    match client.api.instances().look(&uid, &limits).await {
        Ok(Presence::Present(detail)) => {
            let mut private = Private::default();
            presence::seen(&mut private, &witness_key(&uid), client, &limits).await;
            private.insert(IMPORTING, true);
            let mut state = Instance::default();
            state.take_detail(&detail);
            state.complete_image(client, &limits).await;
            state.forget_credentials();
            Outcome::present(state, private)
        }
        Ok(Presence::Released(_)) => failed(
            format!("Cannot import instance {uid}: it is released"),
            "The service shows it as Released; there is nothing to manage any more.",
        ),
        Ok(_) => failed(
            format!("Cannot import instance {uid}: the service does not have it"),
            "The import id is the instance's UID (ins-…), as the console shows it, not its \
             name. Check the id, base_url and the account of the API token.",
        ),
        Err(error) => {
            let failure = Failure {
                error: &error,
                tried: format!("import instance {uid}"),
                now: "Nothing was imported.".to_owned(),
            };
            Outcome::absent().with(failure.whole())
        }
    }
}

/// Leaves the credentials out of the refresh that belongs to an import. The next one keeps them if the state says so.
pub(super) fn complete(state: &mut Instance, private: &mut Private) {
    if private.entry::<bool>(IMPORTING) == Some(true) {
        private.remove(IMPORTING);
        state.forget_credentials();
    }
}
