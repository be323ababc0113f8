//! The attributes and models of `damodel_instance`.

use serde::{Deserialize, Serialize};

use super::{
    candidates::{self, Candidate},
    disks::{self, Existing, New},
};
use crate::{
    framework::{
        Attr, Secret, Type,
        schema::{Attribute, AttributeType, Nesting, Replacement, Schema, Validator},
        timeouts::Timeouts,
        value::Number,
    },
    provider::{
        pricing::{self, EstimatedCost},
        rules,
    },
};

pub(super) const DEFAULT_MOUNT_PATH: &str = "/root/damodel-tmp";

/// An attribute that only a create sets: changing it replaces the instance.
fn fixed(attribute: Attribute) -> Attribute {
    attribute.replaces(Replacement::IfKnown)
}

pub(super) fn schema() -> Schema {
    let mut attributes = arguments();
    attributes.push(candidates::attribute());
    attributes.extend(disks::attributes());
    attributes.extend(behaviour());
    attributes.extend(reported());
    Schema::new(
        "An instance: GPUs, a system disk and a local data disk.\n\nThe service accepts a request at once and creates \
         the instance afterwards; the apply waits until the instance is Running. Destroying the instance, \
         and every change that forces replacement, deletes the system disk and the local data disk.",
        attributes,
    )
}

/// The arguments of a create (service API, POST /api/instance/create).
pub(super) fn arguments() -> Vec<Attribute> {
    vec![
        Attribute::optional_computed("name", Type::String, "The instance's name. Changed in place.")
            .validate(rules::non_empty()),
        fixed(Attribute::optional_computed(
            "region",
            Type::String,
            "The region. Default: the provider's `region`. Also used for `candidates` without a region.",
        ))
        .validate(rules::region()),
        fixed(Attribute::with_default(
            "payment_type",
            Type::String,
            "Hourly",
            "How the instance is paid for: `Hourly`, `Daily`, `Weekly` or `Monthly`. All but `Hourly` are prepaid, \
             and the service may refuse to release a prepaid instance before its term ends.",
        ))
        .validate(Validator::one_of(pricing::PAYMENT_TYPES)),
        fixed(Attribute::optional(
            "purchase_duration",
            Type::Number,
            "How many days, weeks or months are bought. A new instance needs it unless `payment_type` is `Hourly`, \
             where it has no effect and can be changed or removed in place.",
        ))
        .validate(Validator::between(1..=i64::MAX)),
        fixed(Attribute::optional_computed(
            "spec_id",
            Type::Number,
            "The specification's number (see the data source `damodel_specs`). If `spec_type` is set too, it must be \
             the code of this number.",
        ))
        .follows(&["spec_type"])
        .validate(Validator::between(1..=i64::MAX)),
        fixed(Attribute::optional_computed(
            "spec_type",
            Type::String,
            "The specification's code within the region. One of `spec_id`, `spec_type` and `candidates` is needed.",
        ))
        .follows(&["spec_id"])
        .validate(rules::non_empty()),
        fixed(Attribute::optional_computed(
            "gpu_num",
            Type::Number,
            "How many GPUs, from 1 to the specification's `max_gpu_count`. Default: 1 for a new instance or a \
             replacement; an existing instance keeps its number.",
        ))
        .validate(Validator::between(1..=i64::MAX)),
        fixed(Attribute::with_default(
            "data_disk_expand_size_gb",
            Type::Number,
            0,
            "Extra size of the local data disk in GB, at most the specification's `data_disk_expand_quota_gb`.",
        ))
        .validate(Validator::between(0..=i64::MAX)),
        fixed(Attribute::with_default(
            "data_disk_mount_path",
            Type::String,
            DEFAULT_MOUNT_PATH,
            "Where the local data disk is mounted.",
        ))
        .validate(Validator::text(rules::ABSOLUTE_PATH, rules::is_absolute_path)),
        fixed(Attribute::optional_computed(
            "image",
            Type::String,
            "The full address. One of `image` and `image_id` is needed; if both are set, `image_id` is sent \
             and `image` is not.",
        ))
        .follows(&["image_id", "image_type"])
        .validate(Validator::text("an image address: host/path", |address| {
            address.split_once('/').is_some_and(|(host, path)| !host.is_empty() && !path.is_empty())
                && !address.contains(char::is_whitespace)
        })),
        fixed(Attribute::optional_computed(
            "image_id",
            Type::Number,
            "The image's number, together with `image_type`.",
        ))
        .follows(&["image", "image_type"])
        .validate(Validator::between(1..=i64::MAX)),
        fixed(Attribute::optional_computed(
            "image_type",
            Type::String,
            "`public` or `private`, together with `image_id`.",
        ))
        .follows(&["image", "image_id"])
        .validate(Validator::one_of(&["public", "private"])),
        fixed(Attribute::optional(
            "hostname",
            Type::String,
            "The instance's host name: at most 42 letters, digits and hyphens, with a letter or digit at both ends.",
        ))
        .validate(Validator::text(
            "at most 42 letters, digits and hyphens, with a letter or digit at both ends",
            rules::is_hostname,
        )),
        fixed(Attribute::optional_computed("login_method", Type::String, "The login method: `ssh_key` or `password`."))
            .validate(Validator::one_of(&["ssh_key", "password"])),
        fixed(Attribute::optional(
            "ssh_pubkey_id",
            Type::Number,
            "The number of the registered public key. Needed to create an instance with `login_method = \"ssh_key\"`.",
        ))
        .validate(Validator::between(1..=i64::MAX)),
        fixed(Attribute::optional_computed(
            "ssh_pubkey_name",
            Type::String,
            "The name of the registered public key. Needed to create an instance with `login_method = \"ssh_key\"`.",
        )),
        // The service reports it, so null in the state means that the instance has no address; setting one needs a
        // replacement.
        Attribute::optional_computed("external_ip", Type::String, "A public address that was requested before.")
            .replaces(Replacement::Always)
            .validate(Validator::text("an IP address", |address| address.parse::<std::net::IpAddr>().is_ok())),
        fixed(Attribute::with_default(
            "auto_renew",
            Type::Bool,
            false,
            "Whether the service renews the term of a prepaid instance automatically. The API cannot change it later.",
        )),
    ]
}

