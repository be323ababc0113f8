//! POST /api/instance/create: its body, the rules that need no record (100002, 180008), and the create.
//!
//! Order of the checks: the form of the request (100002, 180008), the account (160015, 100049), the specification
//! (100002, 160014), sizes against it (100002), stock (160001, 160004), the image (100002, 160019, 160032), the disks
//! (180007), the balance (100038).

use std::net::IpAddr;

use axum::http::Method;
use serde_json::{Value, json};

use super::{
    call::{CallContext, Endpoint, EndpointInput, name_problem},
    instance_disks::DiskRequest,
};
use crate::{
    ledger::{LedgerObject, LifeKind},
    query::Fields,
    refusal::{Code, ServiceRefusal},
    world::{
        BillingType, DiskSpec, Host, ImageKind, Instance, InstanceImage, Next, PrivateImage, PublicImage,
        ScheduledChange, Spec, internal_ip, path_problem, ssh_port, version_of,
    },
};

pub(super) const ENDPOINT: Endpoint =
    Endpoint { name: "instance_create", method: Method::POST, path: "/api/instance/create", handle };

fn handle(context: &mut CallContext<'_>, input: &EndpointInput<'_>) -> Result<Value, ServiceRefusal> {
    input.no_query()?;
    let request = InstanceRequest::read(input.fields()?, &context.world.disk_specs)?;
    check_account(context)?;
    let spec = select_spec(&request, context)?;
    check_sizes(&request, &spec)?;
    check_stock(&request, &spec)?;
    let kind = request.image.kind(&context.world.registry_host)?;
    let (image, cuda) = request.image.resolve(kind, context)?;
    check_cuda(cuda.as_deref(), &spec)?;
    request.disks.check(context)?;
    check_balance(&request, &spec, context)?;
    Ok(create(request, spec, image, context))
}

