//! The body of POST /api/instance/create, held to the rules that need no record (100002, 180008).

use std::net::IpAddr;

use serde_json::Value;

use super::{instance_create::ImageSelector, instance_disks::DiskRequest, name_problem};
use crate::sandbox::{
    query::Fields,
    render::Refusal,
    world::{DiskSpec, Payment, path_problem},
};

/// What the request asks for, of the right types and within the rules that need no record.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) region: String,
    pub(super) payment: Payment,
    pub(super) purchase_duration: i64,
    pub(super) spec_id: i64,
    pub(super) spec_type: String,
    pub(super) gpu_num: i64,
    pub(super) data_disk_expand_size: i64,
    pub(super) data_disk_mount_path: String,
    pub(super) image: ImageSelector,
    pub(super) alias: String,
    pub(super) hostname: String,
    pub(super) login_method: i64,
    pub(super) ssh_pubkey_id: i64,
    pub(super) ssh_pubkey_name: String,
    pub(super) external_ip: String,
    pub(super) auto_renew: bool,
    pub(super) disks: DiskRequest,
    pub(super) object_mounts: Vec<Value>,
}

impl Request {
    pub(super) fn read(mut fields: Fields, disk_specs: &[DiskSpec]) -> Result<Self, Refusal> {
        accept_overwritten(&mut fields)?;
        let (payment, purchase_duration) = payment(&mut fields)?;
        let (login_method, ssh_pubkey_id, ssh_pubkey_name) = login(&mut fields)?;
        let request = Self {
            region: fields.required_string("region")?,
            payment,
            purchase_duration,
            spec_id: fields.integer("spec_id")?.unwrap_or(0),
            spec_type: fields.string("spec_type")?.unwrap_or_default(),
            gpu_num: fields.required_integer("gpu_num")?,
            data_disk_expand_size: fields.required_integer("data_disk_expand_size")?,
            data_disk_mount_path: data_disk_mount_path(&mut fields)?,
            image: ImageSelector::read(&mut fields)?,
            alias: alias(&mut fields)?,
            hostname: hostname(&mut fields)?,
            login_method,
            ssh_pubkey_id,
            ssh_pubkey_name,
            external_ip: external_ip(&mut fields)?,
            auto_renew: fields.boolean("auto_renew")?.unwrap_or(false),
            disks: DiskRequest::read(&mut fields, disk_specs)?,
            object_mounts: fields.array("object_mounts")?,
        };
        fields.finish()?;
        for (name, value, least) in
            [("gpu_num", request.gpu_num, 1), ("data_disk_expand_size", request.data_disk_expand_size, 0)]
        {
            if value < least {
                return Err(Refusal::invalid(format!("{name}: {value} is less than {least}")));
            }
        }
        Ok(request)
    }
}

/// Fields that are accepted for compatibility and overwritten from the specification.
fn accept_overwritten(fields: &mut Fields) -> Result<(), Refusal> {
    for name in ["gpu_name", "highest_cuda"] {
        fields.string(name)?;
    }
    for name in ["gpu_mem", "cpu_per_gpu", "memory_per_gpu", "sys_disk_size", "data_disk_size"] {
        fields.integer(name)?;
    }
    Ok(())
}

fn payment(fields: &mut Fields) -> Result<(Payment, i64), Refusal> {
    let word = fields.required_string("payment_type")?;
    let Some(payment) = Payment::parse(&word) else {
        return Err(fields.invalid("payment_type", &format!("{word:?} is not Hourly, Daily, Weekly or Monthly")));
    };
    match fields.integer("purchase_duration")? {
        None if payment == Payment::Hourly => Ok((payment, 0)),
        None => Err(fields.invalid("purchase_duration", &format!("missing beside {word}"))),
        Some(duration) if duration >= 1 => Ok((payment, duration)),
        Some(duration) => Err(fields.invalid("purchase_duration", &format!("{duration} is less than 1"))),
    }
}

fn login(fields: &mut Fields) -> Result<(i64, i64, String), Refusal> {
    let method = fields.integer("login_method")?.unwrap_or(2);
    let key_id = fields.integer("ssh_pubkey_id")?.unwrap_or(0);
    let key_name = fields.string("ssh_pubkey_name")?.unwrap_or_default();
    match method {
        1 if key_id < 1 => Err(fields.invalid("ssh_pubkey_id", "missing beside login_method 1")),
        1 if key_name.is_empty() => Err(fields.invalid("ssh_pubkey_name", "missing beside login_method 1")),
        1 | 2 => Ok((method, key_id, key_name)),
        other => Err(fields.invalid("login_method", &format!("{other} is neither 1 nor 2"))),
    }
}

fn data_disk_mount_path(fields: &mut Fields) -> Result<String, Refusal> {
    let path = fields.string("data_disk_mount_path")?.unwrap_or_else(|| "/root/damodel-tmp".to_owned());
    match path_problem(&path) {
        Some(problem) => Err(fields.invalid("data_disk_mount_path", problem)),
        None => Ok(path),
    }
}

fn alias(fields: &mut Fields) -> Result<String, Refusal> {
    let alias = fields.string("instance_alias")?.unwrap_or_default();
    match name_problem(&alias) {
        Some(problem) if !alias.is_empty() => Err(fields.invalid("instance_alias", problem)),
        Some(_) | None => Ok(alias),
    }
}

/// At most 42 letters, digits and hyphens, a letter or digit at both ends (service API, POST /api/instance/create:
/// instance_hostname).
fn hostname(fields: &mut Fields) -> Result<String, Refusal> {
    let Some(hostname) = fields.string("instance_hostname")? else {
        return Ok(String::new());
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    if hostname.len() > 42 {
        Err(fields.invalid("instance_hostname", "has more than 42 characters"))
    } else if !hostname.chars().all(|c| is_plain(c) || c == '-') {
        Err(fields.invalid("instance_hostname", "may hold letters, digits and hyphens"))
    } else if !(hostname.starts_with(is_plain) && hostname.ends_with(is_plain)) {
        Err(fields.invalid("instance_hostname", "must begin and end with a letter or digit"))
    } else {
        Ok(hostname)
    }
}

fn external_ip(fields: &mut Fields) -> Result<String, Refusal> {
    let address = fields.string("external_ip")?.unwrap_or_default();
    if !address.is_empty() && address.parse::<IpAddr>().is_err() {
        return Err(fields.invalid("external_ip", &format!("{address:?} is no address")));
    }
    Ok(address)
}
