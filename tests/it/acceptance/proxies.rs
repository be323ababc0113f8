//! Proxies of the usual environment variables.

use std::collections::BTreeSet;

use crate::support::{
    ports::free_port,
    socks::Socks,
    terraform::{Instance, config_with, each_workspace, refusal},
};

const PROVIDER: &str = "region = \"cn-east-1\"\nallow_http = true";

#[test]
fn requests_go_through_a_socks_proxy() {
    each_workspace(|site, workspace| {
        workspace.run_program();
        let proxy = Socks::leading_to(site.base_url().strip_prefix("http://").unwrap().parse().unwrap());
        workspace.set_env("DAMODEL_BASE_URL", "http://gateway.example");
        workspace.set_env("ALL_PROXY", &proxy.url);
        workspace.apply_ok(&config_with(PROVIDER, Instance::new("x")));
        workspace.finish();
        let asked: BTreeSet<String> = proxy.asked().into_iter().collect();
        assert_eq!(asked, BTreeSet::from(["gateway.example:80".to_owned()]));
    });
}

#[test]
fn a_proxy_that_cannot_be_reached_is_named_by_its_variable() {
    each_workspace(|_, workspace| {
        workspace.run_program();
        workspace.write(&config_with(PROVIDER, Instance::new("x")));
        workspace.set_env("DAMODEL_BASE_URL", "http://gateway.example:81");
        workspace.set_env("ALL_PROXY", &format!("socks5://127.0.0.1:{}", free_port()));
        let words = ["gateway.example:81 cannot be reached through the proxy in ALL_PROXY", "NO_PROXY"];
        let said = workspace.try_plan(&[]);
        assert!(!refusal(&said, &words).text().contains("HTTPS_PROXY"), "{said:#?}");
        // As GNOME writes it. It was passed over, with the advice to set a proxy.
        workspace.set_env("DAMODEL_BASE_URL", "http://gateway.invalid:81");
        workspace.set_env("ALL_PROXY", "socks://me:planted@127.0.0.1:1080/");
        let words = ["gateway.invalid:81 cannot be reached without the proxy in ALL_PROXY", "socks5://"];
        let said = workspace.try_plan(&[]);
        let text = refusal(&said, &words).text();
        assert!(!text.contains("HTTPS_PROXY") && !text.contains("planted"), "{text}");
    });
}
