//! Calls for things that the provider does not have: each is answered in its own form, none with a transport status.

use std::sync::Arc;

use damodel::{
    framework::Resource as _,
    protocol::tfplugin6::{
        Diagnostic, RequestChunkMeta, configure_state_store, delete_state, get_states, lock_state, move_resource_state,
        read_state_bytes, unlock_state, validate_state_store, write_state_bytes,
    },
};

use crate::{
    conformance::core::Core,
    echo::{Echo, THING, ThingResource},
};

fn core() -> Core {
    Core::new(Echo(Arc::default()), THING, &ThingResource.schema())
}

fn is_one_error(diagnostics: &[Diagnostic]) -> bool {
    matches!(diagnostics, [Diagnostic { severity: 1, summary, .. }] if summary.starts_with("No such "))
}

macro_rules! refused {
    ($($method:ident $message:ident;)*) => {
        #[tokio::test]
        async fn single_answers_are_errors() {
            let mut client = core().client;
            $(
                let response = client.$method($message::Request::default()).await.unwrap();
                let said = response.into_inner().diagnostics;
                assert!(is_one_error(&said), "{}: {said:?}", stringify!($method));
            )*
        }
    };
}

refused! {
    configure_state_store configure_state_store;
    delete_state delete_state;
    get_states get_states;
    lock_state lock_state;
    move_resource_state move_resource_state;
    unlock_state unlock_state;
    validate_state_store_config validate_state_store;
}

#[tokio::test]
async fn a_chunk_of_a_state_has_a_range_even_with_an_error() {
    let request = read_state_bytes::Request::default();
    let mut chunks = core().client.read_state_bytes(request).await.unwrap().into_inner();
    let chunk = chunks.message().await.unwrap().unwrap();
    assert!(chunk.range.is_some() && is_one_error(&chunk.diagnostics));
    assert!(chunks.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_state_that_is_written_is_refused() {
    let first = write_state_bytes::RequestChunk {
        meta: Some(RequestChunkMeta { type_name: "echo_store".to_owned(), state_id: "s".to_owned() }),
        ..write_state_bytes::RequestChunk::default()
    };
    let chunks = tokio_stream::iter([first, write_state_bytes::RequestChunk::default()]);
    let response = core().client.write_state_bytes(chunks).await.unwrap().into_inner();
    assert!(is_one_error(&response.diagnostics));
    assert!(response.diagnostics[0].detail.contains("echo_store"));
}
