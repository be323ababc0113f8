//! How each kind is looked at.

use crate::api::{
    client::Client,
    code::Code,
    context::Context,
    endpoint::Endpoint,
    error::Error,
    listing::{Listing, paged},
    progress::Step,
    records::{CloudDisk, Instance, InstanceUid, PrivateImage},
    request::Request,
    retry::Retry,
    watch::poller::Source,
};

/// Their list is also their detail (service API, Cloud disk).
#[derive(Debug)]
pub(super) struct CloudDisks;

impl Source for CloudDisks {
    type Record = CloudDisk;

    const NOUN: &'static str = "cloud disk";

    async fn all(client: &Client, context: &Context) -> Result<Listing<CloudDisk>, Error> {
        paged(client, context, &Request::new(Endpoint::CloudDiskList), Retry::Never).await
    }

    fn describe(disk: &CloudDisk) -> String {
        let status = match (disk.status_name(), disk.status) {
            (Some(name), _) => name.to_owned(),
            (None, Some(number)) => format!("with status {number}"),
            (None, None) => "without a status".to_owned(),
        };
        disk.size_gb.map_or_else(|| status.clone(), |size| format!("{status} with {size} GB"))
    }

    fn name(disk: &CloudDisk) -> Option<&str> {
        disk.name.as_deref()
    }
}

/// Few are asked for one by one, many by their list.
#[derive(Debug)]
pub(super) struct Instances;

impl Source for Instances {
    type Record = Instance;

    const NOUN: &'static str = "instance";
    const DETAILS_AT_MOST: usize = 2;

    async fn one(client: &Client, uid: &InstanceUid, context: &Context) -> Result<Option<Instance>, Error> {
        match client.instances().ask_detail(uid, context, Retry::Never).await {
            Ok(detail) => Ok(Some(detail.instance)),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => {
                // Alone it proves nothing, and a released instance may be in the list only.
                let listing = Self::all(client, context).await?;
                match listing.find(uid) {
                    None if !listing.complete => Err(error),
                    found => Ok(found.cloned()),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn all(client: &Client, context: &Context) -> Result<Listing<Instance>, Error> {
        paged(client, context, &Request::new(Endpoint::InstanceList), Retry::Never).await
    }

    fn describe(instance: &Instance) -> String {
        instance.status.as_ref().map_or_else(|| "without a status".to_owned(), ToString::to_string)
    }

    fn name(instance: &Instance) -> Option<&str> {
        instance.name.as_deref()
    }
}

/// They have no detail (service API, Images).
#[derive(Debug)]
pub(super) struct PrivateImages;

impl Source for PrivateImages {
    type Record = PrivateImage;

    const NOUN: &'static str = "private image";

    async fn all(client: &Client, context: &Context) -> Result<Listing<PrivateImage>, Error> {
        paged(client, context, &Request::new(Endpoint::PrivateImageList), Retry::Never).await
    }

    fn describe(image: &PrivateImage) -> String {
        let status = image_status(image);
        image.push_progress.map_or_else(|| status.clone(), |progress| format!("{status} with {progress} % pushed"))
    }

    fn step(image: &PrivateImage) -> Step {
        let percent = image.push_progress.and_then(|percent| u8::try_from(percent).ok());
        Step { percent, ..Step::new(image_status(image)) }
    }

    fn name(image: &PrivateImage) -> Option<&str> {
        image.image_name.as_deref()
    }
}

fn image_status(image: &PrivateImage) -> String {
    match image.image_status {
        Some(0) => "creating".to_owned(),
        Some(1) => "ready".to_owned(),
        Some(number) => format!("with status {number}"),
        None => "without a status".to_owned(),
    }
}
