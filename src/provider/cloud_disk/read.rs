use super::model::CloudDisk;
use crate::{
    api::Presence,
    framework::{Context, Outcome, State},
    provider::{Client, client::limits, presence},
};

/// Refreshes, from a list that all disks of the run share. Only what that list lacks is looked for with calls of its own.
pub(super) async fn read(mut current: State<CloudDisk>, context: &Context<Client>) -> Outcome<CloudDisk> {
    let (client, limits) = (context.client.as_ref(), limits(context));
    let disks = client.api.cloud_disks();
    let (number, subject) = (current.state.number(), current.state.subject());
    let shared = match disks.snapshot(&limits).await {
        Ok(shared) => shared,
        Err(error) => return presence::failed(current, &subject, &error),
    };
    let looked = match shared.find(&number).filter(|disk| !disk.is_released()) {
        Some(disk) => Ok(Presence::Present(Box::new(disk.clone()))),
        None => disks.look(number, current.state.uid.as_str().or(current.state.name.as_str()), &limits).await,
    };
    match looked {
        Ok(Presence::Present(disk)) => {
            presence::seen(&mut current.private, &subject.key, client, &limits).await;
            current.state.take(&disk);
            Outcome::present(current.state, current.private)
        }
        Ok(Presence::Released(_)) => presence::released(&subject, client),
        Ok(Presence::Absent { .. }) => presence::absent(current, &subject, context).await,
        Ok(Presence::Unproved { reason }) => presence::unproved(current, &subject, reason),
        Err(error) => presence::failed(current, &subject, &error),
    }
}
