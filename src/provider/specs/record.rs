//! The attributes of a specification.

use bigdecimal::BigDecimal;
use serde::{Deserialize, Serialize};

use crate::{
    api::Spec,
    framework::{Attr, Type, schema::Attribute, value::Number},
    provider::words::discount_status,
};

/// A struct with the fields of a specification, under the attribute names of the data sources (service API, Instance
/// specification), and additional fields. Used for the rows of the list and for the data source of one specification.
macro_rules! with_spec {
    ($(#[$meta:meta])* $name:ident { $($own:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(in crate::provider) struct $name {
            $(pub(super) $own: Attr<$ty>,)*
            pub(super) spec_id: Attr<i64>,
            pub(super) spec_type: Attr<String>,
            pub(super) region: Attr<String>,
            pub(super) capacity_type: Attr<String>,
            pub(super) gpu_name: Attr<String>,
            pub(super) gpu_mem_mb: Attr<i64>,
            pub(super) max_gpu_count: Attr<i64>,
            pub(super) available: Attr<bool>,
            pub(super) cpu_per_gpu: Attr<i64>,
            pub(super) mem_per_gpu_gb: Attr<i64>,
            pub(super) sys_disk_size_gb: Attr<i64>,
            pub(super) data_disk_size_gb: Attr<i64>,
            pub(super) data_disk_expand_quota_gb: Attr<i64>,
            pub(super) highest_cuda: Attr<String>,
            pub(super) support_ib_network: Attr<bool>,
            pub(super) hourly_price: Attr<Number>,
            pub(super) daily_price: Attr<Number>,
            pub(super) monthly_price: Attr<Number>,
            pub(super) hourly_data_disk_price: Attr<Number>,
            pub(super) daily_data_disk_price: Attr<Number>,
            pub(super) monthly_data_disk_price: Attr<Number>,
            pub(super) hourly_discount: Attr<Number>,
            pub(super) daily_discount: Attr<Number>,
            pub(super) monthly_discount: Attr<Number>,
            pub(super) hourly_discount_status: Attr<String>,
            pub(super) daily_discount_status: Attr<String>,
            pub(super) monthly_discount_status: Attr<String>,
            pub(super) rush_sale: Attr<bool>,
        }

        impl $name {
            /// Sets the attributes from a specification of a region.
            pub(super) fn take(&mut self, spec: &Spec, region: &str) {
                self.spec_id = spec.spec_id.into();
                self.spec_type = spec.spec_type.clone().into();
                self.region = region.into();
                self.capacity_type = spec.capacity_type.clone().into();
                self.gpu_name = spec.gpu_name.clone().into();
                self.gpu_mem_mb = spec.gpu_mem.into();
                self.max_gpu_count = spec.max_gpu_count.into();
                self.available = spec.max_gpu_count.map(|count| count > 0).into();
                self.cpu_per_gpu = spec.cpu_per_gpu.into();
                self.mem_per_gpu_gb = spec.mem_per_gpu.into();
                self.sys_disk_size_gb = spec.sys_disk_size.into();
                self.data_disk_size_gb = spec.data_disk_size.into();
                self.data_disk_expand_quota_gb = spec.data_disk_expand_quota.into();
                self.highest_cuda = spec.highest_cuda.clone().into();
                self.support_ib_network = spec.support_ib_network.into();
                self.hourly_price = number(spec.hourly_price.as_ref());
                self.daily_price = number(spec.daily_price.as_ref());
                self.monthly_price = number(spec.monthly_price.as_ref());
                self.hourly_data_disk_price = number(spec.hourly_data_disk_price.as_ref());
                self.daily_data_disk_price = number(spec.daily_data_disk_price.as_ref());
                self.monthly_data_disk_price = number(spec.monthly_data_disk_price.as_ref());
                self.hourly_discount = number(spec.hourly_discount.as_ref());
                self.daily_discount = number(spec.daily_discount.as_ref());
                self.monthly_discount = number(spec.monthly_discount.as_ref());
                self.hourly_discount_status = spec.hourly_discount_status.map(discount_status).into();
                self.daily_discount_status = spec.daily_discount_status.map(discount_status).into();
                self.monthly_discount_status = spec.monthly_discount_status.map(discount_status).into();
                self.rush_sale = spec.rush_sale_status.into();
            }
        }
    };
}

pub(super) use with_spec;

with_spec!(
    /// One specification.
    SpecRecord {}
);

impl SpecRecord {
    /// The record of a specification of a region.
    pub(super) fn of(spec: &Spec, region: &str) -> Self {
        let mut record = Self::default();
        record.take(spec, region);
        record
    }
}

pub(super) fn number(number: Option<&BigDecimal>) -> Attr<Number> {
    number.cloned().map(Number::from).into()
}

/// The attributes of a record, all computed.
pub(super) fn attributes() -> Vec<Attribute> {
    const PERIODS: [(&str, &str); 3] = [("hourly", "an hour"), ("daily", "a day"), ("monthly", "a month")];
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    let flag = |name: &'static str, description: &str| Attribute::computed(name, Type::Bool, description);
    let of = |period: &str, what: &str, ty: Type, description: String| {
        Attribute::computed(format!("{period}_{what}"), ty, description)
    };
    let mut attributes = vec![
        number("spec_id", "The specification's number."),
        text("spec_type", "The specification's code."),
        text("region", "The region."),
        text("capacity_type", "`ondemand` or `spot`."),
        text("gpu_name", "The GPU model; for a CPU specification, possibly a CPU identifier."),
        number("gpu_mem_mb", "The memory of a GPU in MB."),
        number("max_gpu_count", "How many GPUs one instance can have now; 0 when sold out."),
        flag("available", "Whether an instance can be created now."),
        number("cpu_per_gpu", "CPU cores for each GPU."),
        number("mem_per_gpu_gb", "Memory for each GPU in GB."),
        number("sys_disk_size_gb", "The system disk in GB."),
        number("data_disk_size_gb", "The local data disk in GB."),
        number("data_disk_expand_quota_gb", "By how much the local data disk can be larger, in GB."),
        text("highest_cuda", "The highest CUDA version that is supported."),
        flag("support_ib_network", "Whether there is an IB network."),
    ];
    for (period, word) in PERIODS {
        attributes.push(of(period, "price", Type::Number, format!("The price of a GPU for {word}.")));
    }
    for (period, word) in PERIODS {
        let description = format!("The price of a GB of additional local data disk for {word}.");
        attributes.push(of(period, "data_disk_price", Type::Number, description));
    }
    for (period, word) in PERIODS {
        let description =
            format!("The discount on {word}, as the service reports it; it is not applied to the prices.");
        attributes.push(of(period, "discount", Type::Number, description));
        let description = format!(
            "The status of the discount on {word}: `none`, `voided`, `not_yet_effective`, `expired`, `effective` or \
             `effective_with_next`."
        );
        attributes.push(of(period, "discount_status", Type::String, description));
    }
    attributes.push(flag("rush_sale", "Whether this is a rush-sale specification."));
    attributes
}