fn check_account(context: &CallContext<'_>) -> Result<(), ServiceRefusal> {
    match context.asking() {
        Some(account) if !account.certified => Err(ServiceRefusal::new(
            Code::CreateInstanceFailedForNotCertified,
            "the main account has no real-name certification",
        )),
        Some(account) if account.at_risk => Err(ServiceRefusal::new(
            Code::UserCanNotCreateInstance,
            "the account's risk state forbids creating instances",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Rule 2. An empty selector is incomplete; one that matches no record is a missing specification.
fn select_spec(request: &InstanceRequest, context: &CallContext<'_>) -> Result<Spec, ServiceRefusal> {
    let specs = &context.world.specs;
    if !specs.iter().any(|spec| spec.region == request.region) {
        return Err(ServiceRefusal::invalid(format!("region: {:?} is no region", request.region)));
    }
    let spec = if request.spec_id != 0 {
        context.world.spec(request.spec_id)
    } else if request.spec_type.is_empty() {
        return Err(ServiceRefusal::invalid("spec_id: neither spec_id nor spec_type is given"));
    } else {
        specs.iter().find(|spec| spec.spec_type == request.spec_type && spec.region == request.region)
    };
    match spec {
        Some(spec) if spec.region != request.region => Err(ServiceRefusal::invalid(format!(
            "region: specification {} is not available in {:?}",
            spec.id, request.region
        ))),
        Some(spec) if spec.enabled && spec.stock > 0 => Ok(spec.clone()),
        Some(_) | None => {
            Err(ServiceRefusal::new(Code::SpecNotExistOrDisable, "the specification is missing, disabled or sold out"))
        }
    }
}

fn check_sizes(request: &InstanceRequest, spec: &Spec) -> Result<(), ServiceRefusal> {
    let limits = [
        ("gpu_num", request.gpu_num, spec.machine_limit),
        ("data_disk_expand_size", request.data_disk_expand_size, spec.data_disk_expand_quota),
    ];
    for (name, value, limit) in limits {
        if value > limit {
            return Err(ServiceRefusal::invalid(format!("{name}: {value} is more than {limit}")));
        }
    }
    Ok(())
}

/// Fewer free GPUs than requested is 160001; enough of them, but not on one node, is 160004.
fn check_stock(request: &InstanceRequest, spec: &Spec) -> Result<(), ServiceRefusal> {
    if request.gpu_num > spec.stock {
        Err(ServiceRefusal::new(Code::ResourceInsufficient, format!("gpu_num: {} are free", spec.stock)))
    } else if request.gpu_num > spec.node_limit {
        Err(ServiceRefusal::new(Code::NoMatchNode, format!("gpu_num: no node has more than {} free", spec.node_limit)))
    } else {
        Ok(())
    }
}

fn check_cuda(cuda: Option<&str>, spec: &Spec) -> Result<(), ServiceRefusal> {
    match cuda {
        Some(cuda) if version_of(cuda) > version_of(&spec.highest_cuda) => {
            let message = format!("the image needs CUDA {cuda}, the specification supports {:?}", spec.highest_cuda);
            Err(ServiceRefusal::new(Code::CreateInstanceFailedCudaNotMatch, message))
        }
        Some(_) | None => Ok(()),
    }
}

/// The balance must cover the prepaid term, or the first hour.
fn check_balance(request: &InstanceRequest, spec: &Spec, context: &CallContext<'_>) -> Result<(), ServiceRefusal> {
    let (disk_gb, gpus) = (count(request.data_disk_expand_size), count(request.gpu_num));
    let period = spec.prices.of(request.payment) * gpus + spec.data_disk_prices.of(request.payment) * disk_gb;
    let price = period * count(request.purchase_duration.max(1));
    match context.asking() {
        Some(account) if account.balance < price => {
            Err(ServiceRefusal::new(Code::BalanceNotEnough, "the main account's balance is too low"))
        }
        Some(_) | None => Ok(()),
    }
}

/// A number as a factor of prices, at most 2^32 - 1, whose price is above any balance.
fn count(number: i64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn create(request: InstanceRequest, spec: Spec, image: InstanceImage, context: &mut CallContext<'_>) -> Value {
    let (id, random_uid, ssh_password, jupyter_token) = context.world.identity();
    let uid = if context.form.counted_uids { context.world.counted_uid() } else { random_uid };
    let mounts = request.disks.mount(&uid, context);
    context.world.give_back(spec.id, -request.gpu_num);
    let term_ms = request.payment.term_ms().map_or(0, |term| term.saturating_mul(request.purchase_duration));
    let rent_deadline_ms = if term_ms > 0 { context.now_ms.saturating_add(term_ms) } else { 0 };
    let instance = Instance {
        account: context.account.to_owned(),
        id,
        uid: uid.clone(),
        alias: if request.alias.is_empty() { uid.clone() } else { request.alias },
        hostname: request.hostname,
        status: "Creating".to_owned(),
        next: creation_step(context),
        visibility: context.visibility(),
        unreleasable: false,
        holds_stock: true,
        spec,
        gpu_num: request.gpu_num,
        payment: request.payment,
        purchase_duration: request.purchase_duration,
        auto_renew: request.auto_renew,
        image,
        data_disk_expand_size: request.data_disk_expand_size,
        data_disk_mount_path: request.data_disk_mount_path,
        mounts,
        object_mounts: request.object_mounts,
        login_method: request.login_method,
        ssh_pubkey_id: request.ssh_pubkey_id,
        ssh_pubkey_name: request.ssh_pubkey_name,
        ssh_password,
        ssh_port: ssh_port(id),
        jupyter_token,
        external_ip: request.external_ip,
        internal_ip: internal_ip(id),
        create_ms: context.now_ms,
        start_ms: 0,
        stop_ms: 0,
        release_ms: rent_deadline_ms,
        rent_deadline_ms,
        host: Host::default(),
    };
    let alias = instance.alias.clone();
    context.world.instances.push(instance);
    context.world.record(context.now_ms, LedgerObject::Instance, LifeKind::Created, &uid, &alias, context.account);
    context.created.push(uid.clone());
    json!({
        "instance_id": id,
        "instance_uid": uid,
        "payment_type": request.payment.word(),
        "release_time": rent_deadline_ms / 1000,
    })
}

/// The first change of a new instance and its time; `None` for one that is stuck.
fn creation_step(context: &CallContext<'_>) -> Option<ScheduledChange> {
    let to = if context.wish.fail { Next::Failed } else { Next::Running };
    (!context.wish.stick)
        .then(|| ScheduledChange { at_ms: context.now_ms.saturating_add(context.tempo.creation_ms), to })
}

/// How the request names its image.
#[derive(Debug)]
pub(super) enum RequestedImage {
    Address(String),
    Id(i64, ImageKind),
}

impl RequestedImage {
    /// Reads the three fields. A complete pair wins over an address; an id of 0 and an empty address are unset.
    pub(super) fn read(fields: &mut Fields) -> Result<Self, ServiceRefusal> {
        let id = fields.integer("image_id")?.filter(|&id| id != 0);
        let kind = match fields.string("image_type")? {
            None => None,
            Some(text) => Some(ImageKind::parse(&text).ok_or_else(|| {
                fields.invalid("image_type", &format!("{text:?} is not one of \"1\", \"public\", \"2\", \"private\""))
            })?),
        };
        let address = fields.string("image")?.filter(|address| !address.is_empty());
        match (id, kind, address) {
            (Some(id), Some(kind), _) => Ok(Self::Id(id, kind)),
            (_, _, Some(address)) => Ok(Self::Address(address)),
            (Some(_), None, None) => Err(fields.invalid("image_type", "missing beside image_id")),
            (None, Some(_), None) => Err(fields.invalid("image_id", "missing beside image_type")),
            (None, None, None) => Err(fields.invalid("image", "neither image nor image_id with image_type is given")),
        }
    }

    /// The kind that an address shows by its keyword (rule 4). A wrong address is an invalid parameter.
    pub(super) fn kind(&self, registry_host: &str) -> Result<ImageKind, ServiceRefusal> {
        match self {
            Self::Id(_, kind) => Ok(*kind),
            Self::Address(address) => {
                let Some(path) = address.strip_prefix(registry_host).and_then(|rest| rest.strip_prefix('/')) else {
                    return Err(ServiceRefusal::invalid(format!(
                        "image: {address:?} is not an address of {registry_host}"
                    )));
                };
                match (path.contains("model_library"), path.contains("user_private")) {
                    (true, false) => Ok(ImageKind::Public),
                    (false, true) => Ok(ImageKind::Private),
                    (true, true) | (false, false) => Err(ServiceRefusal::invalid(format!(
                        "image: {address:?} shows neither a public nor a private image"
                    ))),
                }
            }
        }
    }

    /// The image record, which must be usable, and the CUDA version it carries.
    pub(super) fn resolve(
        &self,
        kind: ImageKind,
        context: &CallContext<'_>,
    ) -> Result<(InstanceImage, Option<String>), ServiceRefusal> {
        let found = match kind {
            ImageKind::Public => context.world.public_images.iter().find(|image| self.is_public(image)).map(|image| {
                let image_of =
                    InstanceImage { id: image.id, name: image.name.clone(), kind, address: image.image_url.clone() };
                (image_of, image.cuda.clone())
            }),
            ImageKind::Private => {
                context.world.private_images.iter().find(|image| self.is_private(image, context.account)).map(|image| {
                    let image_of =
                        InstanceImage { id: image.id, name: image.name.clone(), kind, address: image.tag.clone() };
                    (image_of, image.cuda.clone())
                })
            }
        };
        found.ok_or_else(|| {
            ServiceRefusal::new(
                Code::FailedForInvalidImage,
                "the image does not exist, is disabled or not ready, or is not permitted",
            )
        })
    }

    fn is_public(&self, image: &PublicImage) -> bool {
        image.enabled
            && match self {
                Self::Address(address) => image.image_url == *address,
                Self::Id(id, _) => image.id == *id,
            }
    }

    fn is_private(&self, image: &PrivateImage, account: &str) -> bool {
        image.ready
            && image.account == account
            && match self {
                Self::Address(address) => image.tag == *address,
                Self::Id(id, _) => image.id == *id,
            }
    }
}

/// The parsed request: the right types, within the rules that need no record.
#[derive(Debug)]
pub(super) struct InstanceRequest {
    pub(super) region: String,
    pub(super) payment: BillingType,
    pub(super) purchase_duration: i64,
    pub(super) spec_id: i64,
    pub(super) spec_type: String,
    pub(super) gpu_num: i64,
    pub(super) data_disk_expand_size: i64,
    pub(super) data_disk_mount_path: String,
    pub(super) image: RequestedImage,
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

impl InstanceRequest {
    pub(super) fn read(mut fields: Fields, disk_specs: &[DiskSpec]) -> Result<Self, ServiceRefusal> {
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
            image: RequestedImage::read(&mut fields)?,
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
                return Err(ServiceRefusal::invalid(format!("{name}: {value} is less than {least}")));
            }
        }
        Ok(request)
    }
}

/// Fields that are accepted for compatibility and overwritten from the specification.
fn accept_overwritten(fields: &mut Fields) -> Result<(), ServiceRefusal> {
    for name in ["gpu_name", "highest_cuda"] {
        fields.string(name)?;
    }
    for name in ["gpu_mem", "cpu_per_gpu", "memory_per_gpu", "sys_disk_size", "data_disk_size"] {
        fields.integer(name)?;
    }
    Ok(())
}

fn payment(fields: &mut Fields) -> Result<(BillingType, i64), ServiceRefusal> {
    let word = fields.required_string("payment_type")?;
    let Some(payment) = BillingType::parse(&word) else {
        return Err(fields.invalid("payment_type", &format!("{word:?} is not Hourly, Daily, Weekly or Monthly")));
    };
    match fields.integer("purchase_duration")? {
        None if payment == BillingType::Hourly => Ok((payment, 0)),
        None => Err(fields.invalid("purchase_duration", &format!("missing beside {word}"))),
        Some(duration) if duration >= 1 => Ok((payment, duration)),
        Some(duration) => Err(fields.invalid("purchase_duration", &format!("{duration} is less than 1"))),
    }
}

fn login(fields: &mut Fields) -> Result<(i64, i64, String), ServiceRefusal> {
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

fn data_disk_mount_path(fields: &mut Fields) -> Result<String, ServiceRefusal> {
    let path = fields.string("data_disk_mount_path")?.unwrap_or_else(|| "/root/damodel-tmp".to_owned());
    match path_problem(&path) {
        Some(problem) => Err(fields.invalid("data_disk_mount_path", problem)),
        None => Ok(path),
    }
}

fn alias(fields: &mut Fields) -> Result<String, ServiceRefusal> {
    let alias = fields.string("instance_alias")?.unwrap_or_default();
    match name_problem(&alias) {
        Some(problem) if !alias.is_empty() => Err(fields.invalid("instance_alias", problem)),
        Some(_) | None => Ok(alias),
    }
}

/// At most 42 letters, digits and hyphens, a letter or digit at both ends (service API, POST /api/instance/create:
/// instance_hostname).
fn hostname(fields: &mut Fields) -> Result<String, ServiceRefusal> {
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

fn external_ip(fields: &mut Fields) -> Result<String, ServiceRefusal> {
    let address = fields.string("external_ip")?.unwrap_or_default();
    if !address.is_empty() && address.parse::<IpAddr>().is_err() {
        return Err(fields.invalid("external_ip", &format!("{address:?} is no address")));
    }
    Ok(address)
}
