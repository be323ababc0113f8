//! Mistakes of a first configuration, and of the first commands.

use std::fs;

use rstest::rstest;

use crate::support::terraform::{Instance, Site, config, config_with, each_workspace, refusal};

#[rstest]
#[case::refused(|_: &Site| "http://127.0.0.1:1".to_owned(), &["127.0.0.1:1 cannot be reached", "NO_PROXY"])]
#[case::unknown_name(|_: &Site| "https://damodel.invalid".to_owned(), &["cannot resolve damodel.invalid", "base_url"])]
#[case::no_tls(|site: &Site| site.base_url().replace("http://", "https://"), &["no TLS connection", "ca_certificate_file"])]
fn a_wrong_address_is_an_error_of_the_plan_that_names_it(#[case] address: fn(&Site) -> String, #[case] words: &[&str]) {
    each_workspace(|site, workspace| {
        workspace.write(&config(Instance::new("x")));
        let address = address(site);
        workspace.set_env("DAMODEL_BASE_URL", &address);
        refusal(&workspace.try_plan(&[]), &[words, &[&address, "DAMODEL_BASE_URL"]].concat());
    });
}

#[test]
fn a_certificate_file_that_is_no_pem_is_an_error_of_its_argument() {
    each_workspace(|_, workspace| {
        fs::write(workspace.directory().join("gateway.crt"), [0x30, 0x82, 1, 2]).unwrap();
        let provider = "region = \"cn-east-1\"\nca_certificate_file = \"gateway.crt\"";
        workspace.write(&config_with(provider, Instance::new("x")));
        let said = workspace.try_plan(&[]);
        let error = refusal(&said, &["Not a PEM file", "gateway.crt", "-----BEGIN CERTIFICATE-----"]);
        assert_eq!(error.attribute.as_deref(), Some("ca_certificate_file"));
    });
}

#[test]
fn an_unknown_region_of_a_data_source_names_those_in_use() {
    each_workspace(|_, workspace| {
        for source in ["damodel_spec", "damodel_specs"] {
            workspace.write(&config(format!("data {source:?} \"x\" {{\n  region = \"mars\"\n}}\n")));
            let words = ["Region \"mars\" has no specifications", "this account's instances and images: cn-"];
            refusal(&workspace.try_plan(&[]), &words);
        }
    });
}

#[test]
fn a_wrong_token_is_an_error_of_the_plan_that_names_its_variable() {
    each_workspace(|_, workspace| {
        workspace.write(&config(Instance::new("x")));
        workspace.set_env("DAMODEL_API_TOKEN", "not-the-token");
        refusal(&workspace.try_plan(&[]), &["API token", "DAMODEL_API_TOKEN", "request_id"]);
    });
}

/// Two instances and a disk, each of which has several checks.
fn several() -> String {
    let disk = "resource \"damodel_cloud_disk\" \"x\" {\n  name = \"x\"\n  size_gb = 20\n  spec_id = 31\n}\n";
    config(format!("{}{}{disk}", Instance::new("x"), Instance::new("y")))
}

#[test]
fn a_missing_token_is_one_error_for_the_provider() {
    each_workspace(|_, workspace| {
        workspace.write(&several());
        workspace.remove_env("DAMODEL_API_TOKEN");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(&said, &["Provider damodel: the API token is not set", "DAMODEL_API_TOKEN", "api_token_command"]);
        workspace.remove_env("DAMODEL_BASE_URL");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(
            &said,
            &["Provider damodel: the service's address is not set", "DAMODEL_BASE_URL", "DAMODEL_API_TOKEN"],
        );
    });
}

#[test]
fn a_refresh_without_a_token_is_one_error_and_keeps_the_state() {
    each_workspace(|site, workspace| {
        workspace.apply_ok(&several());
        workspace.remove_env("DAMODEL_API_TOKEN");
        let said = workspace.try_plan(&[]);
        assert_eq!(said.len(), 1, "{said:#?}");
        refusal(&said, &["Provider damodel: the API token is not set", "The state is unchanged"]);
        workspace.set_env("DAMODEL_API_TOKEN", site.token());
        workspace.settled();
        workspace.finish();
    });
}
