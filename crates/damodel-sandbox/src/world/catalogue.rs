//! Specifications, hosted models, and the seed: a fixed catalogue in which no field has the value that a forgotten
//! field would have.
//!
//! Regions: `cn-east-1` (specs 101–107) and `cn-north-2` (201–204). Accounts: `main`, `other`, and `restricted`, a
//! sub-account without permission for cloud disks. The random values (tokens, keys, passwords) come from the seed.

use serde::{Deserialize, Serialize};

use super::{
    Account, BillingType, Binding, Disk, DiskSpec, DiskStatus, PrivateImage, PublicImage, Saves, Visibility, World,
    image::uuid,
};
use secrecy::ExposeSecret as _;

use crate::{
    ledger::{LedgerObject, LifeKind},
    options::{Options, SandboxSecret},
    random::RandomStream,
};

/// 2026-01-05 08:00:00 UTC: the time of creation in the catalogue.
const EPOCH: i64 = 1_767_600_000;

impl World {
    /// The seed catalogue, with what the options add.
    pub(in super::super) fn seeded(options: &Options, now_ms: i64) -> Self {
        let mut world = world(options.seed, &options.registry_host, now_ms);
        if let Some(main) = world.accounts.first_mut() {
            if let Some(token) = &options.token {
                main.token = SandboxSecret::new(token.expose_secret());
            }
            if let Some(key) = &options.chat_key {
                main.chat_key = SandboxSecret::new(key.expose_secret());
            }
        }
        for number in 1..=options.generate_instances {
            world.generate_instance(number, now_ms);
        }
        for number in 1..=options.generate_disks {
            world.generate_disk(number, now_ms);
        }
        for number in 1..=options.generate_images {
            world.generate_image(number, now_ms);
        }
        world
    }
}

/// The world before the first request.
fn world(seed: u64, registry_host: &str, now_ms: i64) -> World {
    let mut world = World {
        seed,
        draws: 0,
        last_id: 5000,
        advanced_ms: 0,
        registry_host: registry_host.to_owned(),
        accounts: accounts(seed),
        specs: specs(),
        disk_specs: disk_specs(),
        public_images: public_images(registry_host),
        private_images: private_images(registry_host),
        instances: Vec::new(),
        disks: disks(),
        models: models(),
        life: Vec::new(),
    };
    for disk in world.disks.clone() {
        world.record(now_ms, LedgerObject::CloudDisk, LifeKind::Created, &disk.uid, &disk.name, &disk.account);
    }
    for image in world.private_images.clone() {
        let id = image.id.to_string();
        world.record(now_ms, LedgerObject::PrivateImage, LifeKind::Created, &id, &image.name, &image.account);
    }
    world
}

/// The hosted models.
pub(super) fn models() -> Vec<ChatModel> {
    [("deepseek-r1", true), ("llama-3.1-8b-instruct", true), ("qwen2.5-72b-instruct", true), ("gpt-retired", false)]
        .into_iter()
        .map(|(name, enabled)| ChatModel { name: name.to_owned(), enabled })
        .collect()
}

impl World {
    /// Adds an available disk without a request, for load tests.
    pub(crate) fn generate_disk(&mut self, number: u32, now_ms: i64) {
        let id = self.next_id();
        let uid = format!("disk-{}", self.draw().text(12));
        let name = format!("generated-{number:05}");
        let disk = Disk {
            create_ms: now_ms,
            stop_ms: 0,
            ..disk("main", id, &uid, &name, 20 + i64::from(number % 100), DiskStatus::Available)
        };
        self.disks.push(disk);
        self.record(now_ms, LedgerObject::CloudDisk, LifeKind::Created, &uid, &name, "main");
    }

    /// Adds a ready private image without a request, for load tests.
    pub(crate) fn generate_image(&mut self, number: u32, now_ms: i64) {
        let id = self.next_id();
        let name = format!("generated-{number:05}");
        let image = private_image("main", id, &name, Some("12.4"), &self.registry_host);
        self.private_images.push(image);
        self.record(now_ms, LedgerObject::PrivateImage, LifeKind::Created, &id.to_string(), &name, "main");
    }
}

fn accounts(seed: u64) -> Vec<Account> {
    // Far from the streams that a world draws, which count from 1.
    let mut random = RandomStream::new(seed, u64::MAX / 2);
    ["main", "other", "restricted"]
        .into_iter()
        .map(|name| Account {
            name: name.to_owned(),
            token: SandboxSecret::new(format!("token-{name}-{}", random.text(24))),
            further_tokens: Vec::new(),
            chat_key: SandboxSecret::new(format!("sk-{name}-{}", random.text(32))),
            balance: 100_000.5,
            certified: true,
            at_risk: false,
            may_use_disks: name != "restricted",
            may_use_images: true,
            saves: Saves::default(),
        })
        .collect()
}

