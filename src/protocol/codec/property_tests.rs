//! Values survive the codec; random bytes do no harm.

use std::collections::BTreeMap;

use proptest::{collection, prelude::*};

use super::*;
use crate::framework::{Type, Value, value::Dynamic};

proptest! {
    #[test]
    fn reading_undoes_writing((ty, value) in typed_values()) {
        let bytes = encode(&ty, &value).unwrap();
        prop_assert!(decode(&ty, &bytes).unwrap() == value);
    }

    #[test]
    fn types_survive_their_json(ty in types()) {
        prop_assert_eq!(decode_type(&encode_type(&ty)).unwrap(), ty);
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(ty in types(), bytes in collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = decode(&ty, &bytes) {
            prop_assert!(decode(&ty, &encode(&ty, &value).unwrap()).unwrap() == value);
        }
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        (ty, value) in typed_values(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encode(&ty, &value).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(value) = decode(&ty, &bytes) {
            prop_assert!(decode(&ty, &encode(&ty, &value).unwrap()).unwrap() == value);
        }
    }

    #[test]
    fn truncated_messages_are_refused((ty, value) in typed_values()) {
        let bytes = encode(&ty, &value).unwrap();
        for length in 0..bytes.len() {
            prop_assert!(decode(&ty, &bytes[..length]).is_err());
        }
    }

    #[test]
    fn arbitrary_json_is_read_or_refused(ty in types(), text in "[\\[\\]{}\",:a-c0-9.eE+ ntrufalse-]{0,60}") {
        let _ = decode_json(&ty, text.as_bytes(), Unsaid::Dropped);
        let _ = decode_type(text.as_bytes());
    }
}

fn types() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![Just(Type::Bool), Just(Type::Number), Just(Type::String), Just(Type::Dynamic),];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            inner.clone().prop_map(Type::set),
            inner.clone().prop_map(Type::map),
            collection::vec(inner.clone(), 0..4).prop_map(Type::Tuple),
            collection::btree_map("[a-e]", inner, 0..4).prop_map(Type::Object),
        ]
    })
}

fn typed_values() -> impl Strategy<Value = (Type, Value)> {
    types().prop_flat_map(|ty| (Just(ty.clone()), values(&ty, 3)))
}

/// Values of a type; `depth` bounds how often a dynamic value may hold another.
fn values(ty: &Type, depth: usize) -> BoxedStrategy<Value> {
    let known = match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Number => numbers().boxed(),
        Type::String => "\\PC{0,8}".prop_map(|text| Value::String(decode::normalized(&text))).boxed(),
        Type::List(element) => collection::vec(values(element, depth), 0..4).prop_map(Value::List).boxed(),
        Type::Set(element) => collection::vec(values(element, depth), 0..4).prop_map(Value::set).boxed(),
        Type::Map(element) => {
            collection::btree_map("[a-zä]{0,3}", values(element, depth), 0..4).prop_map(Value::Map).boxed()
        }
        Type::Tuple(types) => types
            .iter()
            .fold(Just(Vec::new()).boxed(), |all, ty| {
                (all, values(ty, depth))
                    .prop_map(|(mut all, value)| {
                        all.push(value);
                        all
                    })
                    .boxed()
            })
            .prop_map(Value::Tuple)
            .boxed(),
        Type::Object(types) => types
            .iter()
            .fold(Just(BTreeMap::new()).boxed(), |all, (name, ty)| {
                let name = name.clone();
                (all, values(ty, depth))
                    .prop_map(move |(mut all, value)| {
                        all.insert(name.clone(), value);
                        all
                    })
                    .boxed()
            })
            .prop_map(Value::Object)
            .boxed(),
        Type::Dynamic if depth == 0 => Just(Value::Null).boxed(),
        Type::Dynamic => types()
            .prop_filter("a dynamic value has a type", |ty| *ty != Type::Dynamic)
            .prop_flat_map(move |ty| (Just(ty.clone()), values(&ty, depth - 1)))
            .prop_map(|(ty, value)| Value::Dynamic(Box::new(Dynamic { ty, value })))
            .boxed(),
    };
    prop_oneof![8 => known, 1 => Just(Value::Null), 1 => Just(Value::Unknown)].boxed()
}

fn numbers() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        prop::num::f64::NORMAL.prop_map(|number| format!("{number:e}")),
        "-?[0-9]{1,30}(\\.[0-9]{1,30})?",
    ];
    text.prop_map(|text| Value::Number(text.parse().unwrap()))
}
