//! The budget of the whole account (`max_account_hourly_price`): the hourly cost of all its instances, including those
//! that this process plans and creates. Another process is known only from the account's list.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bigdecimal::BigDecimal;
use futures_util::future::try_join_all;
use tokio::{sync::OnceCell, time::Instant};

use super::{
    ProviderClient,
    errors::Failure,
    pricing::{PriceTerms, Prices, cost, select},
};
use crate::{
    api::{self, Code, Context, Instance, ObjectKind},
    framework::{Attr, Diagnostic, Diagnostics, value::Number},
};

/// The number of most expensive instances in an error.
const DEAREST: usize = 3;

/// The budget, and what this process adds to the account's cost.
#[derive(Debug)]
pub(super) struct AccountBudget {
    most: Number,
    own: Mutex<OwnItems>,
    /// What only the details of instances show, by uid.
    own_terms: Mutex<BTreeMap<String, Arc<OnceCell<Option<OwnTerms>>>>>,
}

/// The cost items of this process.
#[derive(Debug, Default)]
struct OwnItems {
    /// The planned instances, by the plan's id.
    planned: BTreeMap<String, Item>,
    /// The creates, from just before their requests: the list shows an accepted one late.
    creates: Vec<OwnCreate>,
}

/// A create of this process.
#[derive(Debug)]
struct OwnCreate {
    /// The name that it sends.
    marker: String,
    /// The instance's id, once accepted.
    uid: Option<String>,
    item: Item,
}

/// What an instance itself says about its price.
#[derive(Clone, Debug)]
struct OwnTerms {
    data_disk_gb: Option<i64>,
    prices: Prices,
}

/// A cost item.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    title: String,
    hourly: Number,
}

/// The current costs of the account, from lists.
#[derive(Debug)]
pub(super) struct AccountBill<'a> {
    budget: &'a AccountBudget,
    items: Vec<Item>,
    /// Ids and names of instances that do not count, although this process created them.
    gone: BTreeSet<String>,
}

/// All items that count against the budget, except the instance being checked.
#[derive(Debug)]
pub(super) struct Room<'a> {
    most: &'a Number,
    items: Vec<Item>,
}

/// Instances that do not count because the planned one replaces them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replaced<'a> {
    /// The id of the replaced instance.
    pub(super) uid: Option<&'a str>,
    /// The planned name: a tainted instance with this name is replaced, but the plan does not contain its id.
    pub(super) tainted: Option<&'a str>,
}

impl AccountBudget {
    pub(super) fn new(most: Number) -> Self {
        Self { most, own: Mutex::default(), own_terms: Mutex::default() }
    }

    /// The limit.
    pub(super) fn most(&self) -> &Number {
        &self.most
    }

    /// Removes a planned instance: its create has started, or it is not created.
    pub(super) fn forget_plan(&self, plan: &str) {
        self.own().planned.remove(plan);
    }

    /// Records the outcome of a create: the id of its instance. Without an id the create no longer counts.
    pub(super) fn ended(&self, marker: &str, uid: Option<&str>) {
        let mut own = self.own();
        own.creates.retain(|create| create.marker != marker || uid.is_some());
        for create in own.creates.iter_mut().filter(|create| create.marker == marker) {
            create.uid = uid.map(str::to_owned);
        }
    }

    /// Removes the create of a released instance.
    pub(super) fn released(&self, uid: &str) {
        self.own().creates.retain(|create| create.uid.as_deref() != Some(uid));
    }

