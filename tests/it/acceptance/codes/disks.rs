//! Errors of the cloud disk endpoints.

use std::time::Duration;

use damodel::sandbox::{Code, LedgerObject, Options, StateList};
use serde_json::json;

use super::{ONCE, Row, arm, check};
use crate::support::terraform::{Site, config_with, each_workspace, each_workspace_on, refusal, refusal_of, unchecked};

/// A disk for each of the rows, with these arguments changed.
fn disks(rows: &[Row], arguments: &[(&str, &str)]) -> String {
    (0..rows.len()).map(|number| disk(&format!("x{number}"), arguments)).collect()
}

fn disk(label: &str, arguments: &[(&str, &str)]) -> String {
    let name = format!("{label:?}");
    let usual = [("name", name.as_str()), ("size_gb", "20"), ("spec_id", "31")];
    let kept = usual.iter().filter(|(name, _)| arguments.iter().all(|(other, _)| other != name));
    let lines: String = kept.chain(arguments).map(|(name, value)| format!("  {name} = {value}\n")).collect();
    format!("resource \"damodel_cloud_disk\" {label:?} {{\n{lines}}}\n")
}

#[test]
fn of_a_create() {
    let rows: [Row; 5] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::InvalidToken, None, "provider's api_token"),
        (Code::BalanceNotEnough, None, "provider's api_token"),
        (Code::PermissionDenied, None, "lacks this permission"),
        (Code::CreateCloudDiskError, Some("spec_id"), "specification and size"),
    ];
    each_workspace(|site, workspace| {
        let created = site.balance_of(LedgerObject::CloudDisk).created;
        workspace.write(&config_with(ONCE, disks(&rows, &[])));
        arm(site, "cloud_disk_create", &rows);
        let (done, said) = workspace.try_apply(&["-parallelism=20"]);
        assert!(!done && workspace.state().addresses().is_empty());
        assert_eq!(site.balance_of(LedgerObject::CloudDisk).created, created);
        check(site, &said, &rows);
    });
}

#[test]
fn of_a_change() {
    let codes = [Code::InvalidParameter, Code::InvalidToken, Code::PermissionDenied, Code::InternalError];
    let advice = ["does not accept a value", "provider's api_token", "lacks this permission", "Try again later"];
    each_workspace(|site, workspace| {
        let changes = [("cloud_disk_rename", "name", "\"other\""), ("cloud_disk_resize", "size_gb", "30")];
        let rows = |attribute: Option<&'static str>| -> Vec<Row> {
            codes.into_iter().zip(advice).map(|(code, advice)| (code, attribute, advice)).collect()
        };
        workspace.apply_ok(&config_with(ONCE, disks(&rows(None), &[])));
        for (endpoint, attribute, value) in changes {
            let rows = rows(Some(attribute));
            workspace.write(&config_with(ONCE, disks(&rows, &[(attribute, value)])));
            arm(site, endpoint, &rows);
            let (done, said) = workspace.try_apply(&[]);
            assert!(!done);
            check(site, &said, &rows);
            site.sandbox().clear_faults();
        }
        let state = workspace.state();
        let disk = state.resource("damodel_cloud_disk.x0");
        assert_eq!((disk.value("name"), disk.value("size_gb")), (&"x0".into(), &20.into()), "what was reached");
        workspace.finish();
    });
}

#[test]
fn of_a_release() {
    let rows: [Row; 4] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::InvalidToken, None, "provider's api_token"),
        (Code::PermissionDenied, None, "lacks this permission"),
        (Code::InternalError, None, "Try again later"),
    ];
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config_with(ONCE, disks(&rows, &[])));
        arm(site, "cloud_disk_release", &rows);
        let (done, said) = workspace.try_apply(&["-destroy"]);
        assert!(!done);
        check(site, &said, &rows);
        assert_eq!(workspace.state().addresses().len(), rows.len());
        workspace.finish();
    });
}

#[test]
fn an_invalid_parameter_lands_on_the_argument_that_the_service_names() {
    each_workspace(|_, workspace| {
        let long = format!("{:?}", "x".repeat(150));
        let cases = [("name", &*long), ("size_gb", "4001"), ("spec_id", "77")];
        workspace.write(&unchecked(cases.map(|(name, value)| disk(name, &[(name, value)])).concat()));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        for (attribute, _) in cases {
            let error = refusal_of(&said, &format!("damodel_cloud_disk.{attribute}"), &["100002 InvalidParameter"]);
            assert_eq!(error.attribute.as_deref(), Some(attribute), "{error:?}");
        }
    });
}

/// Errors of the service itself, without a fault.
#[test]
fn of_an_account_in_arrears_and_a_specification_that_is_sold_out() {
    each_workspace_on(&Options { disk_change: Duration::from_millis(100), ..Site::options() }, |site, workspace| {
        workspace.write(&config_with(ONCE, disk("x", &[])));
        let balance = |balance: f64| site.set(StateList::Accounts, "main", &json!({ "balance": balance }));
        balance(0.0);
        refusal(&workspace.try_apply(&[]).1, &["100038 BalanceNotEnough", "Top up", "Nothing was created"]);
        balance(100.0);
        let sold_out = |sold_out: bool| site.set(StateList::DiskSpecs, 31, &json!({ "sold_out": sold_out }));
        sold_out(true);
        let (_, said) = workspace.try_apply(&[]);
        let error = refusal(&said, &["180009 CreateCloudDiskError", "Nothing was created"]);
        assert_eq!(error.attribute.as_deref(), Some("spec_id"));
        sold_out(false);
        let (done, said) = workspace.try_apply(&[]);
        assert!(done, "{said:?}");
        workspace.finish();
    });
}
