//! The errors of the chat endpoint, in the chosen form.

use serde_json::{Value, json};

use crate::sandbox::{
    answer::Content,
    errors::{Code, Refusal},
    form::{ChatError, Form},
    render::{self, Identifiers},
};

/// A chat request that is refused: a refusal of the service, and what an OpenAI error says besides.
#[derive(Clone, Debug)]
pub(in crate::sandbox) struct Failure {
    pub(in crate::sandbox) refusal: Refusal,
    status: u16,
    kind: &'static str,
    code: &'static str,
    param: Option<&'static str>,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (kind, code) = match refusal.code {
            Code::BalanceNotEnough => ("insufficient_quota", "insufficient_quota"),
            Code::InternalError => ("server_error", "internal_error"),
            Code::InvalidToken => ("invalid_request_error", "invalid_api_key"),
            other => ("invalid_request_error", other.name()),
        };
        Self { status: refusal.code.fitting_status(), refusal, kind, code, param: None }
    }
}

impl Failure {
    /// A model that does not exist, or was not enabled in the console.
    pub(super) fn unknown_model(name: &str) -> Self {
        let refusal = Refusal::invalid(format!("model: {name:?} does not exist or is not enabled"));
        Self { status: 404, code: "model_not_found", param: Some("model"), ..Self::from(refusal) }
    }

    /// Status, content type and body.
    pub(in crate::sandbox) fn rendered(&self, form: &Form, ids: &Identifiers) -> (u16, &'static str, Content) {
        let (status, content_type, text) = match form.chat_error {
            ChatError::Envelope => {
                let (status, envelope) = render::refusal(form, ids, &self.refusal);
                (status, "application/json", envelope.to_string())
            }
            ChatError::OpenAi => (self.status, "application/json", self.openai().to_string()),
            ChatError::OpenAi200 => (200, "application/json", self.openai().to_string()),
            ChatError::Text => (self.status, "text/plain", format!("{}\n", self.refusal.message)),
        };
        (status, content_type, Content::Whole(text.into_bytes()))
    }

    /// The error as OpenAI writes it.
    pub(super) fn openai(&self) -> Value {
        json!({
            "error": {
                "message": self.refusal.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            },
        })
    }
}
