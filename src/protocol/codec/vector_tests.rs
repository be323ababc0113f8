//! Values as Terraform 1.11.4 sends them (plugin protocol, msgpack test vectors), both ways.

use std::fmt::Write as _;

use super::*;
use crate::framework::{Type, Value, value::Dynamic};

const U: Value = Value::Unknown;
const NULL: Value = Value::Null;

/// Read and written alike.
fn same_both_ways() -> Vec<(&'static str, Value, &'static str)> {
    let string = r#""string""#;
    let number = r#""number""#;
    let boolean = r#""bool""#;
    let list = r#"["list","string"]"#;
    let map = r#"["map","string"]"#;
    let object = r#"["object",{"a":"string","b":"bool"}]"#;
    let dynamic = r#""dynamic""#;
    vec![
        (string, s("hi"), "a26869"),
        (string, s(""), "a0"),
        (string, NULL, "c0"),
        (string, U, "d40000"),
        (string, s("é𝄞"), "a6c3a9f09d849e"),
        (number, n("0"), "00"),
        (number, n("127"), "7f"),
        (number, n("128"), "cc80"),
        (number, n("255"), "ccff"),
        (number, n("256"), "cd0100"),
        (number, n("65535"), "cdffff"),
        (number, n("65536"), "ce00010000"),
        (number, n("4294967295"), "ceffffffff"),
        (number, n("4294967296"), "cf0000000100000000"),
        (number, n("9223372036854775807"), "cf7fffffffffffffff"),
        (number, n("9223372036854775808"), "b339323233333732303336383534373735383038"),
        (number, n("-1"), "ff"),
        (number, n("-32"), "e0"),
        (number, n("-33"), "d0df"),
        (number, n("-128"), "d080"),
        (number, n("-129"), "d1ff7f"),
        (number, n("-32768"), "d18000"),
        (number, n("-32769"), "d2ffff7fff"),
        (number, n("-2147483648"), "d280000000"),
        (number, n("-2147483649"), "d3ffffffff7fffffff"),
        (number, n("-9223372036854775808"), "d38000000000000000"),
        (number, n("-9223372036854775809"), "b42d39323233333732303336383534373735383039"),
        (number, n("0.5"), "cb3fe0000000000000"),
        (number, n("-0.25"), "cbbfd0000000000000"),
        (number, n("0.1"), "a3302e31"),
        (number, n("1.0"), "01"),
        (number, n("1e3"), "cd03e8"),
        (number, n("3.14159265358979"), "b0332e3134313539323635333538393739"),
        (number, NULL, "c0"),
        (boolean, true.into(), "c3"),
        (boolean, false.into(), "c2"),
        (boolean, NULL, "c0"),
        (list, l([s("a"), s("b")]), "92a161a162"),
        (list, l([]), "90"),
        (list, NULL, "c0"),
        (list, l([s("a"), NULL, U]), "93a161c0d40000"),
        (r#"["list","number"]"#, l([n("1"), n("0.1")]), "9201a3302e31"),
        (r#"["set","string"]"#, Value::set(vec![s("b"), s("a"), s("a")]), "92a161a162"),
        (r#"["set","string"]"#, Value::set(vec![]), "90"),
        (map, m([("b", s("2")), ("a", s("1"))]), "82a161a131a162a132"),
        (map, m([]), "80"),
        (map, NULL, "c0"),
        (r#"["map","number"]"#, m([("x", n("1")), ("y", n("0.5"))]), "82a17801a179cb3fe0000000000000"),
        (object, o([("a", s("x")), ("b", true.into())]), "82a161a178a162c3"),
        (object, o([("a", NULL), ("b", NULL)]), "82a161c0a162c0"),
        (object, NULL, "c0"),
        (object, o([("a", U), ("b", false.into())]), "82a161d40000a162c2"),
        (r#"["tuple",["string","number"]]"#, t([s("a"), n("1")]), "92a16101"),
        (r#"["tuple",["string","number"]]"#, NULL, "c0"),
        (r#"["list",["object",{"a":"string"}]]"#, l([o([("a", s("1"))]), o([("a", NULL)])]), "9281a161a13181a161c0"),
        (
            r#"["set",["object",{"a":"number"}]]"#,
            Value::set(vec![o([("a", n("2"))]), o([("a", n("1"))])]),
            "9281a1610181a16102",
        ),
        (r#"["list",["list","string"]]"#, l([l([s("a")]), l([])]), "9291a16190"),
        (
            r#"["map","dynamic"]"#,
            m([("a", d("\"number\"", n("1"))), ("b", d("\"number\"", n("2")))]),
            "82a16192c408226e756d6265722201a16292c408226e756d6265722202",
        ),
        (r#"["map","dynamic"]"#, m([("a", d("\"string\"", s("x")))]), "81a16192c40822737472696e6722a178"),
        (dynamic, d(string, s("x")), "92c40822737472696e6722a178"),
        (dynamic, d(number, n("1")), "92c408226e756d6265722201"),
        (dynamic, d(boolean, true.into()), "92c40622626f6f6c22c3"),
        (dynamic, NULL, "c0"),
        (dynamic, d(string, U), "92c40822737472696e6722d40000"),
        (
            dynamic,
            d(r#"["tuple",["string","number"]]"#, t([s("a"), n("1")])),
            "92c41d5b227475706c65222c5b22737472696e67222c226e756d626572225d5d92a16101",
        ),
        (
            dynamic,
            d(r#"["object",{"a":"string","n":"dynamic"}]"#, o([("a", s("x")), ("n", NULL)])),
            "92c4275b226f626a656374222c7b2261223a22737472696e67222c226e223a2264796e616d6963227d5d82a161a178a16ec0",
        ),
        (dynamic, d(r#"["set","string"]"#, Value::set(vec![s("a")])), "92c4105b22736574222c22737472696e67225d91a161"),
        (dynamic, d(r#"["list","dynamic"]"#, l([])), "92c4125b226c697374222c2264796e616d6963225d90"),
        (dynamic, d(r#"["map","number"]"#, m([("a", n("1"))])), "92c4105b226d6170222c226e756d626572225d81a16101"),
        (dynamic, d(string, NULL), "92c40822737472696e6722c0"),
        (dynamic, d(r#"["object",{}]"#, o([])), "92c40d5b226f626a656374222c7b7d5d80"),
        (dynamic, d(r#"["tuple",[]]"#, t([])), "92c40c5b227475706c65222c5b5d5d90"),
        (
            dynamic,
            d(r#"["object",{"a":"string"}]"#, o([("a", U)])),
            "92c4195b226f626a656374222c7b2261223a22737472696e67227d5d81a161d40000",
        ),
        (r#"["object",{"u":"string","v":"string"}]"#, o([("u", NULL), ("v", s("hi"))]), "82a175c0a176a26869"),
    ]
}

/// Read from the core's form (or another that its decoder takes too), and written in ours.
fn written_otherwise() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let set = r#"["set","string"]"#;
    vec![
        // What else is known of an unknown value may be dropped.
        ("\"string\"", U, "c7090c8201c202a47072652d", "d40000"),
        ("\"number\"", U, "c70b0c8301c2039201c3049202c3", "d40000"),
        ("\"bool\"", U, "c7030c8101c2", "d40000"),
        ("\"string\"", U, "c70000", "d40000"),
        ("\"string\"", U, "d40500", "d40000"),
        // The order of a set is free.
        (set, Value::set(vec![s("a"), U]), "92a161d40000", "92d40000a161"),
        (set, Value::set(vec![s("a"), s("b")]), "93a162a161a162", "92a161a162"),
        // Texts come as str or bin, and are normalised.
        ("\"string\"", s("hi"), "c4026869", "a26869"),
        ("\"string\"", s("é"), "a365cc81", "a2c3a9"),
        (r#"["map","bool"]"#, m([("é", true.into())]), "81a365cc81c3", "81a2c3a9c3"),
        ("\"dynamic\"", d("\"string\"", s("x")), "92a822737472696e6722a178", "92c40822737472696e6722a178"),
        // Numbers come in any width.
        ("\"number\"", n("1"), "cf0000000000000001", "01"),
        ("\"number\"", n("18446744073709551615"), "cfffffffffffffffff", "b43138343436373434303733373039353531363135"),
        ("\"number\"", n("-1"), "d3ffffffffffffffff", "ff"),
        ("\"number\"", n("0.5"), "ca3f000000", "cb3fe0000000000000"),
        ("\"number\"", n("3"), "cb4008000000000000", "03"),
        ("\"number\"", n("0.1"), "cb3fb999999999999a", "a3302e31"),
        // Any order of attributes.
        (
            r#"["object",{"a":"bool","b":"bool"}]"#,
            o([("a", true.into()), ("b", NULL)]),
            "82a162c0a161c3",
            "82a161c3a162c0",
        ),
    ]
}

#[test]
fn the_cores_values_are_read_and_written_alike() {
    for (ty, value, hex) in same_both_ways() {
        check(ty, &value, hex, hex);
    }
}

#[test]
fn other_forms_are_read_too() {
    for (ty, value, theirs, ours) in written_otherwise() {
        check(ty, &value, theirs, ours);
    }
}

#[test]
fn a_giant_is_its_decimal_digits() {
    let value = n("1.5e300");
    let hex = format!("da012d{}", hex(format!("15{}", "0".repeat(299)).as_bytes()));
    check("\"number\"", &value, &hex, &hex);
}

#[test]
fn what_does_not_fit_is_refused() {
    let object = r#"["object",{"a":"string"}]"#;
    for (ty, bytes, message) in [
        ("\"string\"", "", "the message ends too early"),
        ("\"string\"", "a268", "the message ends too early"),
        ("\"string\"", "a26869c0", "bytes after the end of the value"),
        ("\"string\"", "01", "not a string"),
        ("\"string\"", "a1ff", "a string that is not UTF-8"),
        ("\"string\"", "c1", "a reserved msgpack marker"),
        ("\"number\"", "c3", "not a number"),
        ("\"number\"", "a178", "a number that is none, or too large"),
        ("\"number\"", "cb7ff0000000000000", "a number that is none, or too large"),
        ("\"bool\"", "00", "not a bool"),
        (object, "80", "an object with another number of attributes"),
        (object, "81a162c0", "an object with an attribute too many"),
        (object, "81a16101", "a: not a string"),
        (r#"["object",{"a":"bool","b":"bool"}]"#, "82a161c3a161c3", "a key that is there twice"),
        (r#"["tuple",["bool"]]"#, "92c3c3", "a tuple of another length"),
        (r#"["list","bool"]"#, "92c300", "[1]: not a bool"),
        (r#"["list","bool"]"#, "ddffffffff", "[0]: the message ends too early"),
        (r#"["map","bool"]"#, "dfffffffff", "the message ends too early"),
        (r#"["map","bool"]"#, "81a16b00", "[\"k\"]: not a bool"),
        // A path ends at a set.
        (r#"["set",["object",{"a":"string"}]]"#, "9181a16101", "not a string"),
        ("\"dynamic\"", "91c0", "not a type and a value of it"),
        ("\"dynamic\"", "92a178c0", "a type that is none"),
        ("\"dynamic\"", "92c4092264796e616d696322c0", "a type that is none"),
        // Extensions of another kind, and malformed descriptions.
        ("\"string\"", "d5000000", "an extension of an unknown kind"),
        ("\"string\"", "d50c0102", "a malformed description of an unknown value"),
        ("\"string\"", "c7020c81a1", "the message ends too early"),
        ("\"string\"", "c7050c81a16101c2", "a malformed description of an unknown value"),
    ] {
        let ty = decode_type(ty.as_bytes()).unwrap();
        let error = decode(&ty, &bytes_of(bytes)).unwrap_err();
        assert_eq!(error.to_string(), message, "{bytes}");
    }
}

#[test]
fn descriptions_of_unknown_values_have_a_limit() {
    let mut bytes = vec![0xc8, 0x04, 0x01, 0x0c];
    bytes.extend([0x81, 0x02, 0xda, 0x03, 0xfc]);
    bytes.resize(4 + 1025, b'x');
    let error = decode(&Type::String, &bytes).unwrap_err();
    assert_eq!(error.to_string(), "too long a description of an unknown value");
}

#[test]
fn nesting_has_a_limit() {
    // A dynamic value in a dynamic value, each in a tuple of one.
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend(bytes_of("92"));
        bytes.extend(bytes_of("b4"));
        bytes.extend(br#"["list"  ,"dynamic"]"#);
        bytes.extend(bytes_of("91"));
    }
    let error = decode(&Type::Dynamic, &bytes).unwrap_err();
    assert!(error.to_string().ends_with("nested too deeply"), "{error}");
}

#[test]
fn a_value_of_another_type_keeps_what_fits() {
    let ty = decode_type(br#"["object",{"id":"string","size":["list","number"]}]"#).unwrap();
    let value = o([("id", s("disk-1")), ("size", l([n("1"), s("planted")]))]);
    let error = encode(&ty, &value).unwrap_err();
    assert_eq!(error.to_string(), "size[1]: a number was meant");
    let kept = decode(&ty, &error.into_partial()).unwrap();
    assert_eq!(kept, o([("id", s("disk-1")), ("size", l([n("1"), NULL]))]));
}

fn check(ty: &str, value: &Value, theirs: &str, ours: &str) {
    let parsed = decode_type(ty.as_bytes()).unwrap();
    let decoded = decode(&parsed, &bytes_of(theirs)).unwrap();
    assert!(decoded == *value, "{ty} {theirs} became {decoded:?}");
    assert_eq!(hex(&encode(&parsed, value).unwrap()), ours, "{ty}");
}

fn s(text: &str) -> Value {
    text.into()
}

fn n(text: &str) -> Value {
    Value::Number(text.parse().unwrap())
}

fn l<const N: usize>(elements: [Value; N]) -> Value {
    Value::List(elements.into())
}

fn t<const N: usize>(elements: [Value; N]) -> Value {
    Value::Tuple(elements.into())
}

fn m<const N: usize>(elements: [(&str, Value); N]) -> Value {
    Value::Map(elements.map(|(key, value)| (key.to_owned(), value)).into())
}

fn o<const N: usize>(attributes: [(&str, Value); N]) -> Value {
    Value::object(attributes)
}

fn d(ty: &str, value: Value) -> Value {
    let ty = decode_type(ty.as_bytes()).unwrap();
    Value::Dynamic(Box::new(Dynamic { ty, value }))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn bytes_of(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
