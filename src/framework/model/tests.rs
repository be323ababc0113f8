//! Models, read and written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::*;
use crate::framework::{Attr, Secret, value::Number};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Disk {
    size_gb: Attr<i64>,
    path: Attr<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Machine {
    name: Attr<String>,
    price: Attr<f64>,
    exact: Attr<Number>,
    running: Attr<bool>,
    password: Attr<Secret>,
    disks: Attr<Vec<Disk>>,
    tags: Attr<BTreeMap<String, String>>,
}

fn machine() -> Machine {
    Machine {
        name: "a".into(),
        price: Attr::Known(2.0),
        exact: Attr::Known("0.1234567890123456789".parse().unwrap()),
        running: Attr::Unknown,
        password: Attr::Known(Secret::new("planted")),
        disks: Attr::Known(vec![Disk { size_gb: Attr::Known(20), path: Attr::Null }]),
        tags: Attr::Known(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
    }
}

#[test]
fn a_model_survives_the_way_through_a_value() {
    let value = to_value(&machine()).unwrap();
    assert!(value.attribute("running").is_unknown());
    assert_eq!(from_value::<Machine>(&value).unwrap(), machine());
}

#[test]
fn debug_shows_no_secret() {
    let value = to_value(&machine()).unwrap();
    assert!(!format!("{value:?}").contains("planted"));
    assert!(!format!("{:?}", machine()).contains("planted"));
}

#[test]
fn a_missing_attribute_is_an_error() {
    assert!(from_value::<Disk>(&Value::object([("size_gb", Value::from(20))])).is_err());
}

#[test]
fn a_model_is_projected_on_a_smaller_one() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Name {
        name: Attr<String>,
    }
    let name: Name = project(&machine()).unwrap();
    assert_eq!(name, Name { name: "a".into() });
}

#[test]
fn an_attribute_is_set_when_it_is_not_null() {
    #[derive(Serialize)]
    struct Login {
        ssh: Attr<Disk>,
        name: Attr<String>,
    }
    let disk = Disk { size_gb: Attr::Unknown, path: Attr::Null };
    let login = Login { ssh: Attr::Known(disk), name: Attr::Null };
    let set: Vec<bool> =
        ["ssh", "ssh.size_gb", "ssh.path", "name", "other"].iter().map(|name| is_set(&login, name)).collect();
    assert_eq!(set, [true, true, false, false, false]);
}