#[rustfmt::skip]
fn specs() -> Vec<Spec> {
    // id, code, region, capacity, GPU, MB each, limit, stock, node, CPUs, GB, system, data, quota, CUDA, IB, hourly,
    // discount statuses, rush, enabled
    let rows = [
        (101, "gpu.a100-80g.1", "cn-east-1", "ondemand", "NVIDIA-A100-80G", 81_920, 8, 32, 8, 14, 120, 50, 60, 2000,
            "12.4", true, 12.8, [4, 0, 3], false, true),
        (102, "gpu.h100-80g.1", "cn-east-1", "ondemand", "NVIDIA-H100-80G", 81_559, 8, 16, 8, 22, 200, 60, 100, 4000,
            "12.8", true, 28.65, [5, 4, 2], false, true),
        (103, "gpu.rtx4090.1", "cn-east-1", "ondemand", "NVIDIA-GeForce-RTX-4090", 24_564, 8, 64, 6, 16, 62, 40, 50,
            1500, "12.6", false, 1.98, [2, 1, 0], false, true),
        (104, "gpu.rtx4090.spot", "cn-east-1", "spot", "NVIDIA-GeForce-RTX-4090", 24_564, 4, 12, 4, 16, 62, 40, 50,
            1200, "12.6", false, 0.89, [0, 3, 1], true, true),
        (105, "gpu.v100-32g.1", "cn-east-1", "ondemand", "NVIDIA-V100-32G", 32_510, 8, 24, 8, 8, 64, 30, 40, 1000,
            "12.2", false, 3.21, [1, 2, 4], false, true),
        (106, "gpu.p40.1", "cn-east-1", "ondemand", "NVIDIA-P40", 23_040, 2, 0, 2, 7, 48, 30, 40, 800, "11.8", false,
            1.05, [3, 4, 5], false, true),
        (107, "gpu.retired.1", "cn-east-1", "ondemand", "NVIDIA-K80", 11_441, 2, 8, 2, 4, 24, 30, 40, 500, "11.4",
            false, 0.55, [1, 1, 1], false, false),
        (201, "gpu.a100-80g.1", "cn-north-2", "ondemand", "NVIDIA-A100-80G", 81_920, 8, 10, 4, 14, 120, 50, 60, 2000,
            "12.4", true, 11.9, [0, 5, 4], false, true),
        (202, "gpu.h100-80g.spot", "cn-north-2", "spot", "NVIDIA-H100-80G", 81_559, 2, 3, 2, 22, 200, 60, 100, 3000,
            "12.8", true, 9.99, [4, 4, 4], true, true),
        (203, "cpu.c8.1", "cn-north-2", "ondemand", "CPU-Intel-8358P", 0, 64, 5000, 64, 1, 2, 25, 35, 600, "", false,
            0.08, [2, 3, 1], false, true),
        (204, "gpu.v100-32g.1", "cn-north-2", "ondemand", "NVIDIA-V100-32G", 32_510, 4, 2, 1, 8, 64, 30, 40, 900,
            "12.2", false, 3.05, [5, 1, 2], false, true),
    ];
    rows.into_iter()
        .map(|(id, code, region, capacity, gpu, mem, limit, stock, node, cpu, gb, system, data, quota, cuda, ib,
            hourly, statuses, rush, enabled)| Spec {
            id,
            spec_type: code.to_owned(),
            region: region.to_owned(),
            capacity_type: capacity.to_owned(),
            gpu_name: gpu.to_owned(),
            gpu_mem: mem,
            machine_limit: limit,
            stock,
            node_limit: node,
            cpu_per_gpu: cpu,
            mem_per_gpu: gb,
            sys_disk_size: system,
            data_disk_size: data,
            data_disk_expand_quota: quota,
            highest_cuda: cuda.to_owned(),
            support_ib_network: ib,
            prices: SpecPrices { hourly, daily: cents(hourly * 22.5), monthly: cents(hourly * 600.0) },
            data_disk_prices: SpecPrices { hourly: 0.0006, daily: 0.012, monthly: 0.33 },
            discounts: SpecPrices { hourly: 0.95, daily: 0.9, monthly: 0.85 },
            discount_statuses: statuses,
            rush_sale: rush,
            enabled,
        })
        .collect()
}

