//! Combinations of arguments that are invalid, and errors that need a plan.

use super::{Case, check, plan, validate};
use crate::support::terraform::{Diagnostic, Instance, config, config_with, each_workspace};

#[test]
fn arguments_that_do_not_go_together() {
    let cases = [
        Case::instance_with(&[("image_type", "")], Some("image_id"), "needs image_type"),
        Case::instance_with(&[("image_id", "")], Some("image_type"), "needs image_id"),
        Case::instance_with(&[("candidates", "[{ spec_id = 103 }]")], Some("spec_id"), "spec_id or candidates"),
        Case::instance_with(
            &[("spec_id", ""), ("candidates", "[{ spec_id = 103, region = \"r\" }]"), ("region", "\"r\"")],
            Some("candidates"),
            "do not set region",
        ),
        Case::instance_with(&[("spec_id", ""), ("candidates", "[{}]")], Some("candidates"), "spec_type"),
        Case::instance("ssh_pubkey_id", "17", "login_method = \"ssh_key\""),
        Case::instance("ssh_pubkey_name", "\"laptop\"", "login_method = \"ssh_key\""),
        Case::instance_with(
            &[("login_method", "\"password\""), ("ssh_pubkey_id", "17")],
            Some("ssh_pubkey_id"),
            "login_method = \"ssh_key\"",
        ),
        Case::instance_with(
            &[("auto_renew", "true"), ("on_unreleasable", "\"abandon\"")],
            Some("on_unreleasable"),
            "billed indefinitely",
        ),
    ];
    check(&cases, validate);
}

#[test]
fn two_sources_of_the_token() {
    each_workspace(|_, workspace| {
        let provider = "  api_token = \"planted-token\"\n  api_token_command = [\"print-token\"]";
        workspace.write(&config_with(provider, "data \"damodel_specs\" \"all\" {}"));
        let said = validate(workspace);
        let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
        assert_eq!(errors.len(), 1, "{said:?}");
        assert_eq!(errors[0].attribute.as_deref(), Some("api_token_command"));
        assert!(!errors[0].text().contains("planted-token"));
    });
}

#[test]
fn what_a_create_needs_is_said_by_its_plan() {
    let cases = [
        Case::instance_with(&[("spec_id", "")], None, "spec_id, spec_type or candidates"),
        Case::instance_with(&[("image_id", ""), ("image_type", "")], None, "damodel_public_images"),
        Case::instance_with(&[("login_method", "\"ssh_key\""), ("ssh_pubkey_id", "17")], None, "ssh_pubkey_name"),
        Case::instance_with(&[("login_method", "\"ssh_key\""), ("ssh_pubkey_name", "\"a\"")], None, "ssh_pubkey_id"),
        Case::instance_with(&[("payment_type", "\"Daily\"")], None, "needs purchase_duration"),
        Case::instance_with(&[("payment_type", "\"Weekly\"")], None, "needs purchase_duration"),
        Case::instance_with(&[("payment_type", "\"Monthly\"")], None, "needs purchase_duration"),
    ];
    check(&cases, plan);
}

/// While Terraform validates a configuration, it knows the value of no variable. A module passes null for what its
/// caller leaves out.
#[test]
fn an_argument_that_may_be_null_conflicts_with_none() {
    const BLOCKS: &str = r#"
variable "none" {
  type    = any
  default = null
}

resource "damodel_instance" "hourly" {
  candidates        = var.none
  gpu_num           = var.none
  region            = var.none
  spec_id           = var.none
  spec_type         = "gpu.rtx4090.1"
  image             = "registry.test/a/b:1"
  image_id          = var.none
  payment_type      = "Hourly"
  purchase_duration = var.none
  auto_renew        = var.none
  ssh_pubkey_id     = var.none
  ssh_pubkey_name   = var.none
}

resource "damodel_instance" "daily" {
  candidates   = [{ spec_id = 103, region = var.none, gpu_num = var.none }]
  gpu_num      = 1
  region       = "cn-east-1"
  spec_type    = var.none
  image        = "registry.test/a/b:1"
  image_type   = var.none
  payment_type = "Daily"
  max_age      = var.none
}

resource "damodel_llama_server" "prebuilt" {
  instance_id           = "ins-1"
  model                 = "~/m-00001-of-00002.gguf"
  model_source          = { url = "https://x/m-00001-of-00002.gguf", sha256 = var.none }
  model_source_token_wo = var.none
  api_key               = "k"
  api_key_wo            = var.none
  build                 = "prebuilt"
  source                = var.none
  probe                 = { endpoint = "health", expect = var.none }
  ssh                   = { password = "p", private_key = var.none, certificate = var.none }
  ssh_password_wo       = var.none
  ssh_private_key_wo    = var.none
}

resource "damodel_llama_server" "source" {
  instance_id           = "ins-1"
  model                 = "~/m.gguf"
  model_source_token_wo = var.none
  api_key               = var.none
  api_key_wo            = var.none
  api_key_wo_version    = var.none
  build                 = "source"
  package               = var.none
  source                = { url = "https://x/s", path = var.none }
}

data "damodel_model" "file" {
  path     = "~/m.gguf"
  url      = var.none
  host_key = var.none
}

data "damodel_model" "address" {
  path        = var.none
  url         = "https://x/m.gguf"
  instance_id = var.none
  ssh         = var.none
  host_key    = var.none
}

data "damodel_chat_completion" "hosted" {
  model           = "m"
  messages        = [{ role = "user", content = "x" }]
  llama_server_id = var.none
  ssh             = var.none
  host_key        = var.none
  api_key         = var.none
}
"#;
    each_workspace(|_, workspace| {
        workspace.write(&config(BLOCKS));
        let said: Vec<_> = validate(workspace).into_iter().filter(|said| said.address.is_some()).collect();
        assert!(said.is_empty(), "{said:#?}");
    });
}

/// Terraform validates each block again with the values that the plan knows.
#[test]
fn a_conflict_of_variables_is_an_error_of_the_plan() {
    each_workspace(|_, workspace| {
        let instance = Instance::new("x").set("spec_id", "var.one").set("candidates", "var.other");
        let one = "variable \"one\" {\n  default = 103\n}\n";
        for (other, is_refused) in [("null", false), ("[{ spec_id = 103 }]", true)] {
            let other = format!("variable \"other\" {{\n  type    = any\n  default = {other}\n}}\n");
            workspace.write(&config(format!("{one}{other}{instance}")));
            let errors: Vec<_> = plan(workspace).into_iter().filter(Diagnostic::is_error).collect();
            let says = |said: &Diagnostic| said.text().contains("Set either spec_id or candidates, not both.");
            assert!(errors.len() == usize::from(is_refused) && errors.iter().all(says), "{errors:#?}");
        }
    });
}
