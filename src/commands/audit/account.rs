//! The objects of the account and their prices: the only file of `audit` that sends requests.

use std::collections::{BTreeMap, BTreeSet};

use bigdecimal::BigDecimal;

use super::Error;
use crate::{
    api::{Client, CloudDisk, Context, Instance, Listing, PrivateImage, Record, Spec, WithJson},
    commands::adopt::Adoptable,
};

/// The hours of a month.
const HOURS_A_MONTH: i32 = 730;

/// The objects and specifications in the service's lists.
#[derive(Debug, Default)]
pub(super) struct AccountLists {
    /// The billed objects.
    pub(super) billed: Vec<BilledObject>,
    /// All listed objects, released ones included: proof that an object belongs to this account.
    pub(super) listed: BTreeSet<(Adoptable, String)>,
    /// The specifications, by region and number.
    pub(super) specs: BTreeMap<(String, i64), WithJson<Spec>>,
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
    pub(super) async fn read(client: &Client, context: &Context) -> Result<Self, Error> {
        let list = |kind: Adoptable| move |source| Error::List { kind: kind.noun(), source };
        let instances = client.instances().fresh(context).await.map_err(list(Adoptable::Instance))?;
        let disks = client.cloud_disks().fresh(context).await.map_err(list(Adoptable::CloudDisk))?;
        let images = client.private_images().fresh(context).await.map_err(list(Adoptable::PrivateImage))?;
        let mut account = Self::default();
        account.take(Adoptable::Instance, &instances, Instance::is_released, instance)?;
        account.take(Adoptable::CloudDisk, &disks, CloudDisk::is_released, cloud_disk)?;
        account.take(Adoptable::PrivateImage, &images, |_| false, private_image)?;
        let machines = account.billed.iter().filter(|billed| billed.order.is_some());
        let regions: BTreeSet<String> = machines.filter_map(|billed| billed.region.clone()).collect();
        for region in regions {
            let source = |source| Error::List { kind: "specification", source };
            let specs = client.specs().snapshot(&region, context).await.map_err(source)?;
            account.specs.extend(specs.records.iter().map(|spec| ((region.clone(), spec.spec_id), spec.clone())));
        }
        Ok(account)
    }

    /// Adds a list, if it is complete.
    fn take<T: Record>(
        &mut self,
        kind: Adoptable,
        listing: &Listing<T>,
        is_released: impl Fn(&T) -> bool,
        billed: impl Fn(&T) -> BilledObject,
    ) -> Result<(), Error> {
        if !listing.complete {
            let total = listing.total.map_or_else(|| "an unknown number".to_owned(), |total| total.to_string());
            return Err(Error::Incomplete { kind: kind.noun(), seen: listing.records.len(), total });
        }
        for record in &listing.records {
            let object = billed(record);
            self.listed.insert((kind, object.id.clone()));
            if !is_released(record) {
                self.billed.push(object);
            }
        }
        Ok(())
    }

    /// The hourly price of an instance with extra local disk in GB; `None` if the service has no price.
    pub(super) fn hourly(&self, billed: &BilledObject, extra_disk: i64) -> Option<BigDecimal> {
        let order = billed.order.as_ref()?;
        let spec = self.specs.get(&(billed.region.clone()?, order.spec_id))?;
        let (price, disk, hours) = match order.payment_type.as_str() {
            "Hourly" => (&spec.hourly_price, &spec.hourly_data_disk_price, 1),
            "Daily" => (&spec.daily_price, &spec.daily_data_disk_price, 24),
            "Monthly" => (&spec.monthly_price, &spec.monthly_data_disk_price, HOURS_A_MONTH),
            _ => return None,
        };
        let mut sum = price.as_ref()? * BigDecimal::from(order.gpu_num);
        if extra_disk > 0 {
            sum += disk.as_ref()? * BigDecimal::from(extra_disk);
        }
        Some(sum / BigDecimal::from(hours))
    }
}

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
        status: disk.status_name().map(|name| name.replace(' ', "_")).or_else(|| disk.status.map(number)),
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
