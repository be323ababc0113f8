//! A chat with a llama server in an instance, through SSH.

use tokio::time::timeout_at;

use super::{Chat, LLAMA_SERVER};
use crate::{
    api::{ChatRequest, InstanceUid},
    framework::{Context, Diagnostic, Diagnostics, Outcome, Path, Private, Secret},
    provider::{
        Client,
        access::Access,
        client::limits,
        llama_chat::{self, ChatFailure},
        ssh::{Login, Tunnel},
        ssh_failure::SshFailure,
    },
};

/// Rules between the arguments of a target.
pub(super) fn validate(config: &Chat, diagnostics: &mut Diagnostics) {
    match config.target.as_str() {
        Some(LLAMA_SERVER) if config.llama_server_id.is_null() => diagnostics.error_at(
            Path::to("llama_server_id"),
            "Which llama server?",
            "target = \"llama_server\" needs llama_server_id: the id of a damodel_llama_server.",
        ),
        Some(LLAMA_SERVER) | None => {}
        Some(_) => {
            let set = [
                ("llama_server_id", !config.llama_server_id.is_null()),
                ("ssh", !config.ssh.is_null()),
                ("host_key", !config.host_key.is_null()),
                ("api_key", !config.api_key.is_null()),
            ];
            for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
                diagnostics.error_at(
                    Path::to(name),
                    "An argument of another target",
                    format!(
                        "{name} is for target = \"llama_server\". Set that, or remove {name}. (The key of hosted \
                         models is the provider's api_key.)"
                    ),
                );
            }
        }
    }
}

/// Asks the server. It is logged in to for this question alone.
pub(super) async fn read(config: Chat, request: &ChatRequest, context: &Context<Client>) -> Outcome<Chat> {
    match ask(&config, request, context).await {
        Ok((answer, warnings)) => Outcome::present(config.answered(answer), Private::default()).with(warnings),
        Err(diagnostic) => Outcome::absent().with(*diagnostic),
    }
}

async fn ask(
    config: &Chat,
    request: &ChatRequest,
    context: &Context<Client>,
) -> Result<(crate::api::ChatAnswer, Diagnostics), Box<Diagnostic>> {
    let id = config.llama_server_id.as_str().unwrap_or_default();
    let (machine, port) = id.rsplit_once(':').unwrap_or((id, ""));
    let port: u16 = port.parse().unwrap_or_default();
    let ssh = config.ssh.known().cloned().unwrap_or_default();
    let limits = limits(context);
    // An id that begins with the host is of a server over plain SSH. Any other names an instance, wherever it is logged
    // in to: what the argument leaves open comes from the service then, as for the server itself.
    let access = if ssh.host.as_str() == Some(machine) {
        None
    } else {
        let found = Access::to_running(&InstanceUid::new(machine), "", &context.client, &limits).await;
        Some(found.map_err(|diagnostic| Box::new(diagnostic.at(Path::to("llama_server_id"))))?)
    };
    let login = Login { ssh, known_host: config.host_key.known().cloned(), ..Login::default() };
    let tried = || format!("chat with llama server {id}");
    let link = Tunnel { login: &login, access: access.as_ref() }.open(&tried(), context).await.map_err(Box::new)?;
    let session = link.session().await.map_err(|error| Box::new(failed(&tried(), port, &error.into())))?;
    let key = config.api_key.known().cloned().map(Secret::into_inner);
    let asked = tokio::select! {
        () = context.stopping.cancelled() => return Err(Box::new(stopped(&tried(), "it was stopped"))),
        asked = timeout_at(context.deadline, llama_chat::ask(&session, port, key.as_ref(), request)) => asked,
    };
    match asked {
        Err(_) => Err(Box::new(stopped(&tried(), "the time ran out"))),
        Ok(Ok(answer)) => Ok((answer, login.unpinned(&session, Path::to("host_key")))),
        Ok(Err(error)) => Err(Box::new(failed(&tried(), port, &error))),
    }
}

fn stopped(tried: &str, why: &str) -> Diagnostic {
    Diagnostic::error(format!("Cannot {tried}: {why}"), "The server had not answered until then.")
}

fn failed(tried: &str, port: u16, error: &ChatFailure) -> Diagnostic {
    match error {
        ChatFailure::Ssh(crate::ssh::Error::Refused { .. }) => Diagnostic::error(
            format!("Cannot {tried}: it does not run"),
            format!(
                "Nothing listens on port {port} of the instance. The plan of damodel_llama_server shows whether the \
                 server has stopped; an apply starts it."
            ),
        )
        .at(Path::to("llama_server_id")),
        ChatFailure::Ssh(error) => SshFailure { error, tried: tried.to_owned(), now: String::new() }.diagnostic(),
        ChatFailure::Refused { status, .. } if status.as_u16() == 401 => Diagnostic::error(
            format!("Cannot {tried}: it asks for a key"),
            format!("The server refused the question: {error}. Set api_key to the key of the damodel_llama_server."),
        )
        .at(Path::to("api_key")),
        _ => Diagnostic::error(
            format!("Cannot {tried}: no answer"),
            format!(
                "The server was asked on port {port} of the instance, and {error}. Its log in the instance may have \
                 more."
            ),
        ),
    }
}
