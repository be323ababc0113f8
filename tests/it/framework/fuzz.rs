//! Everything that is read from outside, damaged: it is read or refused, without a panic and within its size.
//!
//! Each input is a recorded one with pieces changed, doubled and cut out. `PROPTEST_CASES=10000000` looks for more than
//! the short run, with another seed each time.

use std::fs;

use bytes::Bytes;
use damodel::{
    api::{CloudDisk, CloudDiskSpec, EventStream, Instance, InstanceDetail, PrivateImage, PublicImage, Spec},
    framework::{Ends, Kind, Server, Type},
    protocol::codec::{Unsaid, decode, decode_json, decode_type, encode},
    provider::{Damodel, Environment},
    review::{Format, Plan, Policy, Review, Reviewed, Style, render},
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use proptest::{prelude::*, sample::Index};

use crate::framework::conformance::{cases, vectors::recorded_values};

/// A piece of the input, what becomes of it, and a byte for that.
type Edit = (Index, Index, u8, u8);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(any::<Edit>(), 1..8)
}

/// The input with the edits: bytes set, flipped and inserted, pieces cut out and doubled.
fn damaged(mut input: Vec<u8>, edits: &[Edit]) -> Vec<u8> {
    for (from, to, what, byte) in edits {
        if input.is_empty() {
            return vec![*byte];
        }
        let at = from.index(input.len());
        // Short pieces, since a long one leaves little of the input.
        let end = (at + 1 + to.index(32)).min(input.len());
        match what % 5 {
            0 => input[at] = *byte,
            1 => input[at] ^= 1 << (byte % 8),
            2 => input.insert(at, *byte),
            3 => drop(input.drain(at..end)),
            _ => {
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
    input
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The types of all resources.
fn types() -> &'static [Type] {
    static TYPES: std::sync::OnceLock<Vec<Type>> = std::sync::OnceLock::new();
    TYPES.get_or_init(|| {
        let server = Server::new(Damodel::new(Environment::default()), Ends::default());
        server.registry().of(Kind::Resource).map(|resource| resource.ty.clone()).collect()
    })
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_value_of_the_core(vector: Index, edits in edits()) {
        let values = recorded_values();
        let (ty, bytes) = &values[vector.index(values.len())];
        let bytes = damaged(bytes.clone(), &edits);
        if let Ok(value) = decode(ty, &bytes) {
            let written = encode(ty, &value).unwrap();
            prop_assert!(decode(ty, &written) == Ok(value));
        }
    }

    #[test]
    fn a_stored_state(edits in edits()) {
        static STATE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let state = STATE.get_or_init(|| {
            let state: serde_json::Value = serde_json::from_slice(&fixture("state/0.1.0/state.json")).unwrap();
            state["resources"][0]["instances"][0]["attributes"].to_string().into_bytes()
        });
        let state = damaged(state.clone(), &edits);
        for ty in types() {
            if let Ok(value) = decode_json(ty, &state, Unsaid::Dropped) {
                prop_assert!(decode(ty, &encode(ty, &value).unwrap()) == Ok(value));
            }
        }
        let _ = decode_type(&state);
    }

    #[test]
    fn an_answer_of_the_service(file: Index, edits in edits()) {
        const FILES: [&str; 7] = [
            "cloud_disk_list", "cloud_disk_specs", "instance_detail", "instance_list", "private_images", "public_images",
            "spec_list",
        ];
        let answer = fixture(&format!("api/{}.json", FILES[file.index(FILES.len())]));
        let answer = damaged(answer, &edits);
        let Ok(whole) = serde_json::from_slice::<serde_json::Value>(&answer) else { return Ok(()) };
        let result = &whole["result"];
        let records = [result, &result["data"]].into_iter().filter_map(|list| list.as_array()).flatten().chain([result]);
        for record in records {
            let record = || record.clone();
            let _ = serde_json::from_value::<CloudDisk>(record());
            let _ = serde_json::from_value::<CloudDiskSpec>(record());
            let _ = serde_json::from_value::<Instance>(record());
            let _ = serde_json::from_value::<InstanceDetail>(record());
            let _ = serde_json::from_value::<PrivateImage>(record());
            let _ = serde_json::from_value::<PublicImage>(record());
            let _ = serde_json::from_value::<Spec>(record());
        }
    }

    /// Wherever a stream is cut into pieces, its events are the same.
    #[test]
    fn an_event_stream(edits in edits(), cuts in prop::collection::vec(any::<Index>(), 0..8)) {
        let text = b"event: a\r\nid: 1\ndata: {\"x\":1}\r\n\r\n: note\ndata: one\ndata: two\n\ndata: [DONE]\n\n";
        let text = damaged(text.to_vec(), &edits);
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let pieces: Vec<_> = places.windows(2).map(|piece| text[piece[0]..piece[1]].to_vec()).collect();
        let events = |pieces: Vec<Vec<u8>>| {
            let bytes = stream::iter(pieces.into_iter().map(|piece| Ok::<_, String>(Bytes::from(piece))));
            let events = EventStream::new(bytes).map(|event| event.map_err(|error| error.to_string()));
            events.collect::<Vec<_>>().now_or_never().unwrap()
        };
        prop_assert_eq!(events(pieces), events(vec![text]));
    }
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn a_plan(edits in edits()) {
        if let Ok(plan) = Plan::read(&damaged(fixture("review/everything.json"), &edits)) {
            let review = Review::new(vec![Reviewed::new(None, &plan)], &Policy::default(), None, |_| None);
            for format in [
                Format::Github, Format::Gitlab, Format::Html, Format::Json, Format::Junit, Format::Markdown, Format::Sarif,
                Format::Text,
            ] {
                prop_assert!(render(&review, &Style { format, ..Style::default() }).is_ok(), "{format:?}");
            }
        }
    }
}
