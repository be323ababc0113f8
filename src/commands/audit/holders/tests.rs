//! Who holds an object: states, pending records, nobody.

use serde_json::{Value, json};

use super::*;

fn instance(id: &str) -> Billed {
    Billed {
        kind: Kind::Instance,
        id: id.to_owned(),
        name: Some(format!("name of {id}")),
        region: Some("r".to_owned()),
        status: Some("Running".to_owned()),
        since: Some(1_000),
        order: Some(super::super::account::Order { payment_type: "Daily".to_owned(), spec_id: 1, gpu_num: 2 }),
    }
}

fn other(kind: Kind, id: &str) -> Billed {
    Billed { kind, region: None, since: None, order: None, ..instance(id) }
}

fn account(billed: Vec<Billed>) -> Account {
    let spec = serde_json::from_value(json!({"spec_id": 1, "daily_price": 12, "daily_data_disk_price": 0.24})).unwrap();
    let listed = billed.iter().map(|billed| (billed.kind, billed.id.clone())).collect();
    Account { billed, listed, specs: BTreeMap::from([(("r".to_owned(), 1), spec)]) }
}

fn state(source: &str, held: &[(Kind, &str)]) -> State {
    let held = held.iter().map(|(kind, id)| Held {
        kind: *kind,
        id: (*id).to_owned(),
        address: format!("{}.a[{id:?}]", kind.type_name()),
        extra_disk: 100,
        is_part: false,
    });
    State { source: source.to_owned(), held: held.collect() }
}

fn audit(account: &Account, states: &[State], notes: &[Note]) -> Result<Audit, String> {
    Audit::new(account, states, notes, 4_600).map_err(|error| error.to_string())
}

#[test]
fn the_form_for_programs_is_a_contract() {
    let account = account(vec![instance("ins-1"), instance("ins-2"), other(Kind::CloudDisk, "7")]);
    let note = Note { kind: Kind::CloudDisk, id: None, marker: "name of 7".to_owned(), source: "notes".to_owned() };
    let held = state("prod.tfstate", &[(Kind::Instance, "ins-1"), (Kind::Instance, "ins-gone")]);
    let audit = audit(&account, &[held], &[note]).unwrap();
    let json: Value = serde_json::from_str(&audit.to_json().unwrap()).unwrap();
    let object = |kind: &str, id: &str, holder: &str| {
        json!({"kind": kind, "id": id, "name": format!("name of {id}"), "region": null, "status": "Running", "age_seconds": null,
            "hourly": null, "monthly": null, "holder": holder, "source": null, "address": null})
    };
    let mut first = object("instance", "ins-1", "state");
    first["source"] = "prod.tfstate".into();
    first["address"] = "damodel_instance.a[\"ins-1\"]".into();
    let mut second = object("instance", "ins-2", "nobody");
    for (object, hourly, monthly) in [(&mut first, 2.0, 1460.0), (&mut second, 1.0, 730.0)] {
        object["region"] = "r".into();
        object["age_seconds"] = 3_600.into();
        object["hourly"] = hourly.into();
        object["monthly"] = monthly.into();
    }
    let mut third = object("cloud_disk", "7", "pending");
    third["source"] = "notes".into();
    let as_floats = |value: &Value| -> Value { serde_json::from_str(&value.to_string().replace(".0", "")).unwrap() };
    assert_eq!(json["format_version"], "1.0");
    assert_eq!(json["objects"], as_floats(&json!([first, second, third])));
    let missing = json!([{"kind": "instance", "id": "ins-gone", "address": "damodel_instance.a[\"ins-gone\"]", "source": "prod.tfstate"}]);
    assert_eq!((&json["missing"], json.as_object().unwrap().len()), (&missing, 3));
}

#[test]
fn what_does_not_belong_together_is_no_all_clear() {
    let mut released = account(vec![instance("ins-1")]);
    let held = |id: &str| [state("prod", &[(Kind::Instance, id)])];
    assert!(
        audit(&released, &held("ins-9"), &[])
            .unwrap_err()
            .starts_with("none of the 1 objects of prod is in the account")
    );
    let disk = [state("prod", &[(Kind::CloudDisk, "7"), (Kind::Instance, "ins-1")])];
    let error = audit(&released, &disk, &[]).unwrap_err();
    assert!(error.starts_with("the account has no cloud disk at all, but prod holds damodel_cloud_disk.a"), "{error}");
    // What is released is proof that it is this account.
    released.billed.clear();
    let found = audit(&released, &held("ins-1"), &[]).unwrap();
    assert_eq!((found.objects.len(), found.missing.len()), (0, 1));
    assert!(audit(&released, &[state("empty", &[])], &[]).is_ok());
}

#[test]
fn an_object_in_two_states_is_told() {
    let account = account(vec![instance("ins-1")]);
    let held = [(Kind::Instance, "ins-1")];
    let audit = audit(&account, &[state("a", &held), state("b", &held)], &[]).unwrap();
    assert_eq!((audit.objects.len(), audit.objects[0].source.as_deref()), (1, Some("a")));
    let told: Vec<String> = super::super::tables::duplicates(&audit).collect();
    let address = "damodel_instance.a[\"ins-1\"]";
    assert_eq!(told, [format!("instance ins-1 is held more than once: {address} in a, {address} in b")]);
}

#[test]
fn what_is_young_is_left_out_and_what_has_no_age_is_not() {
    let mut young = instance("ins-2");
    young.since = Some(4_000);
    let account = account(vec![instance("ins-1"), young, other(Kind::CloudDisk, "7")]);
    let mut audit = audit(&account, &[], &[]).unwrap();
    audit.only_older_than(3_600);
    let ids: Vec<String> = audit.unmanaged().into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, ["ins-1", "7"]);
}

/// 10,000 objects of every kind, some of them in each of 20 states, 300 held by nobody: found exactly.
#[test]
fn orphans_are_found_among_ten_thousand() {
    let kinds = [Kind::Instance, Kind::CloudDisk, Kind::PrivateImage];
    let all: Vec<Billed> = (0..10_000)
        .map(|number| match kinds[number % 3] {
            Kind::Instance => instance(&format!("ins-{number}")),
            kind => other(kind, &number.to_string()),
        })
        .collect();
    let is_orphan = |number: usize| number % 32 == 7 && number < 32 * 300;
    let mut states: Vec<State> = (0..20).map(|number| state(&number.to_string(), &[])).collect();
    for (number, billed) in all.iter().enumerate().filter(|(number, _)| !is_orphan(*number)) {
        states[number % 20].held.extend(state("", &[(billed.kind, &billed.id)]).held);
    }
    let planted: BTreeSet<(Kind, String)> = all
        .iter()
        .enumerate()
        .filter(|(number, _)| is_orphan(*number))
        .map(|(_, billed)| (billed.kind, billed.id.clone()))
        .collect();
    assert_eq!(
        (planted.len(), kinds.iter().all(|kind| planted.iter().any(|(planted, _)| planted == kind))),
        (300, true)
    );
    let account = account(all);
    let audit = audit(&account, &states, &[]).unwrap();
    let (text, data) = (super::super::tables::plain(&audit), audit.to_json().unwrap());
    assert_eq!(audit.unmanaged(), planted);
    assert_eq!((audit.objects.len(), audit.missing.len()), (10_000, 0));
    assert!(text.lines().nth(1).unwrap().ends_with("nobody") && data.len() > 1_000_000);
}
