//! The inventory of the account, and the prices of its objects: the only file here that sends requests.
//!
//! `pending` does not list from here: it judges single objects by a look, also if a list is not complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigdecimal::BigDecimal;
use serde::Serialize;
use serde_json::Value;

use crate::{
    api::{
        Client, CloudDisk, Context, Instance, Listing, Object, ObjectKind, PrivateImage, Spec, WithJson,
        disk_status::{MOUNTED, MOUNTING, UNMOUNTING},
    },
    commands::Failure,
    provider::{
        pricing::{PriceTerms, estimate},
        words::{self, release_target},
    },
    review::Money,
};

/// The objects and specifications in the service's lists, each of which is complete.
#[derive(Debug, Default)]
pub(in crate::commands) struct Inventory {
    /// The billed objects.
    pub(in crate::commands) billed: Vec<BilledObject>,
    /// The released objects, which are not billed.
    pub(in crate::commands) released: Vec<BilledObject>,
    /// The uid of each listed object, released ones included: proof that an object belongs to this account. Numbers are
    /// none, because each account has its own disk 7.
    pub(in crate::commands) uids: BTreeSet<(ObjectKind, String)>,
    /// The specifications, by region and number.
    pub(in crate::commands) specs: BTreeMap<(String, i64), WithJson<Spec>>,
    /// The cloud disks by id.
    pub(in crate::commands) disks: BTreeMap<String, CloudDisk>,
    /// The address that was asked.
    pub(in crate::commands) base_url: String,
    /// The service's clock in the answer with the instances, in Unix seconds.
    pub(in crate::commands) date: Option<i64>,
}

/// A billed object.
#[derive(Clone, Debug, Serialize)]
pub(in crate::commands) struct BilledObject {
    pub(in crate::commands) kind: ObjectKind,
    /// Its import id.
    pub(in crate::commands) id: String,
    /// What identifies it in all accounts, if the id is a number.
    #[serde(skip)]
    pub(in crate::commands) uid: Option<String>,
    pub(in crate::commands) name: Option<String>,
    pub(in crate::commands) region: Option<String>,
    pub(in crate::commands) status: Option<String>,
    /// The time of its creation, in Unix seconds.
    #[serde(skip)]
    pub(in crate::commands) since: Option<i64>,
    /// Of an instance.
    #[serde(skip)]
    pub(in crate::commands) payment_type: Option<String>,
    /// The basis of an instance's price.
    #[serde(skip)]
    pub(in crate::commands) order: Option<BilledTerms>,
    /// The mounts of a cloud disk, which the service does not release then.
    #[serde(skip)]
    pub(in crate::commands) mounts: Option<String>,
}

/// The basis of an instance's price.
#[derive(Clone, Debug)]
pub(in crate::commands) struct BilledTerms {
    pub(in crate::commands) payment_type: String,
    pub(in crate::commands) spec_id: i64,
    pub(in crate::commands) gpu_num: i64,
}

impl BilledObject {
    /// The name by which `release` takes it.
    pub(in crate::commands) fn target(&self) -> String {
        release_target(self.kind, &self.id)
    }
}

impl Inventory {
    /// Reads one list for each kind, and one of specifications for each region.
    pub(in crate::commands) async fn read(client: &Client, context: &Context) -> Result<Self, Failure> {
        client.check_configured().map_err(|missing| Failure::because("cannot list the account", missing))?;
        let base_url = client.settings().base_url.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut inventory = Self { base_url, ..Self::default() };
        inventory.list::<Instance>(client, context).await?;
        inventory.date = client.last_date();
        inventory.list_disks(client, context).await?;
        inventory.list::<PrivateImage>(client, context).await?;
        let instances = inventory.billed.iter().filter(|billed| billed.order.is_some());
        let regions: BTreeSet<String> = instances.filter_map(|billed| billed.region.clone()).collect();
        for region in regions {
            let specs = client.specs().snapshot(&region, context).await.map_err(unlisted("specification"))?;
            inventory.specs.extend(specs.records.iter().map(|spec| ((region.clone(), spec.spec_id), spec.clone())));
        }
        Ok(inventory)
    }

