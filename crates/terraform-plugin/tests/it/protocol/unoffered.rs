//! Calls for types that the provider does not have.

use terraform_plugin::protocol::tfplugin6::{get_states, move_resource_state};
use tonic::Code;

use crate::protocol::fixture::{Fixture, only};

#[tokio::test]
async fn a_state_store_is_an_unknown_method() {
    let mut fixture = Fixture::unconfigured();
    let status = fixture.core.client.get_states(get_states::Request::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_move_from_another_type_says_what_to_use_instead() {
    let mut fixture = Fixture::unconfigured();
    let request = move_resource_state::Request {
        source_type_name: "other_thing".to_owned(),
        target_type_name: "echo_thing".to_owned(),
        ..move_resource_state::Request::default()
    };
    let response = fixture.core.client.move_resource_state(request).await.unwrap().into_inner();
    let said = only(&response.diagnostics);
    assert_eq!(said.summary, "other_thing cannot be moved to echo_thing");
    assert!(said.detail.contains("removed block") && said.detail.contains("import block"), "{}", said.detail);
}
