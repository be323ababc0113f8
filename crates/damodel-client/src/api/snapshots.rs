//! Lists that many readers share: the plan of a thousand objects requests each list a few times, not a thousand times.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use super::{
    flight::Flight,
    listing::Listing,
    records::{CloudDisk, CloudDiskSpec, Instance, PrivateImage, PublicImage, Spec, WithJson},
};

type SpecFlight = Flight<Listing<WithJson<Spec>>>;

/// One list per kind; for specifications, one per region.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    pub(super) cloud_disks: Flight<Listing<CloudDisk>>,
    pub(super) cloud_disk_specs: Flight<Listing<WithJson<CloudDiskSpec>>>,
    pub(super) instances: Flight<Listing<Instance>>,
    pub(super) private_images: Flight<Listing<PrivateImage>>,
    pub(super) public_images: Flight<Listing<WithJson<PublicImage>>>,
    specs: Mutex<BTreeMap<String, Arc<SpecFlight>>>,
}

impl Snapshots {
    pub(super) fn specs(&self, region: &str) -> Arc<SpecFlight> {
        let mut specs = self.specs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(specs.entry(region.to_owned()).or_default())
    }
}
