//! The outcome of a create that an earlier run did not finish.

use std::fmt;

use crate::{
    api::{Client, CloudDisk, Code, Context, Error, Instance, Missing, Object, ObjectKind, PrivateImage},
    creation::{CreatePhase, Found, PendingCreate, PendingRecord},
    provider::words::{keep_or_delete, to_delete},
};

/// The status of released objects.
const RELEASED: &str = "Released";

/// The outcome of a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its object exists: UID and status.
    Alive { uid: String, status: String },
    /// Its object no longer exists; its last status.
    Gone { status: String },
    /// A current run is working on it.
    Owned,
    /// No object has the name that was sent.
    Nothing,
    /// The service does not show its object, and may not show it yet.
    NotShown,
    /// Unknown, with the reason and what is needed to find out.
    Unknown { why: String, lacking: Lacking },
}

/// The condition under which more can be found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    /// A trusted connection to the service.
    Connection,
    /// The address and the token that the create was sent with.
    Credentials,
    /// A decision of a person: several objects have the name.
    Decision,
    /// A complete answer of the service.
    WholeAnswer,
}

impl Lacking {
    fn after(error: &Error) -> Self {
        match error {
            Error::DeadlinePassed { .. }
            | Error::NeverSent { .. }
            | Error::NoAnswer { .. }
            | Error::Redirected { .. }
            | Error::Transport { .. } => Self::Connection,
            Error::Missing(_) | Error::Token(_) | Error::Unsendable { .. } => Self::Credentials,
            error if matches!(error.code(), Some(Code::InvalidToken | Code::PermissionDenied)) => Self::Credentials,
            _ => Self::WholeAnswer,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Connection => {
                "check that the service can be reached (address, network, --ca-certificate-file for a private \
                 gateway), then run this again"
            }
            Self::Credentials => "run this again with the address and token of that run",
            Self::Decision => {
                "compare them in the console; terraform import the right one, and terraform-provider-damodel release \
                 the others"
            }
            Self::WholeAnswer => "run this again later, or look for the name in the console",
        }
    }
}

/// The client of the service, if it is configured.
#[derive(Debug)]
pub(super) struct AskedService {
    client: Client,
}

impl AskedService {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The missing setting, if the service cannot be asked.
    pub(super) fn check_configured(&self) -> Result<(), Missing> {
        self.client.check_configured()
    }

    /// The outcome of a create. A failed request is not an error here: the list shows it.
    pub(super) async fn fate_of(&self, listed: &PendingCreate, context: &Context) -> Fate {
        let record = &listed.record;
        if listed.owner_lives {
            return Fate::Owned;
        }
        if self.check_configured().is_err() {
            return Fate::Unknown { why: "not checked".to_owned(), lacking: Lacking::Credentials };
        }
        let address = self.client.settings().base_url.as_ref().map(ToString::to_string);
        if address.as_ref() != Some(&record.base_url) {
            let why = "not checked: it was sent to another base address".to_owned();
            return Fate::Unknown { why, lacking: Lacking::Credentials };
        }
        let fate = match record.kind {
            ObjectKind::CloudDisk => self.of_kind::<CloudDisk>(record, context).await,
            ObjectKind::Instance => self.of_kind::<Instance>(record, context).await,
            ObjectKind::PrivateImage => self.of_kind::<PrivateImage>(record, context).await,
        };
        let fate =
            fate.unwrap_or_else(|error| Fate::Unknown { why: error.to_string(), lacking: Lacking::after(&error) });
        match self.client.fingerprint(context).await {
            Ok(account) if account == record.account.token => fate,
            _ => fate.under_another_token(),
        }
    }

