//! Mistakes of a first configuration: a wrong address, a wrong token.

use rstest::rstest;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli, refusal};

#[rstest]
#[case::refused(|_: &Site| "http://127.0.0.1:1".to_owned())]
#[case::unknown_name(|_: &Site| "https://damodel.invalid".to_owned())]
#[case::no_tls(|site: &Site| site.base_url().replace("http://", "https://"))]
fn a_wrong_address_is_an_error_of_the_plan_that_names_it(#[case] address: fn(&Site) -> String) {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        let address = address(&site);
        workspace.set_env("DAMODEL_BASE_URL", &address);
        refusal(&workspace.try_plan(&[]), &["cannot be reached", &address, "DAMODEL_BASE_URL"]);
    });
}

#[test]
fn a_wrong_token_is_an_error_of_the_plan_that_names_its_variable() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        workspace.set_env("DAMODEL_API_TOKEN", "not-the-token");
        refusal(&workspace.try_plan(&[]), &["API token", "DAMODEL_API_TOKEN", "request_id"]);
    });
}
