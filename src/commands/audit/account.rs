//! The objects of the account and their prices: the only file of `audit` that sends requests.

use std::collections::{BTreeMap, BTreeSet};

use bigdecimal::BigDecimal;

use crate::{
    api::{Client, CloudDisk, Context, Instance, Listing, PrivateImage, Record, Spec, WithJson},
    commands::{Failure, adopt::Adoptable},
    provider::pricing::{HOURS_A_MONTH, PriceTerms, estimate},
};

/// The objects and specifications in the service's lists.
#[derive(Debug, Default)]
pub(super) struct AccountLists {
    /// The billed objects.
    pub(super) billed: Vec<BilledObject>,
    /// The uid of each listed object, released ones included: proof that an object belongs to this account. Numbers are
    /// none, because each account has its own disk 7.
    pub(super) uids: BTreeSet<(Adoptable, String)>,
    /// The specifications, by region and number.
    pub(super) specs: BTreeMap<(String, i64), WithJson<Spec>>,
    /// The cloud disks by id.
    pub(super) disks: BTreeMap<String, CloudDisk>,
    /// The address that was asked.
    pub(super) base_url: String,
}

/// A billed object.
#[derive(Clone, Debug)]
pub(super) struct BilledObject {
    pub(super) kind: Adoptable,
    /// Its import id.
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) region: Option<String>,
    pub(super) status: Option<String>,
    /// The time of its creation, in Unix seconds.
    pub(super) since: Option<i64>,
    /// The basis of an instance's price.
    pub(super) order: Option<BilledTerms>,
}

/// The basis of an instance's price.
#[derive(Clone, Debug)]
pub(super) struct BilledTerms {
    pub(super) payment_type: String,
    pub(super) spec_id: i64,
    pub(super) gpu_num: i64,
}

impl AccountLists {
    /// Reads one list for each kind, and one of specifications for each region.
    pub(super) async fn read(client: &Client, context: &Context) -> Result<Self, Failure> {
        let unlisted = |kind: &'static str| {
            move |error: crate::api::Error| Failure::because(format!("cannot list the {kind}s of the account"), error)
        };
        client.check_configured().map_err(|missing| Failure::because(UNSET, missing))?;
        let list = |kind: Adoptable| unlisted(kind.noun());
        let instances = client.instances().fresh(context).await.map_err(list(Adoptable::Instance))?;
        let disks = client.cloud_disks().fresh(context).await.map_err(list(Adoptable::CloudDisk))?;
        let images = client.private_images().fresh(context).await.map_err(list(Adoptable::PrivateImage))?;
        let base_url = client.settings().base_url.as_ref().map(ToString::to_string).unwrap_or_default();
        let by_id = disks.records.iter().map(|disk| (disk.id.to_string(), disk.clone()));
        let mut account = Self { base_url, disks: by_id.collect(), ..Self::default() };
        account.take(Adoptable::Instance, &instances, instance, |instance| {
            (Some(instance.uid.to_string()), instance.is_released())
        })?;
        account.take(Adoptable::CloudDisk, &disks, cloud_disk, |disk| (disk.uid.clone(), disk.is_released()))?;
        account.take(Adoptable::PrivateImage, &images, private_image, |image| (image.image_uuid.clone(), false))?;
        let machines = account.billed.iter().filter(|billed| billed.order.is_some());
        let regions: BTreeSet<String> = machines.filter_map(|billed| billed.region.clone()).collect();
        for region in regions {
            let specs = client.specs().snapshot(&region, context).await.map_err(unlisted("specification"))?;
            account.specs.extend(specs.records.iter().map(|spec| ((region.clone(), spec.spec_id), spec.clone())));
        }
        Ok(account)
    }

    /// Adds a list, if it is complete. `uid` is a record's uid, and whether it is released.
    fn take<T: Record>(
        &mut self,
        kind: Adoptable,
        listing: &Listing<T>,
        billed: impl Fn(&T) -> BilledObject,
        uid: impl Fn(&T) -> (Option<String>, bool),
    ) -> Result<(), Failure> {
        if !listing.complete {
            let total = listing.total.map_or_else(|| "an unknown number".to_owned(), |total| total.to_string());
            let (noun, seen) = (kind.noun(), listing.records.len());
            let message = format!("the list of {noun}s is not complete: {seen} of {total} could be read. Run it again");
            return Err(Failure::new(message));
        }
        for record in &listing.records {
            let (uid, is_released) = uid(record);
            self.uids.extend(uid.map(|uid| (kind, uid)));
            self.billed.extend((!is_released).then(|| billed(record)));
        }
        Ok(())
    }

    /// The hourly price of an instance with extra local disk in GB; `None` if the service has no price.
    pub(super) fn hourly(&self, billed: &BilledObject, extra_disk: i64) -> Option<BigDecimal> {
        let order = billed.order.as_ref()?;
        let spec = self.specs.get(&(billed.region.clone()?, order.spec_id))?;
        let terms = PriceTerms {
            payment_type: &order.payment_type,
            purchase_duration: 1,
            gpu_num: order.gpu_num,
            data_disk_expand_size_gb: extra_disk.max(0),
        };
        estimate(spec, &terms).hourly_equivalent.into_known().map(BigDecimal::from)
    }
}

/// What to do when the address or the token is missing.
const UNSET: &str = "cannot list the account. Set DAMODEL_BASE_URL and DAMODEL_API_TOKEN";

/// An hourly price as a monthly one.
pub(super) fn monthly(hourly: &BigDecimal) -> BigDecimal {
    hourly * BigDecimal::from(HOURS_A_MONTH)
}

fn instance(instance: &Instance) -> BilledObject {
    let order = || {
        Some(BilledTerms {
            payment_type: instance.payment_type.clone()?,
            spec_id: instance.spec_id?,
            gpu_num: instance.gpu_num?,
        })
    };
    BilledObject {
        kind: Adoptable::Instance,
        id: instance.uid.to_string(),
        name: instance.name.clone(),
        region: instance.region.clone(),
        status: instance.status.as_ref().map(ToString::to_string),
        since: instance.start_time,
        order: order(),
    }
}

fn cloud_disk(disk: &CloudDisk) -> BilledObject {
    let number = |status: i64| format!("unknown({status})");
    BilledObject {
        kind: Adoptable::CloudDisk,
        id: disk.id.to_string(),
        name: disk.name.clone(),
        region: None,
        status: disk.status_name().map(str::to_owned).or_else(|| disk.status.map(number)),
        since: disk.create_time,
        order: None,
    }
}

fn private_image(image: &PrivateImage) -> BilledObject {
    let status = |status: i64| match status {
        0 => "creating".to_owned(),
        1 => "ready".to_owned(),
        other => format!("unknown({other})"),
    };
    BilledObject {
        kind: Adoptable::PrivateImage,
        id: image.image_id.to_string(),
        name: image.image_name.clone(),
        region: image.region.clone(),
        status: image.image_status.map(status),
        since: image.create_time,
        order: None,
    }
}