    async fn of_kind<K: Object>(&self, record: &PendingRecord, context: &Context) -> Result<Fate, Error> {
        let objects = self.client.objects::<K>();
        Ok(match objects.examine(record, context).await? {
            Found::Gone => Fate::Gone { status: "no longer exists".to_owned() },
            Found::Living(object) => {
                let listing = objects.snapshot(context).await?;
                let status = listing.find(&object.key()).map_or_else(|| "exists".to_owned(), Object::status_text);
                Fate::Alive { uid: object.key().to_string(), status }
            }
            Found::Nothing => Fate::Nothing,
            Found::Released(_) => Fate::Gone { status: RELEASED.to_owned() },
            Found::Several(found) => Fate::Unknown {
                why: format!(
                    "several objects have its name, among them {}",
                    found.iter().take(2).cloned().collect::<Vec<_>>().join(" and ")
                ),
                lacking: Lacking::Decision,
            },
            Found::Unknown { reason, .. } => Fate::Unknown { why: reason.to_owned(), lacking: Lacking::WholeAnswer },
            Found::Young => Fate::NotShown,
        })
    }
}

impl Fate {
    /// The same outcome, found with another token than the create's. Tokens are rotated, so objects that are found
    /// count; a missing one may be in another account.
    fn under_another_token(self) -> Self {
        let why = match &self {
            Self::Alive { .. } | Self::Owned => return self,
            Self::Gone { status } if status == RELEASED => return self,
            Self::Gone { .. } | Self::Nothing | Self::NotShown => {
                "not found with this token: it was sent with another token".to_owned()
            }
            Self::Unknown { why, .. } => format!("it was sent with another token, and with this one: {why}"),
        };
        Self::Unknown { why, lacking: Lacking::Credentials }
    }

    /// The UID, if it is known.
    pub(super) fn uid<'a>(&'a self, record: &'a PendingRecord) -> Option<&'a str> {
        match self {
            Self::Alive { uid, .. } => Some(uid),
            _ => record.ids.as_ref().map(|ids| ids.id.as_str()),
        }
    }

    /// The advice for the user.
    pub(super) fn advice(&self, listed: &PendingCreate, entry: &str) -> String {
        match (self, listed.record.phase) {
            (Self::Alive { uid, .. }, CreatePhase::Sent | CreatePhase::Accepted) => {
                format!(
                    "if its address is not in the state yet, apply the same configuration in this folder: it resumes \
                     the create. {}, then pending --forget {entry}",
                    to_delete(listed.record.kind, uid)
                )
            }
            (Self::Alive { uid, .. }, CreatePhase::Finished) => {
                let commands = keep_or_delete(listed.record.kind, uid).replace('\n', ". ");
                format!("the next plan clears this. If no state has it: {commands}")
            }
            (Self::Gone { .. }, _) => format!("nothing is billed; pending --forget {entry}"),
            (Self::Owned, _) => "no action: a run is working on it".to_owned(),
            (Self::Nothing, CreatePhase::Sent) => {
                format!("the next apply resolves it; without another apply: pending --forget {entry}")
            }
            (Self::Nothing, _) => format!("pending --forget {entry}"),
            (Self::NotShown, _) => "it may exist and be billed: run this again in a few minutes".to_owned(),
            (Self::Unknown { lacking, .. }, _) => lacking.advice().to_owned(),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive { status, .. } | Self::Gone { status } => formatter.write_str(status),
            Self::Owned => formatter.write_str("in progress"),
            Self::Nothing => formatter.write_str("no object has its name"),
            Self::NotShown => formatter.write_str("it may not be shown yet"),
            Self::Unknown { why, .. } => formatter.write_str(why),
        }
    }
}

/// The phase of a create, in words.
pub(super) fn phase(phase: CreatePhase) -> &'static str {
    match phase {
        CreatePhase::Accepted => "accepted",
        CreatePhase::Finished => "finished",
        CreatePhase::Sent => "sent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Endpoint;

    #[test]
    fn the_advice_fits_what_is_lacking() {
        let endpoint = Endpoint::InstanceList;
        for (error, advice) in [
            (Error::Missing(Missing::ApiToken), "with the address and token"),
            (Error::DeadlinePassed { endpoint }, "can be reached"),
            (Error::Redirected { endpoint, status: 301 }, "can be reached"),
            (Error::Transport { reason: "no roots".to_owned() }, "--ca-certificate-file"),
            (Error::Cancelled { endpoint }, "run this again later"),
        ] {
            assert!(Lacking::after(&error).advice().contains(advice), "{error}");
        }
    }
}
