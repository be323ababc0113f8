//! The rules of plans.

use super::*;
use crate::framework::value::Type;

/// A machine with a name that changes in place, a size that does not, a pair of which either side decides, and disks.
fn schema() -> Schema {
    let disks = vec![
        Attribute::required("id", Type::Number, "The disk."),
        Attribute::optional_computed("uid", Type::String, "Its uid."),
        Attribute::with_default("keep", Type::Bool, true, "Whether it stays."),
    ];
    Schema::new(
        "A machine.",
        vec![
            Attribute::optional_computed("name", Type::String, "The name."),
            Attribute::required("size", Type::Number, "The size.").replaces(Replacement::Always),
            Attribute::optional_computed("image", Type::String, "By address.")
                .replaces(Replacement::Always)
                .follows(&["image_id"]),
            Attribute::optional_computed("image_id", Type::Number, "By number.")
                .replaces(Replacement::Always)
                .follows(&["image"]),
            Attribute::optional("hostname", Type::String, "Never reported.").replaces(Replacement::IfKnown),
            Attribute::with_default("flag", Type::Bool, false, "A flag."),
            Attribute::optional("secret", Type::String, "A secret.").write_only(),
            Attribute::optional("disks", AttributeType::Nested(Nesting::List, disks), "The disks.")
                .replaces(Replacement::Always),
            Attribute::computed("id", Type::String, "The id."),
            Attribute::computed("label", Type::String, "Made from the name.").follows(&["name"]),
        ],
    )
}

fn config(set: &[(&str, Value)]) -> Value {
    let mut config = Value::object(schema().attributes.iter().map(|a| (a.name.clone(), Value::Null)));
    config.set_attribute("size", Value::from(1));
    for (name, value) in set {
        config.set_attribute(name, value.clone());
    }
    config
}

fn prior() -> Value {
    config(&[
        ("name", "a".into()),
        ("image", "reg/a".into()),
        ("image_id", 7.into()),
        ("flag", false.into()),
        ("id", "m-1".into()),
        ("label", "a!".into()),
    ])
}

fn plan(config: &Value, prior: &Value) -> Value {
    planned_state(&schema(), config, prior)
}

#[test]
fn a_create_opens_what_is_computed_and_fills_defaults() {
    let disk = Value::object([("id", 1.into()), ("uid", Value::Null), ("keep", Value::Null)]);
    let planned = plan(&config(&[("disks", Value::List(vec![disk]))]), &Value::Null);
    assert!(planned.attribute("id").is_unknown());
    assert!(planned.attribute("name").is_unknown());
    assert_eq!(*planned.attribute("flag"), Value::from(false));
    let Value::List(disks) = planned.attribute("disks") else { panic!("no disks") };
    assert!(disks[0].attribute("uid").is_unknown());
    assert_eq!(*disks[0].attribute("keep"), Value::from(true));
}

#[test]
fn no_change_plans_the_prior_state() {
    assert_eq!(plan(&config(&[]), &prior()), prior());
    assert_eq!(plan(&config(&[("name", "a".into())]), &prior()), prior());
}

#[test]
fn a_rename_keeps_what_does_not_follow_the_name() {
    let planned = plan(&config(&[("name", "b".into())]), &prior());
    assert_eq!(*planned.attribute("id"), Value::from("m-1"));
    assert_eq!(*planned.attribute("image"), Value::from("reg/a"));
    assert!(planned.attribute("label").is_unknown());
    assert_eq!(replacements(&schema(), &planned, &prior()), vec![]);
}

#[test]
fn one_side_of_a_pair_opens_the_other() {
    let planned = plan(&config(&[("image", "reg/b".into())]), &prior());
    assert!(planned.attribute("image_id").is_unknown());
    let paths = replacements(&schema(), &planned, &prior());
    assert_eq!(paths, vec![Path::to("image"), Path::to("image_id")]);
}

#[test]
fn an_argument_of_the_create_alone_replaces() {
    let planned = plan(&config(&[("hostname", "h".into())]), &prior());
    assert_eq!(replacements(&schema(), &planned, &prior()), vec![Path::to("hostname")]);
    let mut with_hostname = prior();
    with_hostname.set_attribute("hostname", "g".into());
    let planned = plan(&config(&[("hostname", "h".into())]), &with_hostname);
    assert_eq!(replacements(&schema(), &planned, &with_hostname), vec![Path::to("hostname")]);
}

#[test]
fn write_only_values_never_enter_a_plan() {
    let config = config(&[("secret", "planted".into())]);
    let planned = plan(&config, &Value::Null);
    assert!(planned.attribute("secret").is_null());
    let mut refined = planned.clone();
    refined.set_attribute("secret", "planted".into());
    assert!(guarded(&schema(), &config, &Value::Null, &refined, &planned).attribute("secret").is_null());
}

#[test]
fn a_refinement_cannot_change_what_is_configured() {
    let config = config(&[("name", "a".into())]);
    let planned = plan(&config, &Value::Null);
    let mut refined = planned.clone();
    refined.set_attribute("name", "other".into());
    refined.set_attribute("hostname", "other".into());
    refined.set_attribute("label", "known early".into());
    let guarded = guarded(&schema(), &config, &Value::Null, &refined, &planned);
    assert_eq!(*guarded.attribute("name"), Value::from("a"));
    assert!(guarded.attribute("hostname").is_null());
    assert_eq!(*guarded.attribute("label"), Value::from("known early"));
}

#[test]
fn a_refinement_may_keep_what_means_the_same() {
    let config = config(&[("name", "a".into()), ("hostname", "H".into())]);
    let mut prior = prior();
    prior.set_attribute("hostname", "h".into());
    let planned = plan(&config, &prior);
    let mut refined = planned.clone();
    refined.set_attribute("hostname", "h".into());
    assert_eq!(guarded(&schema(), &config, &prior, &refined, &planned), refined);
    // What is not known yet may come out as anything.
    let mut unknown = config.clone();
    unknown.set_attribute("hostname", Value::Unknown);
    let open = plan(&unknown, &prior);
    assert!(*guarded(&schema(), &unknown, &prior, &refined, &open).attribute("hostname") == Value::Unknown);
    // A value that is new is the configuration's to say, and one that is configured is not dropped.
    refined.set_attribute("hostname", Value::Null);
    assert_eq!(guarded(&schema(), &config, &prior, &refined, &planned), planned);
}
