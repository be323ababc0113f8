use super::model::PrivateImage;
use crate::{
    api::{Code, Presence},
    framework::{Context, Diagnostic, Outcome, State},
    provider::{
        Client,
        client::limits,
        errors::Failure,
        presence::{self, Absence},
        protection::{Protected as _, refusal},
    },
};

/// Deletes an image; an instance that is being made of it is waited for. It stays in the state on every doubt.
pub(super) async fn delete(current: State<PrivateImage>, context: &Context<Client>) -> Outcome<PrivateImage> {
    if current.state.is_protected() {
        let diagnostic = refusal(&current.state);
        return current.unchanged(diagnostic);
    }
    let (client, limits) = (context.client.as_ref(), limits(context));
    let (images, number, subject) = (client.api.images(), current.state.number(), current.state.subject());
    tracing::info!(private_image.id = number, "deleting");
    let error = match images.delete(number, &limits).await {
        Ok(()) => return Outcome::absent(),
        Err(error) => error,
    };
    if error.code() == Some(Code::ImageNotFound) {
        // The service's word alone is no proof: a token of another account hears the same.
        match images.look(number, current.state.name.as_str(), &limits).await {
            Ok(Presence::Absent { .. }) => {
                match presence::judge(&current.private, &subject.key, client, &limits).await {
                    Ok(Absence::Proved | Absence::TooYoung) => return Outcome::absent(),
                    Ok(Absence::AnotherAccount) => {
                        return current.unchanged(Diagnostic::error(
                            format!("The service does not show {}", subject.title),
                            "Is this another account? It was last seen under another base address or API token. It stays in the state.",
                        ));
                    }
                    Err(looking) => return failed(current, &looking),
                }
            }
            Ok(_) => {}
            Err(looking) => return failed(current, &looking),
        }
    }
    failed(current, &error)
}

fn failed(current: State<PrivateImage>, error: &crate::api::Error) -> Outcome<PrivateImage> {
    let tried = format!("delete {}", current.state.title());
    let diagnostic = Failure { error, tried, now: "It stays in the state.".to_owned() }.whole();
    current.unchanged(diagnostic)
}