fn cents(price: f64) -> f64 {
    (price * 100.0).round() / 100.0
}

fn disk_specs() -> Vec<DiskSpec> {
    let rows = [
        (31, "ssd-block", false, 4000, 1, false),
        (32, "shared-files", true, 8000, 2, false),
        (33, "object-store", true, 16_000, 3, false),
        (34, "ib-files", true, 2000, 2, true),
    ];
    rows.into_iter()
        .map(|(id, alias, multiple_mounting, max_size_g, storage_class, ib_only)| DiskSpec {
            id,
            spec_alias: alias.to_owned(),
            multiple_mounting,
            max_size_g,
            storage_class,
            ib_only,
            sold_out: false,
        })
        .collect()
}

#[rustfmt::skip]
fn public_images(registry_host: &str) -> Vec<PublicImage> {
    // id, name, repository:tag, CUDA, softwares, labels, size, enabled
    let rows = [
        (901, "Ubuntu 22.04", "ubuntu:22.04", "", "Ubuntu 22.04, Python 3.10", "base", "1.2GB", true),
        (902, "PyTorch 2.5.1", "pytorch:2.5.1-cuda12.4", "12.4", "PyTorch 2.5.1, Python 3.11, CUDA 12.4", "pytorch, \
            cuda12.4", "9.8GB", true),
        (903, "PyTorch 2.1.0", "pytorch:2.1.0-cuda11.8", "11.8", "PyTorch 2.1.0, Python 3.10, CUDA 11.8", "pytorch, \
            cuda11.8", "8.1GB", true),
        (904, "TensorFlow 2.16", "tensorflow:2.16-cuda12.2", "12.2", "TensorFlow 2.16.1, Python 3.11, CUDA 12.2",
            "tensorflow, cuda12.2", "7.7GB", true),
        (905, "vLLM 0.9", "vllm:0.9-cuda12.8", "12.8", "vLLM 0.9.0, Python 3.12, CUDA 12.8", "inference, cuda12.8",
            "14.3GB", true),
        (906, "llama.cpp", "llama-cpp:b5000-cuda12.4", "12.4", "llama.cpp b5000, CUDA 12.4", "inference, cuda12.4",
            "4.4GB", true),
        (907, "Caffe 1.0", "caffe:1.0-cuda10.2", "10.2", "Caffe 1.0, CUDA 10.2", "legacy, cuda10.2", "3.9GB", false),
    ];
    rows.into_iter()
        .map(|(id, name, path, cuda, softwares, labels, size, enabled)| PublicImage {
            id,
            name: name.to_owned(),
            image_url: format!("{registry_host}/model_library/{path}"),
            description: format!("{name}, ready to use"),
            softwares: words(softwares),
            labels: words(labels),
            size: size.to_owned(),
            document_url: format!("https://docs.damodel.test/images/{id}"),
            icon: format!("https://static.damodel.test/icons/{id}.svg"),
            create_time: EPOCH + id,
            update_time: EPOCH + 86_400 + id,
            enabled,
            cuda: (!cuda.is_empty()).then(|| cuda.to_owned()),
        })
        .collect()
}

fn words(list: &str) -> Vec<String> {
    list.split(", ").map(str::to_owned).collect()
}

fn private_images(registry_host: &str) -> Vec<PrivateImage> {
    let rows = [
        ("main", 951, "trained-model", "cn-east-1", 100, Some("12.4"), 12.75),
        ("main", 952, "half-pushed", "cn-east-1", 42, Some("12.4"), 3.5),
        ("main", 953, "plain-tools", "cn-north-2", 100, None, 0.9),
        ("other", 954, "not-yours", "cn-east-1", 100, None, 2.25),
    ];
    rows.into_iter()
        .map(|(account, id, name, region, push_progress, cuda, size)| PrivateImage {
            region: region.to_owned(),
            push_progress,
            ready: push_progress == 100,
            size,
            ..private_image(account, id, name, cuda, registry_host)
        })
        .collect()
}

/// A ready image in `cn-east-1`.
fn private_image(account: &str, id: i64, name: &str, cuda: Option<&str>, registry_host: &str) -> PrivateImage {
    let origin = if cuda.is_some() { "pytorch:2.5.1-cuda12.4" } else { "ubuntu:22.04" };
    PrivateImage {
        account: account.to_owned(),
        id,
        uuid: uuid(id),
        name: name.to_owned(),
        tag: format!("{registry_host}/user_private/{account}/{name}:v{id}"),
        ready: true,
        push_progress: 100,
        push: None,
        source: String::new(),
        visibility: Visibility::default(),
        size: 1.5,
        original_image: format!("{registry_host}/model_library/{origin}"),
        region: "cn-east-1".to_owned(),
        create_time: EPOCH + 3600 + id,
        updated_at: EPOCH + 7200 + id,
        upperdir_files: 1000 + id,
        upperdir_bytes: 5_368_709_120 + id,
        cuda: cuda.map(str::to_owned),
    }
}

