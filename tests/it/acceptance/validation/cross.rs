//! Combinations of arguments that are invalid, and errors that need a plan.

use super::{Case, check, plan, validate};
use crate::support::terraform::{config_with, each_workspace};

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
