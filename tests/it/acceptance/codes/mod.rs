//! Every documented error of every endpoint: its attribute, its advice, and the ids for support. This file has those of
//! instances.

mod chat;
mod disks;
mod images;
mod lists;
mod unknown;

use std::collections::BTreeMap;

use damodel::sandbox::{Code, FaultAction, When};

use crate::support::terraform::{
    Diagnostic, Instance, Site, config, config_with, disk, each_workspace, refusal_of, unchecked,
};

/// A code, the attribute of its error, and a part of its advice.
type Row = (Code, Option<&'static str>, &'static str);

const ONCE: &str = "region = \"cn-east-1\"\nmax_retries = 0";

/// Arms each of these errors for one call of an endpoint.
fn arm(site: &Site, endpoint: &str, rows: &[Row]) {
    for (position, (code, ..)) in (1..).zip(rows) {
        site.arm(endpoint, When::Nth(position), FaultAction::Error { code_n: *code, processed: false });
    }
}

/// Checks that each code has one error with its attribute, its advice, and the ids of its request.
fn check(site: &Site, said: &[Diagnostic], rows: &[Row]) {
    let mut by_code = BTreeMap::new();
    for error in said.iter().filter(|diagnostic| diagnostic.is_error()) {
        let request = error.id("request_id").and_then(|id| site.request(&id));
        let request = request.unwrap_or_else(|| panic!("no request_id: {error:?}"));
        assert!(error.id("trace_id").is_some_and(|id| id.len() > 8), "{error:?}");
        assert!(error.detail.contains("injected by the sandbox"), "the service's own words: {error:?}");
        assert!(by_code.insert(request.code_n.unwrap(), error).is_none(), "{said:?}");
    }
    for (code, attribute, advice) in rows {
        let error = by_code.remove(&code.number()).unwrap_or_else(|| panic!("no error with {code:?}: {said:#?}"));
        assert_eq!(error.attribute.as_deref(), *attribute, "{error:?}");
        assert!(error.text().contains(advice), "{advice:?}: {error:?}");
        assert!(error.detail.contains(&format!("{} {}", code.number(), code.name())), "{error:?}");
    }
    assert!(by_code.is_empty(), "{by_code:?}");
}

#[test]
fn of_a_create() {
    let rows: [Row; 13] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::BalanceNotEnough, None, "provider's api_token"),
        (Code::PermissionDenied, None, "lacks this permission"),
        (Code::UserCanNotCreateInstance, None, "risk state"),
        (Code::ResourceInsufficient, Some("gpu_num"), "wait_for_capacity"),
        (Code::NoMatchNode, Some("gpu_num"), "wait_for_capacity"),
        (Code::SpecNotExistOrDisable, Some("spec_id"), "damodel_specs"),
        (Code::CreateInstanceFailedForNotCertified, None, "provider's api_token"),
        (Code::FailedForInvalidImage, Some("image_id"), "not ready"),
        (Code::CreateInstanceFailedCudaNotMatch, Some("image_id"), "highest_cuda"),
        (Code::MountCloudDiskFailed, Some("new_disks"), "mount path"),
        (Code::ExceededCloudDiskMaxCount, Some("new_disks"), "at most 8"),
        (Code::CreateCloudDiskError, Some("new_disks"), "specification and size"),
    ];
    each_workspace(|site, workspace| {
        let disks = "[{ size_gb = 20, spec_id = 31 }]";
        let machine = |number| Instance::new(&format!("x{number}")).set("new_disks", disks).to_string();
        workspace.write(&config_with(ONCE, (0..rows.len()).map(machine).collect::<String>()));
        arm(site, "instance_create", &rows);
        let (done, said) = workspace.try_apply(&["-parallelism=20"]);
        assert!(!done && workspace.state().addresses().is_empty());
        assert_eq!(site.balance().created, 0);
        check(site, &said, &rows);
    });
}

#[test]
fn of_a_create_whose_outcome_is_not_known() {
    each_workspace(|site, workspace| {
        workspace.write(&config_with(ONCE, Instance::new("x").block("timeouts { create = \"3s\" }")));
        site.arm(
            "instance_create",
            When::Next(1),
            FaultAction::Error { code_n: Code::InternalError, processed: false },
        );
        let (done, said) = workspace.try_apply(&[]);
        let error = said.iter().find(|diagnostic| diagnostic.is_error()).unwrap();
        assert!(!done);
        for word in ["unknown", "x-", "damodel-pending", "100014", "request_id", "trace_id"] {
            assert!(error.text().contains(word), "{word}: {error:?}");
        }
        assert_eq!((site.balance().created, site.requests("instance_create")), (0, 1), "sent once");
        assert!(workspace.state().addresses().is_empty());
    });
}

#[test]
fn of_a_release() {
    let rows: [Row; 4] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::InternalError, None, "Try again later"),
        (Code::InstanceNotExistOrNoPrivilege, None, "another account"),
        (Code::PermissionDenied, None, "sub-account"),
    ];
    each_workspace(|site, workspace| {
        let machines: String = (0..rows.len()).map(|number| Instance::new(&format!("x{number}")).to_string()).collect();
        workspace.apply_ok(&config_with(ONCE, machines));
        arm(site, "instance_release", &rows);
        let (done, said) = workspace.try_apply(&["-destroy"]);
        assert!(!done);
        check(site, &said, &rows);
        assert_eq!((workspace.state().addresses().len(), site.live().len()), (rows.len(), rows.len()));
        // Refused twice, because a status that allows a release may be new.
        let action = FaultAction::Error { code_n: Code::InstanceCanNotBeReleased, processed: false };
        site.arm("instance_release", When::Always, action);
        let (done, said) = workspace.try_apply(&["-destroy", "-target=damodel_instance.x0"]);
        assert!(!done);
        check(site, &said, &[(Code::InstanceCanNotBeReleased, None, "billed by the hour until it is released")]);
        site.sandbox().clear_faults();
        workspace.finish();
    });
}

