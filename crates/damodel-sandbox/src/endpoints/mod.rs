//! The endpoints of the OpenAPI, one file for each or for a few similar ones. The chat endpoint, which has no envelope,
//! is in `chat`.
//!
//! An endpoint is a value of [`Endpoint`], listed in [`ENDPOINTS`]; a new one is one file and one line.

mod cloud_disks;
mod images;
mod instance_create;
mod instance_disks;
mod instances;

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    clock::Tempo,
    form::Form,
    query::{Fields, Query, unpaged},
    random::RandomStream,
    render::{Code, ServiceRefusal},
    world::{Account, Spec, Visibility, World},
};

/// All endpoints of the sandbox.
pub(super) const ENDPOINTS: [&Endpoint; 17] = [
    &instance_create::ENDPOINT,
    &instances::LIST,
    &instances::DETAIL,
    &instances::ENDPOINT,
    &instances::RELEASE,
    &cloud_disks::ENDPOINT,
    &cloud_disks::LIST,
    &cloud_disks::RENAME,
    &cloud_disks::RESIZE,
    &cloud_disks::RELEASE,
    &cloud_disks::SPEC_LIST,
    &images::PUBLIC_LIST,
    &images::PRIVATE_LIST,
    &images::ENDPOINT,
    &images::RENAME,
    &images::DELETE,
    &LIST,
];

/// An endpoint (service API, Endpoints).
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Its name in faults and ledgers.
    pub(super) name: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// Answers an authenticated request.
    pub(super) handle: fn(&mut CallContext<'_>, &EndpointInput<'_>) -> Result<Value, ServiceRefusal>,
}

/// The parts of a request that an endpoint reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndpointInput<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) content_type: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl EndpointInput<'_> {
    pub(super) fn query(&self) -> Result<Query, ServiceRefusal> {
        Query::parse(self.query)
    }

    pub(super) fn fields(&self) -> Result<Fields, ServiceRefusal> {
        Fields::of_body(self.content_type, self.body)
    }

    /// The number that ends the path.
    pub(super) fn path_id(&self, name: &str) -> Result<i64, ServiceRefusal> {
        let text = self.path.rsplit('/').next().unwrap_or_default();
        text.parse().map_err(|_| ServiceRefusal::invalid(format!("{name}: expected an integer, got {text:?}")))
    }

    /// Refuses any body: the document names none for this endpoint.
    pub(super) fn no_body(&self) -> Result<(), ServiceRefusal> {
        if self.body.is_empty() { Ok(()) } else { Err(ServiceRefusal::invalid("body: none is expected")) }
    }

    /// Refuses any query parameter: the document names none for this endpoint.
    pub(super) fn no_query(&self) -> Result<(), ServiceRefusal> {
        self.query()?.finish()
    }
}

/// What a fault does to the object that a call creates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CreationWish {
    pub(super) fail: bool,
    pub(super) stick: bool,
    pub(super) hidden_ms: i64,
    pub(super) hidden_reads: u32,
}

/// The state that an endpoint reads and changes.
#[derive(Debug)]
pub(super) struct CallContext<'a> {
    pub(super) world: &'a mut World,
    pub(super) form: &'a Form,
    /// For the order of lists.
    pub(super) random: &'a mut RandomStream,
    /// The name of the requesting account.
    pub(super) account: &'a str,
    /// The life clock.
    pub(super) now_ms: i64,
    pub(super) tempo: Tempo,
    pub(super) wish: CreationWish,
    /// The uids or ids that the call creates.
    pub(super) created: Vec<String>,
    /// The uids or ids whose release the call begins.
    pub(super) released: Vec<String>,
}

