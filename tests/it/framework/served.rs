//! The provider of the framework's documentation, served and driven by the real command line.

use serde_json::json;

use super::words::Acme;
use crate::support::terraform::{Site, Workspace, each_cli};

#[test]
fn the_example_of_the_documentation_is_a_whole_provider() {
    each_cli(|cli| {
        // Functions of providers.
        if !cli.has(8, 7) {
            return;
        }
        let site = Site::start();
        let workspace = Workspace::new(cli, &site);
        workspace.attach(Acme::default(), "acme/acme");
        let config = |text: &str| {
            format!(
                "terraform {{\n  required_providers {{\n    acme = {{ source = \"acme/acme\" }}\n  }}\n}}\n\
                 resource \"acme_word\" \"x\" {{\n  text = {text:?}\n}}\n\
                 data \"acme_words\" \"all\" {{\n  depends_on = [acme_word.x]\n}}\n\
                 output \"all\" {{\n  value = join(\" \", data.acme_words.all.texts)\n}}\n\
                 output \"loud\" {{\n  value = provider::acme::shout(acme_word.x.text)\n}}\n"
            )
        };
        workspace.write(&config("two words"));
        let said = workspace.try_plan(&[]);
        assert!(said.iter().any(|said| said.text().contains("text must be one word")), "{said:#?}");
        let outputs = || {
            let printed = workspace.command(&["output", "-json"]).output().unwrap().stdout;
            let outputs: serde_json::Value = serde_json::from_slice(&printed).unwrap();
            [outputs["all"]["value"].clone(), outputs["loud"]["value"].clone()]
        };
        workspace.apply_ok(&config("hello"));
        assert_eq!(workspace.state().resource("acme_word.x").value("id"), &json!("1"));
        assert_eq!(outputs(), [json!("hello"), json!("HELLO")]);
        let changed = workspace.plan_and_apply_ok(&config("bye"));
        assert_eq!(changed.change("acme_word.x").actions(), "update");
        assert_eq!(outputs(), [json!("bye"), json!("BYE")]);
        workspace.destroy_ok();
    });
}
