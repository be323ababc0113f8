//! Errors of the private image endpoints.

use damodel::sandbox::{Code, FaultAction, Form, LedgerObject, When};

use super::{ONCE, Row, arm, check};
use crate::support::terraform::{Instance, Severity, config_with, each_workspace, refusal, says, unchecked};

const BUILDER: &str = "damodel_instance.builder";

/// A builder, and an image of it for each of the rows.
fn images(rows: &[Row], suffix: &str) -> String {
    let image = |number: usize| image(&format!("x{number}"), &format!("x{number}{suffix}"), &format!("{BUILDER}.id"));
    format!("{}{}", Instance::new("builder"), (0..rows.len()).map(image).collect::<String>())
}

/// An image with short timeouts.
fn image(label: &str, name: &str, instance: &str) -> String {
    format!(
        "resource \"damodel_private_image\" {label:?} {{\n  instance_id = {instance}\n  name = {name:?}\n  timeouts \
         {{\n    create = \"1s\"\n    delete = \"1s\"\n  }}\n}}\n"
    )
}

#[test]
fn of_a_save() {
    let rows: [Row; 6] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::InvalidToken, None, "provider's api_token"),
        (Code::BalanceNotEnough, None, "provider's api_token"),
        (Code::ImageNameExisted, Some("name"), "unique"),
        (Code::ImageSaveCountExceeded, Some("instance_id"), "tomorrow"),
        (Code::InstanceNotExistOrNoPrivilege, Some("instance_id"), "another account"),
    ];
    each_workspace(|site, workspace| {
        let created = site.balance_of(LedgerObject::PrivateImage).created;
        workspace.write(&config_with(ONCE, images(&rows, "")));
        arm(site, "image_save", &rows);
        let (done, said) = workspace.try_apply(&["-parallelism=20"]);
        assert!(!done && workspace.state().addresses() == [BUILDER]);
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).created, created);
        check(site, &said, &rows);
        workspace.finish();
    });
}

/// A `database_id` looks like an id, and only the apply knows its value.
#[test]
fn of_a_database_id_in_place_of_the_uid() {
    each_workspace(|_, workspace| {
        let wrong = format!("{BUILDER}.database_id");
        let server =
            format!("resource \"damodel_llama_server\" \"x\" {{\n  instance_id = {wrong}\n  model = \"/m.gguf\"\n}}\n");
        workspace.write(&config_with(ONCE, format!("{}{server}{}", Instance::new("builder"), image("x", "x", &wrong))));
        let (done, said) = workspace.try_apply(&[]);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
        assert!(!done && errors.len() == 2, "{said:?}");
        for error in errors {
            assert_eq!(error.attribute.as_deref(), Some("instance_id"));
            assert!(error.text().contains("its id, not its database_id"), "{error:?}");
        }
        assert!(says(&workspace.try_plan(&[]), Severity::Error, "its id, not its database_id"));
        workspace.write(&config_with(ONCE, Instance::new("builder")));
        workspace.finish();
    });
}

/// The image of a replacement is deleted first.
#[test]
fn a_replacement_for_an_instance_that_does_not_exist_ends_nothing() {
    each_workspace(|site, workspace| {
        let config = |id: &str| {
            let image = image("x", "x", id).replace("1s", "60s");
            config_with(ONCE, format!("{}{image}", Instance::new("builder")))
        };
        let right = format!("{BUILDER}.id");
        workspace.apply_ok(&config(&right));
        let images = site.balance_of(LedgerObject::PrivateImage);
        workspace.write(&config("\"ins-nowhere\""));
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done, "{said:#?}");
        refusal(&said, &["ins-nowhere", "was not deleted", "terraform destroy -refresh=false"]);
        assert_eq!(site.balance_of(LedgerObject::PrivateImage), images);
        workspace.write(&config("\"5017\""));
        refusal(&workspace.try_plan(&[]), &["its id, not its database_id"]);
        workspace.apply_ok(&config(&right));
        workspace.finish();
    });
}