/// The arguments for the provider's own behaviour, which are not sent.
fn behaviour() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "wait_for_capacity",
            Type::String,
            "How long to retry while there is no stock, such as `30m`, on top of `timeouts.create`. The price is \
             checked again before each attempt. Default: do not retry.",
        )
        .validate(Validator::duration()),
        Attribute::optional_computed(
            "max_age",
            Type::String,
            "The maximum age, counted from `start_time`, such as `8h`. The provider does not release the instance: a \
             refresh warns when it is older, and the command `expire` releases it. Changed in place. Default for an \
             hourly instance: the provider's `default_max_age`, else no limit.",
        )
        .validate(Validator::duration()),
        Attribute::with_default(
            "deletion_protection",
            Type::Bool,
            false,
            "If `true`, destroying or replacing the instance fails. To destroy it, first set this to `false` and \
             apply.",
        ),
        Attribute::with_default(
            "on_unreleasable",
            Type::String,
            "fail",
            "What happens when the service forbids the release (160012): `fail`, or `abandon`: remove the instance \
             from the state and let the paid term run out. `abandon` is for prepaid instances only. The environment \
             variable `DAMODEL_ON_UNRELEASABLE` overrides it for prepaid instances.",
        )
        .validate(Validator::one_of(&["fail", "abandon"])),
        store_credentials(),
    ]
}

/// The argument that allows credentials in the state, of the resource and of the data source.
pub(super) fn store_credentials() -> Attribute {
    Attribute::with_default(
        "store_credentials",
        Type::Bool,
        false,
        "Whether `ssh_password` and `jupyter_token` are stored in the state.",
    )
}

/// The attributes that the service reports (service API, Instance).
pub(super) fn reported() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        text("id", "The instance's UID."),
        number("database_id", "The service's database number of the instance. Other resources take its `id`."),
        pricing::attribute(
            "estimated_cost",
            "What the instance costs, from the prices of its specification. For on-demand capacity it is known in the \
             plan. If the live price was lower than that quote, the first refresh after the create shows what was \
             paid. Parts for which the service has no price are null.",
        ),
        number(
            "price_ceiling",
            "The maximum hourly price of the instance, known in the plan: the highest quote of the remaining \
             candidates, or the quote of the only specification (for spot capacity, the live price at the time of the \
             plan). Null if the service has no price. The value is set when the instance is created.",
        ),
        text("status", "The status, such as `Creating`, `Running`, `Stopped` or `Failed`."),
        text("capacity_type", "`ondemand` or `spot`. Known in a plan with a price.").follows(SPEC),
        text(
            "gpu_name",
            "The GPU model. Known in a plan with a price, as the specification names it; a refresh reads what the \
             instance reports.",
        )
        .follows(SPEC),
        text("ssh_host", "The address for SSH."),
        number("ssh_port", "The port for SSH."),
        text("internal_ip", "The address within the service's network."),
        text("jupyter_url", "The notebook's address, without its token."),
        text("start_time", "When the instance started (RFC 3339, UTC)."),
        number("gpu_price", "The GPU price of the current billing period."),
        number("data_disk_price", "The data disk price of the current billing period."),
        Attribute::computed(
            "reported",
            AttributeType::Nested(Nesting::Single, more()),
            "What else the service reports.",
        ),
        text("ssh_password", "The password for SSH. Null unless `store_credentials = true`.")
            .sensitive()
            .follows(CREDENTIALS),
        text("jupyter_token", "The notebook's token. Null unless `store_credentials = true`.")
            .sensitive()
            .follows(CREDENTIALS),
    ]
}

