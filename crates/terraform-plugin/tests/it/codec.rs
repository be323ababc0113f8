//! Damaged values and types of the core: each is read or refused, without a panic and within its size.

use terraform_plugin::{
    framework::Type,
    protocol::codec::{decode, decode_type, encode, encode_type},
};

use crate::{conformance::vectors::recorded_values, damage::damaged};

#[test]
fn a_value_of_the_core() {
    let (types, values): (Vec<Type>, Vec<Vec<u8>>) = recorded_values().iter().cloned().unzip();
    damaged("values", 3000, &values, |position, bytes, _| {
        let ty = &types[position];
        if let Ok(value) = decode(ty, bytes) {
            assert!(decode(ty, &encode(ty, &value).unwrap()).as_ref() == Ok(&value));
        }
    });
}

#[test]
fn a_type_of_the_core() {
    let types: Vec<Vec<u8>> = recorded_values().iter().map(|(ty, _)| encode_type(ty)).collect();
    damaged("types", 3000, &types, |_, bytes, _| {
        if let Ok(ty) = decode_type(bytes) {
            assert_eq!(decode_type(&encode_type(&ty)), Ok(ty));
        }
    });
}
