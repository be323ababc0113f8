//! The service's client over real HTTP: the recorded answers of the document, and connections that break.

mod chat;
mod connections;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use damodel_client::{
    api::{
        BaseUrl, Client, CloudDiskSpecFilter, Context, CreateInstance, Error, ImageSelector, InstanceStatus,
        InstanceUid, PlainHttp, PublicImageFilter, Random, Settings, SpecSelector, TokenSource,
    },
    creation::{Journal, Origin},
};
use rstest::rstest;
use secrecy::ExposeSecret;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{header, method},
};

use crate::support::create::create;

fn context() -> Context {
    Context::within(Duration::from_secs(20), &CancellationToken::new())
}

fn settings(base: &str) -> Settings {
    Settings {
        base_url: Some(BaseUrl::parse(base, PlainHttp::LoopbackOnly).unwrap()),
        token: Some(TokenSource::Value("planted-token".into())),
        max_retries: 0,
        random: Random::new(|| 0x0bad_cafe),
        ..Settings::default()
    }
}

fn request() -> CreateInstance {
    CreateInstance {
        name: Some("web".to_owned()),
        ..CreateInstance::new("region-1", SpecSelector::Id(11), 2, ImageSelector::Public(3))
    }
}

/// A service that answers everything with one recorded answer.
async fn recorded(name: &str) -> (MockServer, Client) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/api");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    let server = MockServer::start().await;
    Mock::given(header("x-service-token", "planted-token"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(text, "application/json"))
        .mount(&server)
        .await;
    let client = Client::new(settings(&format!("{}/v1/", server.uri())));
    (server, client)
}

#[tokio::test]
async fn recorded_instance_list_is_read_whole() {
    let (server, client) = recorded("instance_list").await;
    let listing = client.instances().snapshot(&context()).await.unwrap();
    assert!(listing.complete);
    assert_eq!(listing.total, Some(2));
    let web = &listing.records[0];
    assert_eq!(web.uid.as_str(), "ins-7a1");
    assert_eq!(web.status, Some(InstanceStatus::Running));
    assert_eq!((web.ssh_host.as_deref(), web.ssh_port), (Some("ssh.example.com"), Some(30022)));
    assert_eq!(web.ssh_password.as_ref().unwrap().expose_secret(), "planted-password");
    assert_eq!((web.start_time, web.stop_time), (Some(1_763_700_000), None));
    assert!(listing.records[1].is_released());
    assert!(!format!("{listing:?}").contains("planted"));
    let asked = server.received_requests().await.unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].url.path(), "/api/instance/list");
    assert_eq!(asked[0].url.query(), Some("page=1&page_size=0"));
}

#[tokio::test]
async fn recorded_instance_detail_is_read_whole() {
    let (_server, client) = recorded("instance_detail").await;
    let detail = client.instances().detail(&InstanceUid::new("ins-7a1"), &context()).await.unwrap();
    let more = &detail.more;
    assert_eq!((more.sys_disk_size, more.data_disk_size), (Some(30), Some(50)));
    assert_eq!(more.gpu_price, Some("1.58".parse().unwrap()));
    assert_eq!(more.supports_power, Some(true));
    assert_eq!(more.cpu_core, Some(32.into()));
    assert_eq!((more.cloud_disks.len(), more.services.expose().len()), (1, 1));
    assert!(!format!("{detail:?}").contains("planted"));
}

#[tokio::test]
async fn recorded_images_specs_and_disks_are_read_whole() {
    let (_server, client) = recorded("public_images").await;
    let images = client.public_images(&PublicImageFilter::default(), &context()).await.unwrap();
    assert!(images.complete);
    assert_eq!(images.records.iter().map(|image| image.id).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(images.records[1].softwares, ["pytorch 2.4", "cuda 12.4"]);

    let (_server, client) = recorded("private_images").await;
    let images = client.private_images().fresh(&context()).await.unwrap();
    assert_eq!((images.records[0].image_status, images.records[0].push_progress), (Some(0), Some(40)));
    assert_eq!(images.records[0].image_size, Some("12.5".parse().unwrap()));

    let (server, client) = recorded("spec_list").await;
    let specs = client.specs().snapshot("region-1", &context()).await.unwrap();
    assert_eq!(specs.records[0].json["support_ib_network"], 0);
    assert_eq!(server.received_requests().await.unwrap()[0].url.query(), Some("region=region-1"));

    let (_server, client) = recorded("cloud_disk_list").await;
    let disks = client.cloud_disks().snapshot(&context()).await.unwrap();
    assert_eq!((disks.records[0].id, disks.records[0].status), (21, Some(6)));
    assert_eq!(disks.records[0].binding_instances.len(), 1);

    let (server, client) = recorded("cloud_disk_specs").await;
    let specs = client.cloud_disks().specs(&CloudDiskSpecFilter::default(), &context()).await.unwrap();
    assert_eq!((specs.records[1].max_size_g, &specs.records[1].json["multiple_mounting"]), (Some(8192), &true.into()));
    assert_eq!(server.received_requests().await.unwrap()[0].url.query(), None);
}

#[tokio::test]
async fn recorded_create_is_accepted() {
    let (_server, client) = recorded("instance_create").await;
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path());
    let accepted = create(&client, request(), &journal, &context()).await.unwrap();
    assert_eq!(accepted.made.uid.as_str(), "ins-7a1");
    assert_eq!(accepted.sent_name, "web-1f830badcafe");
    let files: String = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(files.contains("ins-7a1") && !files.contains("planted"), "{files}");
}

