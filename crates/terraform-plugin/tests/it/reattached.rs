//! Providers that a real command line attaches to.

use terraform_plugin::testing::Reattached;

use crate::words::Acme;

#[test]
fn each_provider_has_a_log_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let log = folder.path().join(name);
        let served = Reattached::serve_logged(Acme::default(), "acme/acme", &log);
        served.runtime.block_on(served.runtime.spawn(async move { tracing::warn!("of {name}") })).unwrap();
        std::fs::read_to_string(log).unwrap()
    });
    assert!(one.contains("of one") && !one.contains("of other"), "{one}");
    assert!(other.contains("of other") && !other.contains("of one"), "{other}");
}