    fn own(&self) -> MutexGuard<'_, OwnItems> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current costs of the account, from lists requested at `since` or later, otherwise from a snapshot.
    async fn billed<'a>(
        &'a self,
        client: &ProviderClient,
        replaced: Replaced<'_>,
        since: Option<Instant>,
        limits: &Context,
    ) -> Result<AccountBill<'a>, Refusal> {
        let instances = client.api.instances();
        let listing = match since {
            Some(since) => instances.since(since, limits).await?,
            None => instances.snapshot(limits).await?,
        };
        if !listing.complete {
            return Err(Refusal::Unpriced("The list of the account's instances is incomplete.".to_owned()));
        }
        let is_gone = |instance: &&Instance| instance.is_released() || replaced.is(instance, client);
        let gone: BTreeSet<String> = listing.records.iter().filter(is_gone).flat_map(names).collect();
        let own: BTreeSet<String> = self.own().creates.iter().flat_map(OwnCreate::names).map(str::to_owned).collect();
        let counts = |instance: &&Instance| !is_gone(instance) && !names(instance).any(|name| own.contains(&name));
        let counted = listing.records.iter().filter(counts);
        let items = try_join_all(counted.map(|instance| self.item(instance, client, since, limits))).await?;
        let items = items.into_iter().flatten().collect();
        Ok(AccountBill { budget: self, items, gone })
    }

    /// The cost item of an instance at its live price, or else at its own; `None` if it is gone.
    async fn item(
        &self,
        instance: &Instance,
        client: &ProviderClient,
        since: Option<Instant>,
        limits: &Context,
    ) -> Result<Option<Item>, Refusal> {
        let title = super::words::title("instance", instance.name.as_deref(), Some(instance.uid.as_str()));
        let unpriced = |why: &str| Refusal::Unpriced(format!("The price of {title} is unknown: {why}."));
        let region = instance.region.as_deref().ok_or_else(|| unpriced("it has no region"))?;
        let gpu_num =
            instance.gpu_num.filter(|count| *count > 0).ok_or_else(|| unpriced("it has no number of GPUs"))?;
        let specs = client.api.specs();
        let specs = match since {
            Some(since) => specs.since(region, since, limits).await?,
            None => specs.snapshot(region, limits).await?,
        };
        let Some(own) = self.own_terms(instance, client, limits).await? else { return Ok(None) };
        let payment_type = instance.payment_type.as_deref().unwrap_or("Hourly");
        let id = instance.spec_id.filter(|id| *id != 0);
        let (prices, base_gb) = match select(&specs, id, instance.spec_type.as_deref()) {
            Some(spec) => (Prices::of(spec, payment_type), spec.data_disk_size.unwrap_or_default()),
            // A specification that was withdrawn is still billed, and how much of its disk is extra is unknown.
            None => (own.prices, own.data_disk_gb.unwrap_or_default()),
        };
        let extra_gb = own.data_disk_gb.unwrap_or(base_gb).saturating_sub(base_gb).max(0);
        let order = PriceTerms { payment_type, purchase_duration: 1, gpu_num, data_disk_expand_size_gb: extra_gb };
        match cost(&prices, &order).hourly_equivalent {
            Attr::Known(hourly) => Ok(Some(Item { title, hourly })),
            Attr::Null | Attr::Unknown => {
                Err(unpriced("the service has no price for its specification and payment type"))
            }
        }
    }

    /// What only the detail of an instance shows, requested once for all plans; `None` if it is gone.
    async fn own_terms(
        &self,
        instance: &Instance,
        client: &ProviderClient,
        limits: &Context,
    ) -> Result<Option<OwnTerms>, api::Error> {
        let look = {
            let mut looks = self.own_terms.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(looks.entry(instance.uid.to_string()).or_default())
        };
        let own = look.get_or_try_init(|| async {
            match client.api.instances().detail(&instance.uid, limits).await {
                Ok(detail) => Ok(Some(OwnTerms {
                    data_disk_gb: detail.more.data_disk_size,
                    prices: Prices {
                        price: detail.more.gpu_price,
                        data_disk_price: detail.more.data_disk_price,
                        ..Prices::default()
                    },
                })),
                Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => Ok(None),
                Err(error) => Err(error),
            }
        });
        own.await.cloned()
    }
}

/// Why the budget cannot be checked.
enum Refusal {
    Failed(api::Error),
    Unpriced(String),
}

impl From<api::Error> for Refusal {
    fn from(error: api::Error) -> Self {
        Self::Failed(error)
    }
}

impl OwnCreate {
    /// What identifies its instance in a list.
    fn names(&self) -> impl Iterator<Item = &str> {
        [Some(self.marker.as_str()), self.uid.as_deref()].into_iter().flatten()
    }
}

impl Replaced<'_> {
    fn is(&self, instance: &Instance, client: &ProviderClient) -> bool {
        let is_tainted = || client.is_tainted(ObjectKind::Instance, instance.uid.as_str());
        self.uid == Some(instance.uid.as_str())
            || (self.tainted.is_some() && self.tainted == instance.name.as_deref() && is_tainted())
    }
}

/// The names under which a create may identify an instance.
fn names(instance: &Instance) -> impl Iterator<Item = String> {
    [Some(instance.uid.to_string()), instance.name.clone()].into_iter().flatten()
}

