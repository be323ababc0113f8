use std::fmt;

use crate::api::{Client, Context, Error, Instance, InstanceUid, Kind, Listed, PendingRecord, Phase, Presence};

/// What became of a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The service has what it made: UID and status.
    Alive { uid: String, status: String },
    /// What it made is gone for good; its last status.
    Gone { status: String },
    /// A run of this moment is at it.
    Owned,
    /// Nothing carries the name that was sent.
    Nothing,
    /// It is not known, and why.
    Unknown { why: String },
}

/// The service, where it can be asked.
#[derive(Debug)]
pub(super) struct Service {
    client: Client,
}

impl Service {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) fn is_configured(&self) -> bool {
        self.client.check_configured().is_ok()
    }

    /// What became of a create. What cannot be learned is no error: the list shows it.
    pub(super) async fn fate_of(&self, listed: &Listed, context: &Context) -> Fate {
        let record = &listed.record;
        if listed.owner_lives {
            return Fate::Owned;
        }
        match self.obstacle(record, context).await {
            Ok(None) => {}
            Ok(Some(why)) => return Fate::Unknown { why: why.to_owned() },
            Err(error) => return Fate::Unknown { why: error.to_string() },
        }
        let fate = match &record.ids {
            Some(ids) => self.by_uid(&InstanceUid::new(&ids.id), context).await,
            None => self.by_name(&record.marker, context).await,
        };
        fate.unwrap_or_else(|error| Fate::Unknown { why: error.to_string() })
    }

    /// Why asking would prove nothing.
    async fn obstacle(&self, record: &PendingRecord, context: &Context) -> Result<Option<&'static str>, Error> {
        if !self.is_configured() {
            return Ok(Some("not asked"));
        }
        if record.kind != Kind::Instance {
            return Ok(Some("not asked: this version asks for instances only"));
        }
        let address = self.client.settings().base_url.as_ref().map(ToString::to_string);
        if address.as_ref() != Some(&record.base_url) {
            return Ok(Some("not asked: it was sent to another base address"));
        }
        let account = self.client.fingerprint(context).await?;
        Ok((account != record.account).then_some("not asked: it was sent with another token"))
    }

    async fn by_uid(&self, uid: &InstanceUid, context: &Context) -> Result<Fate, Error> {
        Ok(match self.client.instances().look(uid, context).await? {
            Presence::Absent { .. } => Fate::Gone { status: "not there any more".to_owned() },
            Presence::Present(detail) => alive(&detail.instance),
            Presence::Released(_) => Fate::Gone { status: "Released".to_owned() },
            Presence::Unproved { reason } => Fate::Unknown { why: reason.to_owned() },
        })
    }

    async fn by_name(&self, marker: &str, context: &Context) -> Result<Fate, Error> {
        // One list serves all: nothing is changed here.
        let listing = self.client.instances().snapshot(context).await?;
        let mut found = listing.records.iter().filter(|instance| instance.name.as_deref() == Some(marker));
        Ok(match (found.next(), found.next()) {
            (Some(instance), None) if instance.is_released() => Fate::Gone { status: "Released".to_owned() },
            (Some(instance), None) => alive(instance),
            (Some(one), Some(other)) => {
                Fate::Unknown { why: format!("several carry its name, among them {} and {}", one.uid, other.uid) }
            }
            (None, _) if listing.complete => Fate::Nothing,
            (None, _) => Fate::Unknown { why: "the service's list is not complete".to_owned() },
        })
    }
}

impl Fate {
    /// Whether the service has nothing of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Gone { .. } | Self::Nothing)
    }

    /// The UID that is known.
    pub(super) fn uid<'a>(&'a self, record: &'a PendingRecord) -> Option<&'a str> {
        match self {
            Self::Alive { uid, .. } => Some(uid),
            _ => record.ids.as_ref().map(|ids| ids.id.as_str()),
        }
    }

    /// What a person may do about it.
    pub(super) fn advice(&self, listed: &Listed, entry: &str) -> String {
        match (self, listed.record.phase) {
            (Self::Alive { .. }, Phase::Sent | Phase::Accepted) => {
                "apply the same configuration in this folder: it takes the machine up".to_owned()
            }
            (Self::Alive { uid, .. }, Phase::HandedOver | Phase::Unexplained) => {
                format!("the next plan clears this; if no state has it: terraform import <address> {uid}")
            }
            (Self::Gone { .. }, _) => format!("nothing is billed; pending --forget {entry}"),
            (Self::Owned, _) => "nothing: a run is at it".to_owned(),
            (Self::Nothing, Phase::Sent) => {
                format!("the next apply settles it; if none follows: pending --forget {entry}")
            }
            (Self::Nothing, _) => format!("pending --forget {entry}"),
            (Self::Unknown { .. }, _) => "ask again with the address and token it was made with".to_owned(),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive { status, .. } | Self::Gone { status } => formatter.write_str(status),
            Self::Owned => formatter.write_str("in progress"),
            Self::Nothing => formatter.write_str("nothing carries its name"),
            Self::Unknown { why } => formatter.write_str(why),
        }
    }
}

/// How far a create was, in words.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Accepted => "accepted",
        Phase::HandedOver => "handed over",
        Phase::Sent => "sent",
        Phase::Unexplained => "unexplained",
    }
}

fn alive(instance: &Instance) -> Fate {
    let status = instance.status.as_ref().map_or_else(|| "without a status".to_owned(), ToString::to_string);
    Fate::Alive { uid: instance.uid.to_string(), status }
}
