//! Damaged inputs for everything that is read from outside: each is read or refused, without a panic and within its
//! size. The reports of an instance have a test of their own, in damodel-llama.

use std::fs;

use bytes::Bytes;
use damodel::{
    api::{CloudDisk, CloudDiskSpec, EventStream, Instance, InstanceDetail, PrivateImage, PublicImage, Spec},
    framework::{Ends, OfferKind, Server, Type, Value},
    llama::{ServerOptions, memory, read_model},
    protocol::codec::{Unsaid, decode, decode_json, encode},
    provider::{Damodel, Environment},
    review::{Arguments, Facts, Format, Plan, Policy, Review, Style, render},
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use rand::RngExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::support::{damage::damaged, files::Files, gguf::Size};

fn fixture(name: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A value that was read is written, and then read as the same.
fn survives(ty: &Type, value: &Value) {
    assert!(decode(ty, &encode(ty, value).unwrap()).as_ref() == Ok(value));
}

/// The JSON of a state of this type, with something in each place.
fn stored(ty: &Type) -> Json {
    match ty {
        Type::Bool => true.into(),
        Type::Number => 1.98.into(),
        Type::List(element) | Type::Set(element) => vec![stored(element)].into(),
        Type::Map(element) => Json::Object([("key".to_owned(), stored(element))].into_iter().collect()),
        Type::Object(types) => Json::Object(types.iter().map(|(name, ty)| (name.to_string(), stored(ty))).collect()),
        Type::String | Type::Dynamic | Type::Tuple(_) => "text".into(),
    }
}

#[test]
fn a_stored_state() {
    let server = Server::new(Damodel::new(Environment::default()), Ends::default());
    let types: Vec<&Type> = server.registry().of(OfferKind::Resource).map(|resource| &resource.ty).collect();
    let states: Vec<Vec<u8>> = types.iter().map(|ty| stored(ty).to_string().into_bytes()).collect();
    damaged("states", 1000, &states, |position, bytes, _| {
        if let Ok(value) = decode_json(types[position], bytes, Unsaid::Dropped) {
            survives(types[position], &value);
        }
    });
}

#[test]
fn an_answer_of_the_service() {
    fn read<T: DeserializeOwned>(record: &Json) {
        let _ = T::deserialize(record);
    }
    type Reader = fn(&Json);
    const ANSWERS: [(&str, Reader); 7] = [
        ("cloud_disk_list", read::<CloudDisk>),
        ("cloud_disk_specs", read::<CloudDiskSpec>),
        ("instance_detail", read::<InstanceDetail>),
        ("instance_list", read::<Instance>),
        ("private_images", read::<PrivateImage>),
        ("public_images", read::<PublicImage>),
        ("spec_list", read::<Spec>),
    ];
    let answers = ANSWERS.map(|(file, _)| {
        let answer: Json = serde_json::from_slice(&fixture(&format!("api/{file}.json"))).unwrap();
        answer.to_string().into_bytes()
    });
    damaged("answers", 1000, &answers, |position, bytes, _| {
        let Ok(whole) = serde_json::from_slice::<Json>(bytes) else { return };
        let result = &whole["result"];
        let records = [result, &result["data"]].into_iter().filter_map(|list| list.as_array()).flatten();
        records.chain([result]).for_each(ANSWERS[position].1);
    });
}

/// However a stream is cut into pieces, its events are the same.
#[test]
fn an_event_stream() {
    let texts = [
        &b"event: a\r\nid: 1\ndata: {\"x\":1}\r\n\r\n: note\ndata: one\ndata: two\n\ndata: [DONE]\n\n"[..],
        b"\xef\xbb\xbfdata\r\rdata:one\revent\n\nretry: 5\ndata: \xc3\xa9\r\n",
    ];
    damaged("events", 3000, &texts.map(<[u8]>::to_vec), |_, text, random| {
        let mut places: Vec<usize> =
            (0..random.random_range(0..8)).map(|_| random.random_range(0..=text.len())).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|piece| &text[piece[0]..piece[1]]).collect();
        let events = |pieces: &[&[u8]]| {
            let bytes = pieces.iter().map(|piece| Ok::<_, String>(Bytes::copy_from_slice(piece)));
            let events = EventStream::new(stream::iter(bytes)).map(|event| event.map_err(|error| error.to_string()));
            events.collect::<Vec<_>>().now_or_never().unwrap()
        };
        assert_eq!(events(&pieces), events(&[text]));
    });
}

/// A model's header is read in less than a MiB at a time, and never beyond the file's end: the source checks that.
#[test]
fn a_model_file() {
    let file = || Size { heads_kv: 2, experts: 4, window: 128, ..Size::dense() }.model();
    let files = [file(), file().number("split.count", 2).number("split.no", 0)];
    let lengths = files.each_ref().map(|file| file.length());
    damaged("models", 300, &files.map(|file| file.header()), |position, header, _| {
        let length = lengths[position].max(header.len() as u64);
        let files = Files::default().with("m-00001-of-00002.gguf", header.to_vec(), length).with(
            "m-00002-of-00002.gguf",
            header.to_vec(),
            length,
        );
        if let Ok(model) = read_model(&files, "m-00001-of-00002.gguf").now_or_never().unwrap() {
            let found = memory(&model, &ServerOptions::default());
            assert_eq!(found.total.is_some(), found.cache.is_some() && found.compute.is_some());
            assert!(!found.notes.is_empty());
        }
    });
}

const FORMATS: [Format; 5] = [Format::Html, Format::Json, Format::Markdown, Format::Sarif, Format::Text];

/// Each plan is read, reviewed and written in one format.
#[test]
fn a_plan() {
    let cores = ["action-after-create", "action-invoked", "deferred", "refresh-only", "action-on-update"];
    let cores = cores.map(|name| format!("cores/terraform-1.17-{name}"));
    let plans = cores.iter().map(|name| fixture(&format!("review/{name}.json"))).collect::<Vec<_>>();
    damaged("plans", 150, &plans, |_, plan, random| review(plan, FORMATS[random.random_range(0..FORMATS.len())]));
}

/// It is ten times as large as the others.
#[test]
fn a_plan_with_everything() {
    damaged("large plans", 20, &[fixture("review/everything.json")], |_, plan, _| {
        FORMATS.into_iter().for_each(|format| review(plan, format));
    });
}

fn review(plan: &[u8], format: Format) {
    let Ok(plan) = Plan::read(plan) else { return };
    let (facts, policy) = ([Facts::of(None, &plan, &Arguments::default())], Policy::default());
    let review = Review::new(&facts, &policy, |_| None);
    assert!(render(&review, &Style { format, ..Style::default() }).is_ok(), "{format:?}");
}