#[tokio::test]
async fn redirect_is_refused_and_takes_no_token_along() {
    let target = MockServer::start().await;
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(307).insert_header("location", target.uri()))
        .mount(&server)
        .await;
    let client = Client::new(settings(&server.uri()));
    let error = client.instances().snapshot(&context()).await.unwrap_err();
    assert!(matches!(error, Error::Redirected { status: 307, .. }), "{error}");
    assert!(target.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_roots_file_that_is_none_is_an_error_of_the_first_call() {
    let settings = Settings {
        base_url: Some(BaseUrl::parse("https://127.0.0.1:1", PlainHttp::LoopbackOnly).unwrap()),
        extra_roots_pem: Some(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n".to_vec()),
        ..settings("http://127.0.0.1:1")
    };
    let error = Client::new(settings).instances().snapshot(&context()).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error}");
}

/// Reads one request, headers and body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).await.unwrap();
        text.extend_from_slice(&chunk[..count]);
        let so_far = String::from_utf8_lossy(&text);
        let Some((head, body)) = so_far.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0);
        if body.len() >= length || count == 0 {
            return so_far.into_owned();
        }
    }
}

/// How a connection ends after a create was read.
#[derive(Debug, Clone, Copy)]
enum Break {
    AfterReading,
    InTheHeaders,
    InTheBody,
}

/// A service that loses the answer of every create, and lists the created instances.
async fn breaking(how: Break) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let creates = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&creates);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let asked = read_request(&mut stream).await;
                let reply = if asked.starts_with("POST /api/instance/create ") {
                    counted.fetch_add(1, Ordering::SeqCst);
                    match how {
                        Break::AfterReading => String::new(),
                        Break::InTheHeaders => "HTTP/1.1 200 OK\r\ncontent-le".to_owned(),
                        Break::InTheBody => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"result\"".to_owned(),
                    }
                } else {
                    let body = r#"{"result":{"total":1,"data":[{"instance_uid":"ins-1","instance_alias":"web-1f830badcafe"}]},"response_metadata":{}}"#;
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
                };
                stream.write_all(reply.as_bytes()).await.unwrap();
            });
        }
    });
    (address, creates)
}

#[rstest]
#[case(Break::AfterReading)]
#[case(Break::InTheHeaders)]
#[case(Break::InTheBody)]
#[tokio::test]
async fn a_create_whose_bytes_were_sent_is_never_sent_again(#[case] how: Break) {
    let (address, creates) = breaking(how).await;
    let client = Client::new(Settings { max_retries: 5, ..settings(&address) });
    let folder = tempfile::tempdir().unwrap();
    let accepted = create(&client, request(), &Journal::new(folder.path()), &context()).await.unwrap();
    assert_eq!(accepted.origin, Origin::Found);
    assert_eq!(accepted.made.uid.as_str(), "ins-1");
    assert_eq!(creates.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refused_connection_is_known_to_have_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = Client::new(settings(&address));
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path());
    let error = create(&client, request(), &journal, &context()).await.unwrap_err();
    assert!(error.nothing_was_processed(), "{error}");
    assert!(matches!(error, Error::NeverSent { .. }), "{error}");
    assert!(!error.to_string().contains("planted"));
    assert!(journal.list().unwrap().entries.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_on_many_threads_hang_nobody() {
    let server = MockServer::start().await;
    let page = serde_json::json!({"result": {"total": 1, "data": [{"instance_uid": "ins-1", "status": "Running"}]},
        "response_metadata": {"error": null}});
    Mock::given(method("GET")).respond_with(ResponseTemplate::new(200).set_body_json(page)).mount(&server).await;
    let nothing = serde_json::json!({"result": null, "response_metadata": {"error": null}});
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200).set_body_json(nothing)).mount(&server).await;
    let client = Client::new(settings(&server.uri()));
    let callers = (0..40).map(|number| {
        let instances = client.instances();
        tokio::spawn(async move {
            let (context, uid) = (context(), InstanceUid::new("ins-1"));
            for round in 0..5 {
                match (number + round) % 4 {
                    0 => drop(instances.fresh(&context).await.unwrap()),
                    1 => instances.rename(&uid, "web", &context).await.unwrap(),
                    2 => drop(instances.snapshot(&context).await.unwrap()),
                    // The caller gives up.
                    _ => drop(tokio::time::timeout(Duration::from_millis(1), instances.fresh(&context)).await),
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}
