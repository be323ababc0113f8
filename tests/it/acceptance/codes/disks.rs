//! Errors of the cloud disk endpoints.

use damodel::sandbox::{Code, LedgerObject};

use super::{ONCE, Row, arm, check};
use crate::support::terraform::{config_with, each_workspace};

/// A disk for each of the rows, with these arguments changed.
fn disks(rows: &[Row], arguments: &[(&str, &str)]) -> String {
    (0..rows.len()).map(|number| disk(&format!("x{number}"), arguments)).collect()
}

pub(super) fn disk(label: &str, arguments: &[(&str, &str)]) -> String {
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
