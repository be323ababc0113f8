use std::fmt;

use crate::api::{
    Client, CloudDisk, Code, Context, Error, Instance, InstanceUid, Kind, Listed, PendingRecord, Phase, Presence,
    PrivateImage,
};

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
    /// It is not known, why, and what would have to be otherwise.
    Unknown { why: String, lacking: Lacking },
}

/// What it would take to learn more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lacking {
    /// A way to the service, and trust in what answers there.
    Connection,
    /// The address and the token that the create was sent with.
    Credentials,
    /// A decision of a person: more than one thing bears the name.
    Decision,
    /// A whole answer of the service.
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
            Error::Missing(_) | Error::Token(_) => Self::Credentials,
            error if matches!(error.code(), Some(Code::InvalidToken | Code::PermissionDenied)) => Self::Credentials,
            _ => Self::WholeAnswer,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Connection => {
                "see that the service can be reached from here (address, network, for a gateway of your own \
                 --ca-certificate-file), and ask again"
            }
            Self::Credentials => "ask again with the address and token it was made with",
            Self::Decision => "look at them in the console; import the one that is meant, and release the others",
            Self::WholeAnswer => "ask again later, or look for the name in the console",
        }
    }
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
            Ok(Some(why)) => return Fate::Unknown { why: why.to_owned(), lacking: Lacking::Credentials },
            Err(error) => return Fate::unlearned(&error),
        }
        let fate = match &record.ids {
            Some(ids) => self.by_id(record.kind, &ids.id, context).await,
            None => self.by_name(record.kind, &record.marker, context).await,
        };
        fate.unwrap_or_else(|error| Fate::unlearned(&error))
    }

    /// Why asking would prove nothing.
    async fn obstacle(&self, record: &PendingRecord, context: &Context) -> Result<Option<&'static str>, Error> {
        if !self.is_configured() {
            return Ok(Some("not asked"));
        }
        let address = self.client.settings().base_url.as_ref().map(ToString::to_string);
        if address.as_ref() != Some(&record.base_url) {
            return Ok(Some("not asked: it was sent to another base address"));
        }
        let account = self.client.fingerprint(context).await?;
        Ok((account != record.account).then_some("not asked: it was sent with another token"))
    }

    async fn by_id(&self, kind: Kind, id: &str, context: &Context) -> Result<Fate, Error> {
        let number = id.parse().unwrap_or_default();
        Ok(match kind {
            Kind::Instance => fate(self.client.instances().look(&InstanceUid::new(id), context).await?, |detail| {
                Thing::instance(&detail.instance)
            }),
            Kind::CloudDisk => fate(self.client.cloud_disks().look(number, None, context).await?, Thing::cloud_disk),
            Kind::PrivateImage => fate(self.client.images().look(number, None, context).await?, Thing::private_image),
        })
    }

    async fn by_name(&self, kind: Kind, marker: &str, context: &Context) -> Result<Fate, Error> {
        let (things, complete) = self.things(kind, context).await?;
        let mut found = things.into_iter().filter(|thing| thing.name.as_deref() == Some(marker));
        Ok(match (found.next(), found.next()) {
            (Some(thing), None) => thing.fate(),
            (Some(one), Some(other)) => Fate::Unknown {
                why: format!("several carry its name, among them {} and {}", one.id, other.id),
                lacking: Lacking::Decision,
            },
            (None, _) if complete => Fate::Nothing,
            (None, _) => {
                Fate::Unknown { why: "the service's list is not complete".to_owned(), lacking: Lacking::WholeAnswer }
            }
        })
    }

    /// All things of a kind, and whether these are all. One list serves all entries: nothing is changed here.
    async fn things(&self, kind: Kind, context: &Context) -> Result<(Vec<Thing>, bool), Error> {
        Ok(match kind {
            Kind::Instance => {
                let listing = self.client.instances().snapshot(context).await?;
                (listing.records.iter().map(Thing::instance).collect(), listing.complete)
            }
            Kind::CloudDisk => {
                let listing = self.client.cloud_disks().snapshot(context).await?;
                (listing.records.iter().map(Thing::cloud_disk).collect(), listing.complete)
            }
            Kind::PrivateImage => {
                let listing = self.client.images().private_snapshot(context).await?;
                (listing.records.iter().map(Thing::private_image).collect(), listing.complete)
            }
        })
    }
}

/// A thing of the service, as far as a fate is concerned.
struct Thing {
    id: String,
    name: Option<String>,
    status: String,
    is_released: bool,
}

impl Thing {
    fn instance(instance: &Instance) -> Self {
        Self {
            id: instance.uid.to_string(),
            name: instance.name.clone(),
            status: instance.status.as_ref().map_or_else(without_status, ToString::to_string),
            is_released: instance.is_released(),
        }
    }

    fn cloud_disk(disk: &CloudDisk) -> Self {
        Self {
            id: disk.id.to_string(),
            name: disk.name.clone(),
            status: disk.status_name().map_or_else(without_status, str::to_owned),
            is_released: disk.is_released(),
        }
    }

    fn private_image(image: &PrivateImage) -> Self {
        let status = if image.is_ready() { "ready" } else { "creating" };
        Self {
            id: image.image_id.to_string(),
            name: image.image_name.clone(),
            status: status.to_owned(),
            is_released: false,
        }
    }

    fn fate(self) -> Fate {
        if self.is_released {
            Fate::Gone { status: self.status }
        } else {
            Fate::Alive { uid: self.id, status: self.status }
        }
    }
}

fn without_status() -> String {
    "without a status".to_owned()
}

fn fate<T, R>(presence: Presence<T, R>, thing: impl Fn(&T) -> Thing) -> Fate {
    match presence {
        Presence::Absent { .. } => Fate::Gone { status: "not there any more".to_owned() },
        Presence::Present(present) => thing(&present).fate(),
        Presence::Released(_) => Fate::Gone { status: "Released".to_owned() },
        Presence::Unproved { reason } => Fate::Unknown { why: reason.to_owned(), lacking: Lacking::WholeAnswer },
    }
}

impl Fate {
    fn unlearned(error: &Error) -> Self {
        Self::Unknown { why: error.to_string(), lacking: Lacking::after(error) }
    }

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
                "apply the same configuration in this folder: it takes it up".to_owned()
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
            (Self::Unknown { lacking, .. }, _) => lacking.advice().to_owned(),
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive { status, .. } | Self::Gone { status } => formatter.write_str(status),
            Self::Owned => formatter.write_str("in progress"),
            Self::Nothing => formatter.write_str("nothing carries its name"),
            Self::Unknown { why, .. } => formatter.write_str(why),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Endpoint, Missing};

    #[test]
    fn the_advice_fits_what_is_lacking() {
        let endpoint = Endpoint::InstanceList;
        for (error, advice) in [
            (Error::Missing(Missing::ApiToken), "with the address and token"),
            (Error::DeadlinePassed { endpoint }, "can be reached"),
            (Error::Redirected { endpoint, status: 301 }, "can be reached"),
            (Error::Transport { reason: "no roots".to_owned() }, "--ca-certificate-file"),
            (Error::Cancelled { endpoint }, "ask again later"),
        ] {
            assert!(Lacking::after(&error).advice().contains(advice), "{error}");
        }
    }
}
