//! The codec, compared with what the real Terraform writes and reads.

use std::sync::OnceLock;

use serde_json::Value as Json;
use terraform_plugin::{
    framework::Type,
    protocol::codec::{decode, encode},
};

use super::recorded::{bytes, lines, text, ty, value};

/// The vectors of a section, whose number must be `count`.
fn section(name: &str, count: usize) -> Vec<Json> {
    let vectors: Vec<Json> = lines("msgpack").into_iter().filter(|line| line["section"] == name).collect();
    assert_eq!(vectors.len(), count);
    vectors
}

/// Fails unless the test is false for exactly the exceptions, each of which has its reason.
fn agree(vectors: &[Json], exceptions: &[(&str, &[&str])], test: impl Fn(&Json) -> bool) {
    let mut expected: Vec<&str> = exceptions.iter().flat_map(|(_, ids)| ids.iter().copied()).collect();
    expected.sort_unstable();
    let failing =
        vectors.iter().filter(|vector| !test(vector)).map(|vector| (text(vector, "id"), text(vector, "kind")));
    let (found, kinds): (Vec<&str>, Vec<&str>) = failing.unzip();
    assert_eq!(found, expected, "{kinds:?}");
}

fn is_accepted(vector: &Json) -> bool {
    vector["accepted"] == true && vector.get("type_differs").is_none()
}

/// The recorded values that Terraform writes, with their types.
pub(crate) fn recorded_values() -> &'static [(Type, Vec<u8>)] {
    static VALUES: OnceLock<Vec<(Type, Vec<u8>)>> = OnceLock::new();
    VALUES.get_or_init(|| {
        let vectors = section("value", 460).into_iter();
        vectors.map(|vector| (ty(&vector["type"]), bytes(&vector["msgpack"]))).collect()
    })
}

#[test]
fn what_the_core_writes_is_read() {
    let exceptions: [(&str, &[&str]); 2] = [
        ("the shortest text of the same float has another last digit in Rust", &["v169"]),
        ("a float below the normal ones has fewer digits in Rust", &["v172"]),
    ];
    agree(&section("value", 460), &exceptions, |vector| {
        let ty = ty(&vector["type"]);
        match value(&ty, &vector["json"]) {
            Some(expected) => decode(&ty, &bytes(&vector["msgpack"])) == Ok(expected),
            None => decode(&ty, &bytes(&vector["msgpack"])).is_err(),
        }
    });
}

#[test]
fn what_is_cut_off_is_refused() {
    let short = recorded_values().iter().filter(|(ty, whole)| whole.len() < 200 && decode(ty, whole).is_ok());
    for (ty, whole) in short {
        assert!((0..whole.len()).all(|length| decode(ty, &whole[..length]).is_err()), "{whole:?}");
    }
}

#[test]
fn values_are_written_as_the_core_writes_them() {
    let exceptions: [(&str, &[&str]); 1] = [(
        "the core keeps that the number was a float; we write its text, which is the same number",
        &["v165", "v166", "v167", "v169", "v170", "v172", "v173", "v174"],
    )];
    agree(&section("value", 460), &exceptions, |vector| {
        let ty = ty(&vector["type"]);
        let Some(value) = value(&ty, &vector["json"]) else { return true };
        let written = encode(&ty, &value).unwrap();
        let expected = bytes(vector.get("plain").unwrap_or_else(|| &vector["msgpack"]));
        // The order of a set is free.
        written == expected || holds_a_set(&ty) && decode(&ty, &expected) == Ok(value)
    });
}

fn holds_a_set(ty: &Type) -> bool {
    match ty {
        Type::Set(_) | Type::Dynamic => true,
        Type::List(element) | Type::Map(element) => holds_a_set(element),
        Type::Object(attributes) => attributes.values().any(holds_a_set),
        Type::Tuple(elements) => elements.iter().any(holds_a_set),
        Type::Bool | Type::Number | Type::String => false,
    }
}

#[test]
fn what_the_core_refuses_is_refused() {
    let exceptions: [(&str, &[&str]); 2] = [
        ("elements of two types in a collection: no schema has a dynamic value in one", &["i242", "i243", "i244"]),
        ("the byte is in an extension, which is not read", &["i363", "i367", "i373", "i396", "i400", "i408"]),
    ];
    agree(&section("input", 415), &exceptions, |vector| {
        // An extension of any kind stands for an unknown value, and what it contains need not be read (plugin protocol,
        // msgpack rules).
        is_accepted(vector)
            || text(vector, "kind").starts_with("unknown")
            || decode(&ty(&vector["type"]), &bytes(&vector["msgpack"])).is_err()
    });
}

/// Stricter on purpose: Terraform reads these, but writes none of them.
#[test]
fn what_the_core_writes_is_not_refused() {
    let exceptions: [(&str, &[&str]); 8] = [
        ("bytes behind the value", &["i037", "i038", "i039", "i040", "i041", "i042", "i322", "i403", "i405", "i412"]),
        ("a number that is not finite", &["i097", "i098", "i099", "i100", "i144", "i145", "i146"]),
        ("a binary exponent, or more digits than are read", &["i108", "i115"]),
        ("a number as bytes", &["i126", "i127"]),
        ("a text that is not UTF-8", &["i150", "i151", "i152", "i153", "i154", "i155", "i158", "i376", "i402"]),
        ("a key twice, or one that is no text", &["i173", "i174", "i176", "i177", "i178", "i180"]),
        ("a dynamic value of the dynamic type", &["i219"]),
        ("nested more deeply than any schema", &["i247", "i248"]),
    ];
    agree(&section("input", 415), &exceptions, |vector| {
        !is_accepted(vector) || decode(&ty(&vector["type"]), &bytes(&vector["msgpack"])).is_ok()
    });
}

#[test]
fn what_is_read_is_the_same_value() {
    let exceptions: [(&str, &[&str]); 3] = [
        ("we keep digits beyond 512 bits", &["i124", "i125"]),
        ("a null inside a dynamic value has no type for us", &["i245", "i246"]),
        (
            "a description that leaves one value: the core says that value, and sends it as such",
            &["i274", "i282", "i284", "i299", "i320", "i321", "i328", "i330", "i331"],
        ),
    ];
    agree(&section("input", 415), &exceptions, |vector| {
        let ty = ty(&vector["type"]);
        let (Ok(read), Some(again)) = (decode(&ty, &bytes(&vector["msgpack"])), vector.get("again")) else {
            return true;
        };
        let survives = decode(&ty, &encode(&ty, &read).unwrap()).as_ref() == Ok(&read);
        assert!(survives, "{vector}");
        decode(&ty, &bytes(again)) == Ok(read)
    });
}

#[test]
fn values_are_the_same_for_us_that_are_for_the_core() {
    let exceptions: [(&str, &[&str]); 1] = [("we keep digits beyond 512 bits", &["p019", "p033", "p034"])];
    agree(&section("pair", 71), &exceptions, |vector| {
        let ty = ty(&vector["type"]);
        let read = |side: &str| decode(&ty, &bytes(&vector[side]));
        match (read("left"), read("right")) {
            (Ok(left), Ok(right)) => (left == right) == (vector["same"] == true),
            _ => false,
        }
    });
}
