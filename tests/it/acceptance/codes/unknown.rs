//! Codes that the document does not name.

use serde_json::{Value, json};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::method};

use crate::support::terraform::{Instance, Site, Workspace, config_with, each_cli};

/// All data sources that send requests, without live checks.
const ALL: &str = r#"
data "damodel_instances" "x" {}
data "damodel_instance" "x" { id = "ins-a" }
data "damodel_cloud_disks" "x" {}
data "damodel_cloud_disk_specs" "x" {}
data "damodel_public_images" "x" {}
data "damodel_private_images" "x" {}
data "damodel_specs" "x" {}
data "damodel_chat_completion" "x" {
  model    = "a-model"
  messages = [{ role = "user", content = "hello" }]
}
"#;

const RESOURCES: &str = r#"
resource "damodel_cloud_disk" "x" {
  name    = "x"
  size_gb = 20
  spec_id = 31
  timeouts { create = "1s" }
}
resource "damodel_private_image" "x" {
  name        = "x"
  instance_id = "ins-a"
  timeouts { create = "1s" }
}
"#;

/// A service that refuses requests with these methods, and has empty lists.
async fn service(refuses: &[&str]) -> MockServer {
    let ids = |error: Value| json!({ "request_id": "req-000001", "trace_id": "trace-000001", "error": error });
    let frozen = json!({ "code_n": 190_099, "code": "QuotaFrozen", "message": "the quota is frozen." });
    let refusal = json!({ "result": null, "response_metadata": ids(frozen) });
    let nothing = json!({ "total": 0, "page": 1, "page_size": 0, "total_page": 0, "data": [] });
    let empty = json!({ "result": nothing, "response_metadata": ids(Value::Null) });
    let service = MockServer::start().await;
    for refused in refuses {
        let answer = ResponseTemplate::new(409).set_body_json(&refusal);
        Mock::given(method(*refused)).respond_with(answer).mount(&service).await;
    }
    Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(&empty)).mount(&service).await;
    service
}

#[test]
fn one_stays_readable_and_nothing_is_made() {
    let provider = "region = \"cn-east-1\"\nmax_retries = 0\npreflight = false";
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    each_cli(|cli| {
        let site = Site::start();
        let machine = Instance::new("x").block("timeouts { create = \"1s\" }");
        let resources = format!("{machine}{RESOURCES}");
        // A create looks for its object before it accepts such a refusal: the code may mean anything.
        for (body, refuses, count) in [(ALL, &["GET", "POST"][..], 8), (&*resources, &["POST"], 3)] {
            let service = runtime.block_on(service(refuses));
            let workspace = Workspace::new(cli, &site);
            workspace.set_env("DAMODEL_BASE_URL", &service.uri());
            workspace.set_env("DAMODEL_CHAT_API_KEY", "a-key");
            workspace.write(&config_with(provider, body));
            let (done, said) = workspace.try_apply(&[]);
            let errors: Vec<_> = said.iter().filter(|said| said.is_error()).collect();
            assert!(!done && errors.len() == count, "{errors:#?}");
            for error in errors {
                for word in ["190099", "QuotaFrozen", "quota is frozen", "id req-000001", "id trace-000001"] {
                    assert!(error.text().contains(word), "{word}: {error:?}");
                }
                let advice = if body == ALL { "not documented" } else { "the outcome is unknown" };
                assert!(error.text().contains(advice), "{error:?}");
            }
            assert!(workspace.state().addresses().is_empty());
        }
    });
}
