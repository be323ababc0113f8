//! The price of a plan on OpenTofu, which does not show whether it plans or applies, and on Terraform 1.16, which
//! stores private data of plans.

use std::{fs, path::Path};

use damodel::{
    framework::{OfferKind, Value},
    protocol::tfplugin6::{ClientCapabilities, plan_resource_change, provider_client::ProviderClient},
};
use terraform_plugin::testing::{PluginProcess, dynamic, object};
use tokio::process::Command;

use super::stall::{beside_a_site, beside_pending, instance, server};
use crate::support::{plugin::BINARY, terraform::Site};

fn program() -> Command {
    PluginProcess::command(BINARY)
}

/// What a plan in a new process shows: the price, its private data, and the summaries of its warnings.
async fn plan(
    site: &Site,
    folder: &Path,
    command: Command,
    capabilities: ClientCapabilities,
    planned_private: Vec<u8>,
) -> (f64, Vec<u8>, Vec<String>) {
    let plugin = beside_pending(site, folder, command).await;
    let ty = server().registry().find(OfferKind::Resource, "damodel_instance").unwrap().ty.clone();
    let mut arguments = instance();
    arguments.extend([("payment_type", "Hourly".into()), ("data_disk_expand_size_gb", 0.into())]);
    let config = dynamic(&ty, &object(&ty, arguments));
    let request = plan_resource_change::Request {
        type_name: "damodel_instance".to_owned(),
        prior_state: Some(dynamic(&ty, &Value::Null)),
        proposed_new_state: Some(config.clone()),
        config: Some(config),
        client_capabilities: Some(capabilities),
        planned_private,
        ..plan_resource_change::Request::default()
    };
    let mut client = ProviderClient::new(plugin.connect().await);
    let answer = client.plan_resource_change(request).await.unwrap().into_inner();
    plugin.shut_down().await;
    let private: serde_json::Value = serde_json::from_slice(&answer.planned_private).unwrap();
    let cost = private["offers"][0]["cost"]["period_total"].to_string();
    let price = cost.trim_matches('"').parse().unwrap_or_else(|_| panic!("{private} {:?}", answer.diagnostics));
    let said = answer.diagnostics.into_iter().map(|diagnostic| diagnostic.summary).collect();
    (price, answer.planned_private, said)
}

#[test]
fn a_core_that_stores_private_data_gives_them_to_its_apply_only() {
    beside_a_site(async |site| {
        let folder = tempfile::tempdir().unwrap();
        let capabilities =
            ClientCapabilities { store_planned_private: true, deferral_allowed: true, ..ClientCapabilities::default() };
        let plan = async |private| plan(site, folder.path(), program(), capabilities, private).await;
        let (first, private, _) = plan(Vec::new()).await;
        site.set_spec(103, Some(2.5), None);
        // The same core, and no apply: the live price.
        let (second, ..) = plan(Vec::new()).await;
        fs::remove_file(folder.path().join("pending-quotes.jsonl")).unwrap();
        let (applied, _, said) = plan(private).await;
        assert_eq!((first, second, applied), (1.98, 2.5, 1.98));
        assert_eq!(said, Vec::<String>::new());
    });
}

#[test]
fn without_a_word_of_the_core_its_second_process_is_the_apply() {
    beside_a_site(async |site| {
        let folder = tempfile::tempdir().unwrap();
        let plan = async |capabilities| plan(site, folder.path(), program(), capabilities, Vec::new()).await;
        let (first, ..) = plan(ClientCapabilities::default()).await;
        site.set_spec(103, Some(2.5), None);
        let (second, _, said) = plan(ClientCapabilities::default()).await;
        assert_eq!((first, second, said), (1.98, 1.98, Vec::new()));
        // From Terraform 1.9 on an apply allows deferrals. Without the file it says what it lacks.
        fs::remove_file(folder.path().join("pending-quotes.jsonl")).unwrap();
        let apply = ClientCapabilities { deferral_allowed: true, ..ClientCapabilities::default() };
        let (third, _, said) = plan(apply).await;
        assert_eq!((third, said.len()), (2.5, 1), "{said:?}");
        assert!(said[0].contains("not certain here"), "{said:?}");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn without_a_word_of_the_core_its_command_line_tells_a_saved_plan() {
    beside_a_site(async |site| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tfplan"), b"PK\x03\x04").unwrap();
        // Shells stand for OpenTofu: their scripts are named as its subcommands.
        let plan = async |words: &[&str]| {
            fs::write(folder.path().join(words[0]), format!("'{BINARY}'; :\n")).unwrap();
            let mut core = PluginProcess::command("sh");
            core.args(words).current_dir(folder.path()).stdin(std::process::Stdio::null());
            plan(site, folder.path(), core, ClientCapabilities::default(), Vec::new()).await
        };
        let (first, ..) = plan(&["plan", "-out", "tfplan"]).await;
        site.set_spec(103, Some(2.5), None);
        let (applied, _, said) = plan(&["apply", "tfplan"]).await;
        assert_eq!((first, applied, said), (1.98, 1.98, Vec::new()));
        for words in [&["plan", "-out", "tfplan"][..], &["apply", "-auto-approve"]] {
            let (again, ..) = plan(words).await;
            assert_eq!(again, 2.5, "{words:?}");
        }
    });
}
