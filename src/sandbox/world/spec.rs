//! Instance specifications and their stock.

use serde::{Deserialize, Serialize};

use super::Payment;

/// Three numbers, one for each billing period that has a price (service API, Instance specification).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Prices {
    pub(in crate::sandbox) hourly: f64,
    pub(in crate::sandbox) daily: f64,
    pub(in crate::sandbox) monthly: f64,
}

impl Prices {
    /// The price of one period. The document names no weekly price: seven days are taken.
    pub(in crate::sandbox) fn of(self, payment: Payment) -> f64 {
        match payment {
            Payment::Hourly => self.hourly,
            Payment::Daily => self.daily,
            Payment::Weekly => (self.daily * 700.0).round() / 100.0,
            Payment::Monthly => self.monthly,
        }
    }
}

/// A specification in one region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::sandbox) struct Spec {
    pub(in crate::sandbox) id: i64,
    pub(in crate::sandbox) spec_type: String,
    pub(in crate::sandbox) region: String,
    pub(in crate::sandbox) capacity_type: String,
    pub(in crate::sandbox) gpu_name: String,
    pub(in crate::sandbox) gpu_mem: i64,
    /// What one machine can have at most, however many are free.
    pub(in crate::sandbox) machine_limit: i64,
    /// How many are free in all; live instances have taken theirs.
    pub(in crate::sandbox) stock: i64,
    /// How many are free on the node that has most.
    pub(in crate::sandbox) node_limit: i64,
    pub(in crate::sandbox) cpu_per_gpu: i64,
    pub(in crate::sandbox) mem_per_gpu: i64,
    pub(in crate::sandbox) sys_disk_size: i64,
    pub(in crate::sandbox) data_disk_size: i64,
    pub(in crate::sandbox) data_disk_expand_quota: i64,
    /// "" for a specification without CUDA.
    pub(in crate::sandbox) highest_cuda: String,
    pub(in crate::sandbox) support_ib_network: bool,
    pub(in crate::sandbox) prices: Prices,
    pub(in crate::sandbox) data_disk_prices: Prices,
    pub(in crate::sandbox) discounts: Prices,
    /// Hourly, daily, monthly: 0 … 5.
    pub(in crate::sandbox) discount_statuses: [i64; 3],
    pub(in crate::sandbox) rush_sale: bool,
    pub(in crate::sandbox) enabled: bool,
}

impl Spec {
    /// The largest purchasable GPU count now; 0 means that none can be created.
    pub(in crate::sandbox) fn max_gpu_count(&self) -> i64 {
        self.machine_limit.min(self.stock).min(self.node_limit).max(0)
    }
}
