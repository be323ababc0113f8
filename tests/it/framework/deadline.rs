//! A plan against a service that does not answer: its live checks end together, and warn.

use std::{path::PathBuf, time::Duration};

use damodel::{
    framework::Value,
    provider::{Damodel, Environment},
};
use terraform_plugin::testing::{Core, object};
use tokio::{net::TcpListener, time::Instant};

/// The time of all live checks of a plan.
const CHECKS: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn live_checks_without_an_answer_end_together_and_warn() {
    // The system accepts connections for it, and nobody answers.
    let mute = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pending = ("DAMODEL_PENDING_DIR", folder.path().display().to_string());
    let environment = Environment::made_of([pending], PathBuf::new());
    let mut core = Core::new(Damodel::new(environment), "damodel_instance");
    let arguments =
        [("base_url", format!("http://{}", mute.local_addr().unwrap()).into()), ("api_token", "token".into())];
    assert_eq!(core.configure(&object(&core.provider_ty, arguments)).await, []);

    let config = object(
        &core.ty,
        [
            ("name", "x".into()),
            ("spec_id", 103.into()),
            ("gpu_num", 1.into()),
            ("image_id", 902.into()),
            ("image_type", "public".into()),
            ("region", "cn-east-1".into()),
        ],
    );
    let begun = Instant::now();
    let planned = core.plan(&config, &Value::Null, b"").await;
    assert!(begun.elapsed() <= CHECKS, "{:?}", begun.elapsed());
    assert!(!planned.has_errors() && !planned.diagnostics.is_empty(), "{:?}", planned.diagnostics);
}
