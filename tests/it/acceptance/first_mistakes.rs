//! Mistakes of a first configuration: a wrong address, a wrong token.

use std::time::{Duration, Instant};

use rstest::rstest;

use crate::support::terraform::{Instance, Site, Workspace, config, each_cli, refusal};

/// How long a plan may take until it shows such a mistake.
const SOON: Duration = Duration::from_secs(10);

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
        let begun = Instant::now();
        refusal(&workspace.try_plan(&[]), &["cannot be reached", &address, "DAMODEL_BASE_URL"]);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_wrong_token_is_an_error_of_the_plan_that_names_its_variable() {
    each_cli(|cli| {
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.write(&config(Instance::new("x")));
        workspace.set_env("DAMODEL_API_TOKEN", "not-the-token");
        let begun = Instant::now();
        refusal(&workspace.try_plan(&[]), &["API token", "DAMODEL_API_TOKEN", "request_id"]);
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    });
}
