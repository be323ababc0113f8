//! Measurements of the design's limits: `cargo bench`. They are not tests, because a busy computer is not a defect.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use damodel::{
    framework::{Ends, OfferKind, Server, Type, Value},
    protocol::codec::{decode, encode},
    provider::{Damodel, Environment},
    review::{Arguments, Facts, Plan, Policy, Review, Style, render},
};
use divan::{
    Bencher, black_box,
    counter::{BytesCount, ItemsCount},
};
use jiff::civil::date;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P521_SHA512};

fn main() {
    divan::main();
}

/// A plugin that ends with the measurement.
struct Plugin(Child);

impl Drop for Plugin {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// From the start of the process to its handshake line, with mutual TLS: a plan starts the provider three times.
#[divan::bench(sample_count = 100)]
fn start_to_handshake(bencher: Bencher<'_, '_>) {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let base64 = STANDARD.encode(certificate.der());
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
    bencher.bench_local(|| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_terraform-provider-damodel"))
            .env("TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2")
            .env("PLUGIN_PROTOCOL_VERSIONS", "5,6")
            .env("PLUGIN_CLIENT_CERT", &certificate)
            .env_remove("TF_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("1|6|unix|"), "{line}");
        Plugin(child)
    });
}

/// The values of the plans of 1,000 instances: three to decode and one to encode for each.
#[divan::bench(sample_count = 50)]
fn codec_of_1000_plans(bencher: Bencher<'_, '_>) {
    const PLANS: usize = 1000;
    let server = Server::new(Damodel::new(Environment::default()), Ends::default());
    let ty = server.registry().find(OfferKind::Resource, "damodel_instance").unwrap().ty.clone();
    let value = sample(&ty);
    let bytes = encode(&ty, &value).unwrap();
    bencher.counter(ItemsCount::new(PLANS)).bench_local(|| {
        for _ in 0..PLANS {
            for _ in 0..3 {
                black_box(decode(&ty, black_box(&bytes)).unwrap());
            }
            black_box(encode(&ty, black_box(&value)).unwrap());
        }
    });
}

/// 100 plans of 100 instances each, as one report.
#[divan::bench(sample_count = 10)]
fn review_of_100_plans_of_100(bencher: Bencher<'_, '_>) {
    const EVERYTHING: &str = include_str!("../tests/fixtures/review/everything.json");
    let folder = tempfile::tempdir().unwrap();
    let mut plan: serde_json::Value = serde_json::from_str(EVERYTHING).unwrap();
    let template = plan["resource_changes"][0].clone();
    for number in 0..100 {
        let change = |instance: usize| {
            let mut change = template.clone();
            change["address"] = format!("module.m{number}.damodel_instance.created[{instance}]").into();
            change
        };
        plan["resource_changes"] = (0..100).map(change).collect();
        std::fs::write(folder.path().join(format!("{number}.json")), plan.to_string()).unwrap();
    }
    bencher.bench_local(|| {
        let mut review = Command::new(env!("CARGO_BIN_EXE_terraform-provider-damodel"));
        review.arg("review").arg(folder.path()).args(["--deny", "destroy-data", "--max-monthly-increase", "1"]);
        assert_eq!(review.output().unwrap().status.code(), Some(3));
    });
}

/// One plan of 10,000 replaced instances, as a comment.
#[divan::bench(sample_count = 5)]
fn review_of_10000_replacements(bencher: Bencher<'_, '_>) {
    let mut plan: serde_json::Value =
        serde_json::from_str(include_str!("../tests/fixtures/review/everything.json")).unwrap();
    let replaced = |change: &&serde_json::Value| change["change"]["actions"] == serde_json::json!(["delete", "create"]);
    let template = plan["resource_changes"].as_array().unwrap().iter().find(replaced).unwrap().clone();
    let change = |instance: usize| {
        let mut change = template.clone();
        change["address"] = format!("damodel_instance.replaced[{instance}]").into();
        change
    };
    plan["resource_changes"] = (0..10_000).map(change).collect();
    let document = plan.to_string();
    let policy = Policy::read("version = 1\n[limits]\ndeny = [\"destroy-data\"]", date(2026, 11, 26)).unwrap();
    bencher.counter(BytesCount::new(document.len())).bench_local(|| {
        let facts = [Facts::of(None, &Plan::read(document.as_bytes()).unwrap(), &Arguments::default())];
        render(&Review::new(&facts, &policy, |_| None), &Style::default()).unwrap()
    });
}

/// A value of a type in which every part is filled in.
fn sample(ty: &Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(true),
        Type::Dynamic => Value::Null,
        Type::List(element) => Value::List(vec![sample(element); 3]),
        Type::Map(element) => Value::Map([("key".into(), sample(element))].into()),
        Type::Number => Value::Number(4242_i64.into()),
        Type::Object(attributes) => {
            Value::Object(attributes.iter().map(|(name, ty)| (name.clone(), sample(ty))).collect())
        }
        Type::Set(element) => Value::set(vec![sample(element)]),
        Type::String => Value::String("a text of a usual length".to_owned()),
        Type::Tuple(elements) => Value::Tuple(elements.iter().map(sample).collect()),
    }
}