impl CallContext<'_> {
    /// The requesting account.
    fn asking(&self) -> Option<&Account> {
        self.world.account(self.account)
    }

    /// When lists and details show the objects that the call creates.
    fn visibility(&self) -> Visibility {
        Visibility { from_ms: self.now_ms.saturating_add(self.wish.hidden_ms), after_reads: self.wish.hidden_reads }
    }

    /// Refuses an account without balance. The document names no prices of cloud disks and images, so any balance above
    /// 0 is enough.
    fn require_balance(&self) -> Result<(), ServiceRefusal> {
        match self.asking() {
            Some(account) if account.balance <= 0.0 => {
                Err(ServiceRefusal::new(Code::BalanceNotEnough, "the main account's balance is too low"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Cloud disk operations and storage specification queries need a permission (service API, Authentication).
    fn require_disk_permission(&self) -> Result<(), ServiceRefusal> {
        if self.asking().is_some_and(|account| account.may_use_disks) {
            Ok(())
        } else {
            Err(ServiceRefusal::new(Code::PermissionDenied, "cloud disks are not permitted to this account"))
        }
    }
}

/// The problem with an object's name, if any. The document calls a name "malformed" without a rule; here it has 1 to
/// 128 characters, no control characters and no white space at its ends.
fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("must not be empty")
    } else if name.chars().count() > 128 {
        Some("must have at most 128 characters")
    } else if name.chars().any(char::is_control) || name.trim() != name {
        Some("must hold no control characters, and no white space at its ends")
    } else {
        None
    }
}

const LIST: Endpoint = Endpoint { name: "spec_list", method: Method::GET, path: "/api/spec/list", handle };

fn handle(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    let mut query = input.query()?;
    let region = query.required_string("region")?;
    let capacity_type = query.string("capacity_type");
    if let Some(capacity_type) = capacity_type.as_deref().filter(|&word| !matches!(word, "ondemand" | "spot")) {
        return Err(ServiceRefusal::invalid(format!("capacity_type: {capacity_type:?} is neither ondemand nor spot")));
    }
    // Reserved: accepted without effect, so that no client relies on these filters.
    for reserved in ["gpu_name", "gpu_num", "lowest_cpu_per_gpu", "lowest_mem_per_gpu", "lowest_cuda"] {
        query.string(reserved);
    }
    query.finish()?;

    let records = context
        .world
        .specs
        .iter()
        .filter(|spec| spec.enabled && spec.region == region)
        .filter(|spec| capacity_type.as_ref().is_none_or(|capacity_type| spec.capacity_type == *capacity_type))
        .map(record)
        .collect();
    Ok(unpaged(records, context.form, context.random))
}

fn record(spec: &Spec) -> Value {
    let [hourly_discount_status, daily_discount_status, monthly_discount_status] = spec.discount_statuses;
    json!({
        "spec_id": spec.id,
        "spec_type": spec.spec_type,
        "capacity_type": spec.capacity_type,
        "gpu_name": spec.gpu_name,
        "gpu_mem": spec.gpu_mem,
        "max_gpu_count": spec.max_gpu_count(),
        "cpu_per_gpu": spec.cpu_per_gpu,
        "mem_per_gpu": spec.mem_per_gpu,
        "sys_disk_size": spec.sys_disk_size,
        "data_disk_size": spec.data_disk_size,
        "data_disk_expand_quota": spec.data_disk_expand_quota,
        "highest_cuda": spec.highest_cuda,
        "support_ib_network": i64::from(spec.support_ib_network),
        "hourly_price": spec.prices.hourly,
        "daily_price": spec.prices.daily,
        "monthly_price": spec.prices.monthly,
        "hourly_data_disk_price": spec.data_disk_prices.hourly,
        "daily_data_disk_price": spec.data_disk_prices.daily,
        "monthly_data_disk_price": spec.data_disk_prices.monthly,
        "hourly_discount": spec.discounts.hourly,
        "daily_discount": spec.discounts.daily,
        "monthly_discount": spec.discounts.monthly,
        "hourly_discount_status": hourly_discount_status,
        "daily_discount_status": daily_discount_status,
        "monthly_discount_status": monthly_discount_status,
        "rush_sale_status": i64::from(spec.rush_sale),
    })
}