#[test]
fn of_a_release_that_was_accepted_before_its_end_is_waited_for() {
    each_workspace(|site, workspace| {
        let brief = Instance::new("x").block("timeouts { delete = \"2s\" }");
        workspace.apply_ok(&config_with(ONCE, &brief));
        let released = FaultAction::Error { code_n: Code::InstanceNotExistOrAlreadyReleased, processed: false };
        site.arm("instance_release", When::Next(1), released);
        let (done, said) = workspace.try_apply(&["-destroy"]);
        let error = said.iter().find(|diagnostic| diagnostic.is_error()).unwrap();
        assert!(
            !done && error.text().contains("is not released yet") && error.text().contains("last seen Running"),
            "{error:?}"
        );
        assert_eq!((workspace.state().addresses().len(), site.live().len()), (1, 1), "it is never taken for gone");

        // The answer of the first request is lost, and the second is refused.
        workspace.apply_ok(&config(Instance::new("x")));
        site.arm("instance_release", When::Next(1), FaultAction::DropAfter);
        workspace.finish();
        assert_eq!(site.balance().released, 1);
    });
}

#[test]
fn of_a_rename() {
    let rows: [Row; 4] = [
        (Code::InvalidParameter, Some("name"), "does not accept a value"),
        (Code::InternalError, Some("name"), "Try again later"),
        (Code::InstanceNotExistOrNoPrivilege, Some("name"), "another account"),
        (Code::PermissionDenied, Some("name"), "sub-account"),
    ];
    each_workspace(|site, workspace| {
        let machines = |suffix: &str| {
            let machine = |number| Instance::new(&format!("x{number}")).text("name", &format!("x{number}{suffix}"));
            config_with(ONCE, (0..rows.len()).map(|number| machine(number).to_string()).collect::<String>())
        };
        workspace.apply_ok(&machines(""));
        workspace.write(&machines("-new"));
        arm(site, "instance_rename", &rows);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        check(site, &said, &rows);
        assert_eq!(workspace.state().resource("damodel_instance.x0").value("name"), "x0");
        workspace.apply_ok(&machines("-new"));
        workspace.finish();
    });
}

#[test]
fn of_a_refresh() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&config_with(ONCE, format!("{}{}", Instance::new("x"), disk("x"))));
        for (code, of_instance, of_disk) in [
            (Code::InternalError, "Try again later", "Try again later"),
            (Code::PermissionDenied, "sub-account", "lacks this permission"),
            (Code::InvalidParameter, "The state is unchanged", "The state is unchanged"),
        ] {
            for endpoint in ["instance_list", "instance_detail", "cloud_disk_list"] {
                site.arm(endpoint, When::Always, FaultAction::Error { code_n: code, processed: false });
            }
            let said = workspace.try_plan(&[]);
            for (address, advice) in [("damodel_instance.x", of_instance), ("damodel_cloud_disk.x", of_disk)] {
                let error = refusal_of(&said, address, &[advice]).clone();
                check(site, &[error], &[(code, None, advice)]);
            }
            site.sandbox().clear_faults();
        }
        // A detail that contradicts the list proves nothing.
        let unknown = FaultAction::Error { code_n: Code::InstanceNotExistOrNoPrivilege, processed: false };
        site.arm("instance_detail", When::Always, unknown);
        let said = workspace.try_plan(&[]);
        let errors: Vec<_> = said.iter().filter(|diagnostic| diagnostic.is_error()).collect();
        assert_eq!(errors.len(), 1, "{said:?}");
        assert!(errors[0].text().contains("The state is unchanged"), "{said:?}");
        site.sandbox().clear_faults();
        workspace.settled();
        workspace.finish();
    });
}

#[test]
fn an_invalid_parameter_lands_on_the_argument_that_the_service_names() {
    each_workspace(|_, workspace| {
        let long = format!("{:?}", "x".repeat(150));
        let cases = [
            ("gpu_num", "9"),
            ("data_disk_expand_size_gb", "100000"),
            ("region", "\"cn-south-9\""),
            ("name", &long),
            ("new_disks", "[{ size_gb = 20, spec_id = 77 }]"),
        ];
        let of_disks = [("name", &*long), ("size_gb", "4001"), ("spec_id", "77")];
        let machines = cases.map(|(attribute, value)| Instance::new(attribute).set(attribute, value).to_string());
        let disks = of_disks.map(|(attribute, value)| disks::disk(attribute, &[(attribute, value)]));
        workspace.write(&unchecked(machines.concat() + &disks.concat()));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        let of_disks = of_disks.map(|(attribute, _)| ("damodel_cloud_disk", attribute));
        for (kind, attribute) in cases.map(|(attribute, _)| ("damodel_instance", attribute)).into_iter().chain(of_disks)
        {
            let error = refusal_of(&said, &format!("{kind}.{attribute}"), &["100002 InvalidParameter"]);
            assert_eq!(error.attribute.as_deref(), Some(attribute), "{said:?}");
        }
    });
}
