//! Errors of all lists, in the data sources.

use damodel::sandbox::{Code, FaultAction, When};

use crate::support::terraform::{config_with, each_workspace, refusal_of};

use super::ONCE;

/// Every data source that lists or reads, each with an argument that is sent to the service, if there is one.
const SOURCES: &str = r#"
data "damodel_instances" "x" { query = "a" }
data "damodel_instance" "x" { id = "ins-a" }
data "damodel_cloud_disks" "x" { name_or_uid = "a" }
data "damodel_cloud_disk" "x" { name = "datasets" }
data "damodel_cloud_disk_specs" "x" { spec_alias = "a" }
data "damodel_public_images" "x" { label = "a" }
data "damodel_public_image" "x" { id = "902" }
data "damodel_private_images" "x" {}
data "damodel_private_image" "x" { name = "trained-model" }
data "damodel_specs" "x" { region = "cn-east-1" }
data "damodel_spec" "x" { region = "cn-north-2" }
"#;

#[test]
fn each_is_told_with_what_to_do() {
    let codes = [
        (Code::InvalidParameter, "does not accept"),
        (Code::InvalidToken, "provider's api_token"),
        (Code::InternalError, "Try again later"),
        (Code::PermissionDenied, "lacks this permission"),
        (Code::InstanceNotExistOrNoPrivilege, "another account"),
    ];
    each_workspace(|site, workspace| {
        workspace.write(&config_with(ONCE, SOURCES.replace("{ ", "{\n").replace(" }", "\n}")));
        for (code, advice) in codes {
            site.arm("*", When::Always, FaultAction::Error { code_n: code, processed: false });
            let said = workspace.try_plan(&[]);
            for line in SOURCES.lines().filter(|line| !line.is_empty()) {
                let source = line.split('"').nth(1).unwrap();
                let error = refusal_of(&said, &format!("data.{source}.x"), &[advice]);
                let request = error.id("request_id").and_then(|id| site.request(&id));
                assert_eq!(request.unwrap().code_n, Some(code.number()), "{error:?}");
                assert!(error.id("trace_id").is_some_and(|id| id.len() > 8), "{error:?}");
                let named = format!("{} {}", code.number(), code.name());
                assert!(error.detail.contains(&named), "{error:?}");
                let is_region = code == Code::InvalidParameter && source.starts_with("damodel_spec");
                assert_eq!(error.attribute.as_deref(), is_region.then_some("region"), "{error:?}");
            }
            assert_eq!(said.iter().filter(|said| said.is_error()).count(), 11, "{said:?}");
            site.sandbox().clear_faults();
        }
    });
}