#[test]
fn of_a_service_that_stays_busy_or_does_not_know() {
    each_workspace(|site, workspace| {
        let created = site.balance_of(LedgerObject::PrivateImage).created;
        workspace.write(&config_with(ONCE, images(&[(Code::ImageUploading, None, "")], "")));
        for (code, words) in
            [(Code::ImageUploading, "when the other image is ready"), (Code::ImageSaveBusy, "Apply again later")]
        {
            site.arm("image_save", When::Always, FaultAction::Error { code_n: code, processed: false });
            let (done, said) = workspace.try_apply(&[]);
            assert!(!done);
            check(site, &said, &[(code, Some("instance_id"), words)]);
            site.sandbox().clear_faults();
        }
        site.arm("image_save", When::Next(1), FaultAction::Error { code_n: Code::InternalError, processed: false });
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        refusal(&said, &["unknown", "x0", "damodel-pending", "100014", "request_id", "trace_id"]);
        assert_eq!(site.balance_of(LedgerObject::PrivateImage).created, created);
    });
}

#[test]
fn of_a_rename() {
    let rows: [Row; 6] = [
        (Code::InvalidParameter, Some("name"), "does not accept a value"),
        (Code::InvalidToken, Some("name"), "provider's api_token"),
        (Code::ImageNameExisted, Some("name"), "unique"),
        (Code::ImageNoPrivilege, Some("name"), "provider's api_token"),
        (Code::ImageNotFound, Some("name"), "provider's api_token"),
        (Code::InternalError, Some("name"), "Try again later"),
    ];
    each_workspace(|site, workspace| {
        let long = |config: String| config.replace("\"1s\"", "\"1m\"");
        workspace.apply_ok(&long(config_with(ONCE, images(&rows, ""))));
        workspace.write(&long(config_with(ONCE, images(&rows, "-new"))));
        arm(site, "image_rename", &rows);
        let (done, said) = workspace.try_apply(&[]);
        assert!(!done);
        check(site, &said, &rows);
        assert_eq!(workspace.state().resource("damodel_private_image.x0").value("name"), "x0");
        workspace.finish();
    });
}

#[test]
fn of_a_delete() {
    let rows: [Row; 5] = [
        (Code::InvalidParameter, None, "does not accept a value"),
        (Code::InvalidToken, None, "provider's api_token"),
        (Code::ImageNoPrivilege, None, "provider's api_token"),
        (Code::ImageNotFound, None, "provider's api_token"),
        (Code::InternalError, None, "Try again later"),
    ];
    each_workspace(|site, workspace| {
        let made = images(&rows, "").replace("create = \"1s\"", "create = \"1m\"");
        workspace.apply_ok(&config_with(ONCE, made));
        arm(site, "image_delete", &rows);
        let targets: Vec<String> =
            (0..rows.len()).map(|number| format!("-target=damodel_private_image.x{number}")).collect();
        let mut arguments = vec!["-destroy"];
        arguments.extend(targets.iter().map(String::as_str));
        let (done, said) = workspace.try_apply(&arguments);
        assert!(!done);
        check(site, &said, &rows);
        assert_eq!(workspace.state().addresses().len(), rows.len() + 1);
        // An image that stays in use is an error after the timeout.
        site.sandbox().clear_faults();
        site.arm(
            "image_delete",
            When::Always,
            FaultAction::Error { code_n: Code::ImageUsedByInstance, processed: false },
        );
        let (done, said) = workspace.try_apply(&["-destroy", "-target=damodel_private_image.x0"]);
        assert!(!done);
        check(site, &said, &[(Code::ImageUsedByInstance, None, "when that instance is Running")]);
        site.sandbox().clear_faults();
        workspace.finish();
    });
}

#[test]
fn what_another_account_forbids_is_told() {
    each_workspace(|site, workspace| {
        let long = |name: &str| {
            unchecked(format!("{}{}", Instance::new("builder"), image("x", name, &format!("{BUILDER}.id"))))
                .replace("\"1s\"", "\"1m\"")
        };
        workspace.apply_ok(&long("one"));
        workspace.write(&long("two"));
        workspace.set_env("DAMODEL_API_TOKEN", &site.token_of("other"));
        for (form, code) in [(Form::default(), "130006"), ("foreign_images_forbidden".parse().unwrap(), "130004")] {
            site.sandbox().set_form(form);
            let (done, said) = workspace.try_apply(&["-refresh=false", "-target=damodel_private_image.x"]);
            assert!(!done);
            let error = refusal(&said, &[code, "provider's api_token", "keeps the old name"]);
            assert_eq!(error.attribute.as_deref(), Some("name"));
        }
        workspace.set_env("DAMODEL_API_TOKEN", site.token());
        workspace.finish();
    });
}