impl ProviderClient {
    /// The current costs of the account for a plan; `None` without a budget. The error is a warning if the service did
    /// not answer, and an error if a cost is unknown.
    pub(super) async fn billed_for_plan(
        &self,
        replaced: Replaced<'_>,
        limits: &Context,
    ) -> Result<Option<AccountBill<'_>>, Diagnostics> {
        let Some(budget) = &self.account_budget else { return Ok(None) };
        match budget.billed(self, replaced, None, limits).await {
            Ok(billed) => Ok(Some(billed)),
            Err(Refusal::Unpriced(reason)) => Err(unpriced(&reason).into()),
            Err(Refusal::Failed(error)) => {
                let tried = "check the account's budget".to_owned();
                let now = "The plan continues without this check; the apply repeats it.".to_owned();
                Err(Failure { error: &error, tried, now }.of_a_check(self))
            }
        }
    }

    /// The current costs of the account for a create, which is not sent if they are unknown.
    pub(super) async fn billed_for_create(
        &self,
        since: Instant,
        limits: &Context,
    ) -> Result<Option<AccountBill<'_>>, Diagnostic> {
        let Some(budget) = &self.account_budget else { return Ok(None) };
        match budget.billed(self, Replaced::default(), Some(since), limits).await {
            Ok(billed) => Ok(Some(billed)),
            Err(Refusal::Unpriced(reason)) => Err(unpriced(&format!("This instance was not bought. {reason}"))),
            Err(Refusal::Failed(error)) => {
                let tried = "check the account's budget".to_owned();
                let now = "This instance was not bought: the cost of the account is unknown.".to_owned();
                Err(Failure { error: &error, tried, now }.whole())
            }
        }
    }
}

fn unpriced(reason: &str) -> Diagnostic {
    Diagnostic::error(
        "The account's cost is unknown",
        format!(
            "{reason} Without it, the provider's max_account_hourly_price cannot be enforced. Release that instance, \
             or use a provider configuration without this budget (alias)."
        ),
    )
}

impl AccountBill<'_> {
    /// Runs `decide` for a planned instance, one plan at a time. The price that it returns counts for later plans.
    pub(super) fn plan(&self, plan: &str, title: &str, decide: impl FnOnce(&Room<'_>) -> Option<Number>) {
        let mut own = self.budget.own();
        own.planned.remove(plan);
        if let Some(hourly) = decide(&self.room(&own)) {
            own.planned.insert(plan.to_owned(), Item { title: title.to_owned(), hourly });
        }
    }

    /// Counts a create from now on, unless the budget forbids it.
    pub(super) fn reserve(&self, marker: &str, title: &str, hourly: &Number) -> Result<(), Diagnostic> {
        let mut own = self.budget.own();
        own.creates.retain(|create| create.marker != marker);
        self.room(&own).hold(title, hourly)?;
        let item = Item { title: title.to_owned(), hourly: hourly.clone() };
        own.creates.push(OwnCreate { marker: marker.to_owned(), uid: None, item });
        Ok(())
    }

    fn room(&self, own: &OwnItems) -> Room<'_> {
        let creates = own.creates.iter().filter(|create| !create.names().any(|name| self.gone.contains(name)));
        let own = creates.map(|create| &create.item).chain(own.planned.values());
        Room { most: &self.budget.most, items: self.items.iter().chain(own).cloned().collect() }
    }
}

impl Room<'_> {
    /// Checks that an instance with this price fits into the budget.
    pub(super) fn hold(&self, title: &str, price: &Number) -> Result<(), Diagnostic> {
        let prices = self.items.iter().map(|item| &item.hourly).chain([price]);
        let sum: Number = prices.cloned().map(BigDecimal::from).sum::<BigDecimal>().into();
        if sum <= *self.most {
            return Ok(());
        }
        let mut dearest: Vec<Item> = self.items.clone();
        dearest.push(Item { title: title.to_owned(), hourly: price.clone() });
        dearest.sort_by(|a, b| b.hourly.cmp(&a.hourly));
        let dearest: Vec<String> =
            dearest.iter().take(DEAREST).map(|item| format!("{} ({} an hour)", item.title, item.hourly)).collect();
        Err(Diagnostic::error(
            "Above the account's budget",
            format!(
                "With {title} at {price} an hour the account would cost {sum} an hour, and the provider's \
                 max_account_hourly_price is {}. Release an instance, choose a cheaper specification, or raise the \
                 budget. The most expensive instances: {}.",
                self.most,
                dearest.join(", ")
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str, hourly: &str) -> Item {
        Item { title: title.to_owned(), hourly: hourly.parse().unwrap() }
    }

    #[test]
    fn the_one_that_goes_over_is_refused_with_the_dearest_three() {
        let most = "6".parse().unwrap();
        let items = vec![item("a", "1"), item("b", "0.5"), item("c", "2"), item("d", "0.52")];
        let room = Room { most: &most, items };
        room.hold("x", &"1.98".parse().unwrap()).unwrap();
        let refused = room.hold("x", &"1.981".parse().unwrap()).unwrap_err();
        for part in ["6.001", "is 6.", "c (2 an hour), x (1.981 an hour), a (1 an hour)."] {
            assert!(refused.detail.contains(part), "{part}: {}", refused.detail);
        }
    }
}
