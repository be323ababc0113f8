//! An ephemeral resource that behaves as its name says.

use serde::{Deserialize, Serialize};
use terraform_plugin::framework::{
    Attr, Diagnostic, Diagnostics, EphemeralResource, Opened, Result, Schema, Secret, StepContext, Type,
    schema::Attribute,
};
use tokio::sync::watch;

use super::Signals;

pub(crate) const LOAN: &str = "echo_loan";

/// Counts the open loans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loans(watch::Sender<usize>);

/// An open loan. Dropping it returns it.
#[derive(Debug)]
pub(crate) struct Lent(Loans);

impl Loans {
    pub(super) fn lend(&self) -> Lent {
        self.0.send_modify(|count| *count += 1);
        Lent(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        *self.0.borrow()
    }

    /// Waits until all loans are returned.
    pub(crate) async fn returned(&self) {
        self.down_to(0).await;
    }

    pub(crate) async fn down_to(&self, left: usize) {
        self.0.subscribe().wait_for(|count| *count == left).await.unwrap();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[derive(Debug)]
pub(super) struct LoanResource;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Loan {
    name: Attr<String>,
    size: Attr<i64>,
    secret: Attr<Secret>,
}

impl EphemeralResource for LoanResource {
    type Client = Signals;
    type Model = Loan;
    type Held = Lent;

    fn type_name(&self) -> &'static str {
        LOAN
    }

    fn schema(&self) -> Schema {
        Schema::new(
            "A loan.",
            vec![
                Attribute::required("name", Type::String, "Name."),
                Attribute::with_default("size", Type::Number, 20, "Size."),
                Attribute::computed("secret", Type::String, "Secret.").sensitive(),
            ],
        )
    }

    fn validate(&self, config: &Loan, diagnostics: &mut Diagnostics) {
        if config.name.as_str() == Some("") {
            diagnostics.error("No name", "Give one.");
        }
    }

    async fn open(&self, mut config: Loan, context: StepContext<Signals>) -> Result<Opened<Loan, Lent>> {
        let name = config.name.as_str().unwrap().to_owned();
        config.secret = Attr::Known(Secret::new(format!("planted-{name}")));
        if name == "changed" {
            config.name = "another".into();
            config.size = Attr::Unknown;
            config.secret = Attr::Unknown;
        }
        let mut opened = Opened::ready(config).holding(context.client.loans.lend());
        match name.as_str() {
            "panic" => panic!("planted"),
            "half" => opened = opened.with(Diagnostic::error("Half done", "No loan.")),
            "refused" => return Err(Diagnostic::error("Refused", "No loan.").into()),
            "unheard" => {
                context.client.started.notify_one();
                context.caller_gone.cancelled().await;
                context.client.finished.notify_one();
            }
            "told" => context.client.callers.lock().unwrap().push(context.caller_gone),
            _ => {}
        }
        Ok(opened)
    }
}
