//! The list of instance specifications (service API, GET /api/spec/list).

use axum::http::Method;
use serde_json::{Value, json};

use super::call::{CallContext, Endpoint, EndpointInput};
use crate::{query::unpaged, refusal::ServiceRefusal, world::Spec};

pub(super) const LIST: Endpoint = Endpoint { name: "spec_list", method: Method::GET, path: "/api/spec/list", handle };

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