    /// Adds the list of cloud disks.
    pub(in crate::commands) async fn list_disks(&mut self, client: &Client, context: &Context) -> Result<(), Failure> {
        let disks = self.list::<CloudDisk>(client, context).await?;
        self.disks = disks.records.iter().map(|disk| (disk.id.to_string(), disk.clone())).collect();
        Ok(())
    }

    /// Adds the list of a kind, if it is complete.
    async fn list<K: Listed>(&mut self, client: &Client, context: &Context) -> Result<Arc<Listing<K>>, Failure> {
        let noun = K::KIND.noun();
        let listing = client.objects::<K>().fresh(context).await.map_err(unlisted(noun))?;
        if !listing.complete {
            let total = listing.total.map_or_else(|| "an unknown number".to_owned(), |total| total.to_string());
            let seen = listing.records.len();
            let message = format!("the list of {noun}s is incomplete: {seen} of {total} could be read. Try again");
            return Err(Failure::new(message));
        }
        for record in &listing.records {
            let listed = record.billed();
            let uid = if K::KIND == ObjectKind::Instance { Some(&listed.id) } else { listed.uid.as_ref() };
            self.uids.extend(uid.map(|uid| (K::KIND, uid.clone())));
            if record.is_released() { &mut self.released } else { &mut self.billed }.push(listed);
        }
        Ok(listing)
    }

    /// The hourly price of an instance with extra local disk in GB; `None` if the service has no price.
    pub(in crate::commands) fn hourly(&self, billed: &BilledObject, extra_disk: i64) -> Option<Money> {
        let order = billed.order.as_ref()?;
        let spec = self.specs.get(&(billed.region.clone()?, order.spec_id))?;
        let terms = PriceTerms {
            payment_type: &order.payment_type,
            purchase_duration: 1,
            gpu_num: order.gpu_num,
            data_disk_expand_size_gb: extra_disk.max(0),
        };
        estimate(spec, &terms).hourly_equivalent.into_known().map(|hourly| BigDecimal::from(hourly).into())
    }
}

fn unlisted(noun: &str) -> impl Fn(crate::api::Error) -> Failure {
    move |error| Failure::because(format!("cannot list the {noun}s of the account"), error)
}

/// A kind of object in the inventory.
pub(in crate::commands) trait Listed: Object {
    /// The object, as a list shows it.
    fn billed(&self) -> BilledObject {
        self.complete(BilledObject {
            kind: Self::KIND,
            id: self.key().to_string(),
            uid: self.uid().map(str::to_owned),
            name: self.name().map(str::to_owned),
            region: None,
            status: None,
            since: None,
            payment_type: None,
            order: None,
            mounts: None,
        })
    }

    /// Adds what is read differently for each kind.
    fn complete(&self, listed: BilledObject) -> BilledObject;
}

impl Listed for Instance {
    fn complete(&self, listed: BilledObject) -> BilledObject {
        let terms = self.payment_type.clone().zip(self.spec_id).zip(self.gpu_num);
        BilledObject {
            region: self.region.clone(),
            status: self.status.as_ref().map(ToString::to_string),
            since: self.start_time,
            payment_type: self.payment_type.clone(),
            order: terms.map(|((payment_type, spec_id), gpu_num)| BilledTerms { payment_type, spec_id, gpu_num }),
            ..listed
        }
    }
}

impl Listed for CloudDisk {
    fn complete(&self, listed: BilledObject) -> BilledObject {
        let bound: Vec<String> =
            self.binding_instances.iter().chain(&self.binding_clusters).map(Value::to_string).collect();
        let is_mounted = !bound.is_empty() || matches!(self.status, Some(MOUNTING | UNMOUNTING | MOUNTED));
        let by =
            if bound.is_empty() { "an object that the service does not name".to_owned() } else { bound.join(", ") };
        BilledObject {
            status: self.status.map(words::disk_status),
            since: self.create_time,
            mounts: is_mounted.then_some(by),
            ..listed
        }
    }
}

impl Listed for PrivateImage {
    fn complete(&self, listed: BilledObject) -> BilledObject {
        BilledObject {
            region: self.region.clone(),
            status: self.image_status.map(words::image_status),
            since: self.create_time,
            ..listed
        }
    }
}
