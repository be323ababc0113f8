//! Instance specifications (service API, Instance specification).

use bigdecimal::BigDecimal;
use serde::Deserialize;

use crate::api::{lenient, records::Record};

/// What an instance can be made of, with its prices now.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Spec {
    /// `spec_id`.
    #[serde(deserialize_with = "lenient::required_integer")]
    pub spec_id: i64,
    /// `spec_type`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub spec_type: Option<String>,
    /// `capacity_type`: `ondemand` or `spot`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub capacity_type: Option<String>,
    /// `gpu_name`; a CPU identifier for CPU specifications.
    #[serde(default, deserialize_with = "lenient::text")]
    pub gpu_name: Option<String>,
    /// `gpu_mem` of one GPU, in MB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub gpu_mem: Option<i64>,
    /// `max_gpu_count`; 0 means that none can be created.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub max_gpu_count: Option<i64>,
    /// `cpu_per_gpu`, in cores.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub cpu_per_gpu: Option<i64>,
    /// `mem_per_gpu`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub mem_per_gpu: Option<i64>,
    /// `sys_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub sys_disk_size: Option<i64>,
    /// `data_disk_size`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub data_disk_size: Option<i64>,
    /// `data_disk_expand_quota`, in GB.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub data_disk_expand_quota: Option<i64>,
    /// `highest_cuda`.
    #[serde(default, deserialize_with = "lenient::text")]
    pub highest_cuda: Option<String>,
    /// `support_ib_network`.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub support_ib_network: Option<bool>,
    /// `hourly_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_price: Option<BigDecimal>,
    /// `daily_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_price: Option<BigDecimal>,
    /// `monthly_price`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_price: Option<BigDecimal>,
    /// `hourly_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_data_disk_price: Option<BigDecimal>,
    /// `daily_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_data_disk_price: Option<BigDecimal>,
    /// `monthly_data_disk_price`, per GB of expansion.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_data_disk_price: Option<BigDecimal>,
    /// `hourly_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub hourly_discount: Option<BigDecimal>,
    /// `daily_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub daily_discount: Option<BigDecimal>,
    /// `monthly_discount`.
    #[serde(default, deserialize_with = "lenient::decimal")]
    pub monthly_discount: Option<BigDecimal>,
    /// `hourly_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub hourly_discount_status: Option<i64>,
    /// `daily_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub daily_discount_status: Option<i64>,
    /// `monthly_discount_status`, 0 to 5.
    #[serde(default, deserialize_with = "lenient::integer")]
    pub monthly_discount_status: Option<i64>,
    /// `rush_sale_status`: 0 ordinary, 1 rush sale.
    #[serde(default, deserialize_with = "lenient::boolean")]
    pub rush_sale_status: Option<bool>,
}

impl Record for Spec {
    type Key = (i64, Option<String>, Option<String>);

    fn key(&self) -> Self::Key {
        (self.spec_id, self.capacity_type.clone(), self.spec_type.clone())
    }
}