fn disks() -> Vec<Disk> {
    vec![
        disk("main", 801, "disk-seeddata0001", "datasets", 200, DiskStatus::Available),
        Disk {
            spec_id: 32,
            spec_type: "shared-files".to_owned(),
            storage_class: 2,
            multiple_mounting: true,
            bindings: vec![Binding {
                instance_uid: "ins-elsewhere0001".to_owned(),
                mount_path: "/data/shared".to_owned(),
            }],
            clusters: vec!["cluster-77".to_owned()],
            release_with_cluster: true,
            ..disk("main", 802, "disk-seedshare002", "shared", 500, DiskStatus::Mounted)
        },
        disk("main", 803, "disk-seedarrear03", "unpaid", 40, DiskStatus::InArrears),
        disk("main", 804, "disk-seedscratch4", "scratch", 60, DiskStatus::Available),
        disk("other", 805, "disk-seedother005", "not-yours", 30, DiskStatus::Available),
    ]
}

fn disk(account: &str, id: i64, uid: &str, name: &str, size_gb: i64, status: DiskStatus) -> Disk {
    Disk {
        account: account.to_owned(),
        id,
        uid: uid.to_owned(),
        name: name.to_owned(),
        size_gb,
        status,
        next: None,
        visibility: Visibility::default(),
        spec_id: 31,
        spec_type: "ssd-block".to_owned(),
        storage_class: 1,
        multiple_mounting: false,
        mount_path: format!("/data/{name}"),
        bindings: Vec::new(),
        clusters: Vec::new(),
        release_with_instance: false,
        release_with_cluster: false,
        create_ms: (EPOCH + id) * 1000,
        stop_ms: (EPOCH + 31_536_000 + id) * 1000,
    }
}

/// Three numbers, one for each billing period that has a price (service API, Instance specification).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpecPrices {
    pub(crate) hourly: f64,
    pub(crate) daily: f64,
    pub(crate) monthly: f64,
}

impl SpecPrices {
    /// The price of one period. The document names no weekly price: seven days are taken.
    pub(crate) fn of(self, payment: BillingType) -> f64 {
        match payment {
            BillingType::Hourly => self.hourly,
            BillingType::Daily => self.daily,
            BillingType::Weekly => (self.daily * 700.0).round() / 100.0,
            BillingType::Monthly => self.monthly,
        }
    }
}

/// A specification in one region.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spec {
    pub(crate) id: i64,
    pub(crate) spec_type: String,
    pub(crate) region: String,
    pub(crate) capacity_type: String,
    pub(crate) gpu_name: String,
    pub(crate) gpu_mem: i64,
    /// The most GPUs of one instance, however many are free.
    pub(crate) machine_limit: i64,
    /// The free GPUs in all; those of existing instances are not free.
    pub(crate) stock: i64,
    /// The free GPUs on the node that has most.
    pub(crate) node_limit: i64,
    pub(crate) cpu_per_gpu: i64,
    pub(crate) mem_per_gpu: i64,
    pub(crate) sys_disk_size: i64,
    pub(crate) data_disk_size: i64,
    pub(crate) data_disk_expand_quota: i64,
    /// "" for a specification without CUDA.
    pub(crate) highest_cuda: String,
    pub(crate) support_ib_network: bool,
    pub(crate) prices: SpecPrices,
    pub(crate) data_disk_prices: SpecPrices,
    pub(crate) discounts: SpecPrices,
    /// Hourly, daily, monthly: 0 … 5.
    pub(crate) discount_statuses: [i64; 3],
    pub(crate) rush_sale: bool,
    pub(crate) enabled: bool,
}

impl Spec {
    /// The largest purchasable GPU count now; 0 if no instance can be created.
    pub(crate) fn max_gpu_count(&self) -> i64 {
        self.machine_limit.min(self.stock).min(self.node_limit).max(0)
    }
}

/// A model of the console's marketplace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatModel {
    /// Its name in requests.
    pub(crate) name: String,
    /// Whether it was enabled in the console; others are unknown to the chat endpoint.
    pub(crate) enabled: bool,
}