/// The attributes of `reported`, with which nothing is planned.
fn more() -> Vec<Attribute> {
    let text = |name: &'static str, description: &str| Attribute::computed(name, Type::String, description);
    let number = |name: &'static str, description: &str| Attribute::computed(name, Type::Number, description);
    vec![
        text("image_name", "The image's display name."),
        text("cpu_core", "The CPU cores, as the service reports them."),
        text("memory_size", "The memory, as the service reports it."),
        text("gpu_memory", "The GPU memory, as the service reports it."),
        number("sys_disk_size_gb", "The system disk in GB."),
        number("data_disk_size_gb", "The local data disk in GB."),
        text("stop_time", "When the instance stopped (RFC 3339, UTC)."),
        text("release_time", "When the instance was or will be released (RFC 3339, UTC)."),
        text("rent_deadline", "When the rental ends, as the service reports it."),
        Attribute::computed("support_power", Type::Bool, "Whether the instance can be powered on and off."),
        Attribute::computed(
            "cloud_disks",
            Type::list(Type::String),
            "The mounted cloud disks, each a JSON document as the service reports it.",
        ),
        Attribute::computed(
            "services",
            Type::list(Type::String),
            "The services that the instance exposes, each a JSON document as the service reports it, without passwords \
             and tokens.",
        ),
        text("shutdown_status", "The status of a shutdown task, as JSON."),
        text("shutdown_stage", "The stage of a shutdown task, as JSON."),
        text("shutdown_push_progress", "How far a shutdown task has pushed the image, as JSON."),
    ]
}

const CREDENTIALS: &[&str] = &["store_credentials"];
const SPEC: &[&str] = &["spec_id", "spec_type", "gpu_num"];

/// A `damodel_instance`, as configured, planned or stored. Its attributes are described in the schema.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in crate::provider) struct Instance {
    pub(super) name: Attr<String>,
    pub(super) region: Attr<String>,
    pub(super) payment_type: Attr<String>,
    pub(super) purchase_duration: Attr<i64>,
    pub(super) spec_id: Attr<i64>,
    pub(super) spec_type: Attr<String>,
    pub(super) gpu_num: Attr<i64>,
    pub(super) candidates: Attr<Vec<Attr<Candidate>>>,
    pub(super) data_disk_expand_size_gb: Attr<i64>,
    pub(super) data_disk_mount_path: Attr<String>,
    pub(super) image: Attr<String>,
    pub(super) image_id: Attr<i64>,
    pub(super) image_type: Attr<String>,
    pub(super) hostname: Attr<String>,
    pub(super) login_method: Attr<String>,
    pub(super) ssh_pubkey_id: Attr<i64>,
    pub(super) ssh_pubkey_name: Attr<String>,
    pub(super) external_ip: Attr<String>,
    pub(super) auto_renew: Attr<bool>,
    pub(super) exist_disks: Attr<Vec<Attr<Existing>>>,
    pub(super) new_disks: Attr<Vec<Attr<New>>>,
    pub(super) object_mounts: Attr<Vec<Attr<String>>>,
    pub(super) wait_for_capacity: Attr<String>,
    pub(super) max_age: Attr<String>,
    pub(super) deletion_protection: Attr<bool>,
    pub(super) on_unreleasable: Attr<String>,
    pub(super) store_credentials: Attr<bool>,
    pub(super) id: Attr<String>,
    pub(super) database_id: Attr<i64>,
    pub(super) estimated_cost: Attr<EstimatedCost>,
    pub(super) price_ceiling: Attr<Number>,
    pub(super) status: Attr<String>,
    pub(super) capacity_type: Attr<String>,
    pub(super) gpu_name: Attr<String>,
    pub(super) ssh_host: Attr<String>,
    pub(super) ssh_port: Attr<i64>,
    pub(super) internal_ip: Attr<String>,
    pub(super) jupyter_url: Attr<String>,
    pub(super) start_time: Attr<String>,
    pub(super) gpu_price: Attr<Number>,
    pub(super) data_disk_price: Attr<Number>,
    pub(super) reported: Attr<Reported>,
    pub(super) ssh_password: Attr<Secret>,
    pub(super) jupyter_token: Attr<Secret>,
    pub(super) timeouts: Attr<Timeouts>,
}

/// What else the service reports of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(in crate::provider) struct Reported {
    pub(super) image_name: Attr<String>,
    pub(super) cpu_core: Attr<String>,
    pub(super) memory_size: Attr<String>,
    pub(super) gpu_memory: Attr<String>,
    pub(super) sys_disk_size_gb: Attr<i64>,
    pub(super) data_disk_size_gb: Attr<i64>,
    pub(super) stop_time: Attr<String>,
    pub(super) release_time: Attr<String>,
    pub(super) rent_deadline: Attr<String>,
    pub(super) support_power: Attr<bool>,
    pub(super) cloud_disks: Attr<Vec<String>>,
    pub(super) services: Attr<Vec<String>>,
    pub(super) shutdown_status: Attr<String>,
    pub(super) shutdown_stage: Attr<String>,
    pub(super) shutdown_push_progress: Attr<String>,
}
