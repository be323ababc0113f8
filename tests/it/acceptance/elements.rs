//! Lists whose elements are unknown or null.

use serde_json::json;

use crate::support::terraform::{Diagnostic, Instance, config, config_with, each_workspace, refusal, refusal_of};

const X: &str = "damodel_instance.x";

/// Every list of a configuration, with elements that are known after an apply.
fn machine() -> String {
    let place = "terraform_data.later.output";
    let instance = Instance::new("x")
        .set("exist_disks", format!("[{{ disk_id = 801 }}, {place}.existing]"))
        .set("new_disks", format!("[{place}.scratch]"))
        .set("object_mounts", format!("[jsonencode({{ bucket = {place}.bucket }}), {place}.mount]"));
    format!(
        "{instance}data \"damodel_cloud_disks\" \"x\" {{\n  storage_classes = [\"RBD\", {place}.class]\n}}\n\
         data \"damodel_cloud_disk_specs\" \"x\" {{\n  storage_classes = [{place}.class]\n}}\n"
    )
}

/// The values of the elements.
const ELEMENTS: &str = "{\n  existing = { disk_id = 802, mount_path = \"/data/all\" }\n  scratch = { size_gb = 20, \
                        spec_id = 31 }\n  bucket = \"b\"\n  mount = \"{\\\"bucket\\\":\\\"c\\\"}\"\n  class = \"FS\"\n\
                        }";

#[test]
fn elements_may_come_from_what_an_apply_makes() {
    each_workspace(|site, workspace| {
        workspace.remove_env("DAMODEL_API_TOKEN");
        let variable = format!("variable \"token\" {{\n  type = string\n  default = {:?}\n}}\n", site.token());
        let provider = "region = \"cn-east-1\"\napi_token_command = [\"printf\", \"%s\", var.token]";
        let later = format!("resource \"terraform_data\" \"later\" {{\n  input = {ELEMENTS}\n}}\n");
        workspace.apply_ok(&config_with(provider, format!("{variable}{later}{}", machine())));
        let state = workspace.state();
        let instance = state.resource(X);
        assert_eq!(instance.value("exist_disks")[1]["disk_id"], 802);
        assert_eq!(instance.value("new_disks")[0]["size_gb"], 20);
        let sent = site.sandbox().state()["instances"][0]["object_mounts"].clone();
        assert_eq!(sent, json!([{ "bucket": "b" }, { "bucket": "c" }]));
        workspace.finish();
    });
}

#[test]
fn an_element_that_is_null_is_told_at_its_list() {
    let lists = [
        ("exist_disks", "[{ disk_id = 801 }, var.on ? { disk_id = 802 } : null]", 1),
        ("new_disks", "[var.on ? { size_gb = 20, spec_id = 31 } : null]", 0),
        ("object_mounts", "[\"{}\", null]", 1),
    ];
    each_workspace(|site, workspace| {
        let validated = || Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout);
        let instances = lists.map(|(name, list, _)| Instance::new(name).set(name, list).to_string());
        let variable = "variable \"on\" {\n  type = bool\n  default = false\n}\n";
        // In `validate` a variable is unknown, and may be valid.
        workspace.write(&config(format!("{variable}{}", instances[..2].concat())));
        assert!(!validated().iter().any(Diagnostic::is_error), "{:?}", validated());
        let said = workspace.try_plan(&[]);
        let expect = |said: &[Diagnostic], (attribute, index): (&str, usize)| {
            let words = format!("{attribute}[{index}] is null");
            let error = refusal_of(said, &format!("damodel_instance.{attribute}"), &[&words]);
            assert_eq!(error.attribute.as_deref(), Some(attribute), "{error:?}");
        };
        expect(&said, ("exist_disks", 1));
        expect(&said, ("new_disks", 0));
        let disks = "data \"damodel_cloud_disks\" \"x\" {\n  storage_classes = [null]\n}\n";
        workspace.write(&config(format!("{}{disks}", instances[2])));
        let said = validated();
        expect(&said, ("object_mounts", 1));
        let error = refusal_of(&said, "data.damodel_cloud_disks.x", &["storage_classes[0] is null"]);
        assert_eq!(error.attribute.as_deref(), Some("storage_classes"), "{error:?}");
        let provider = "region = \"cn-east-1\"\napi_token_command = [\"printf\", null]";
        workspace.write(&config_with(provider, "data \"damodel_public_images\" \"all\" {}"));
        refusal(&workspace.try_plan(&[]), &["api_token_command[1] is null"]);
        assert_eq!(site.changes(), 0);
    });
}
