//! A raw HTTP client: one request a connection, and the received bytes, however incomplete.

use std::{collections::BTreeMap, time::SystemTime};

use damodel_sandbox::{Fault, FaultAction, Options, Running, Sandbox, When};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The bytes that were received before the connection ended.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Whether the body has its announced length, or its last chunk.
    pub(crate) fn is_whole(&self) -> bool {
        match self.headers.get("content-length") {
            Some(length) => *length == self.body.len().to_string(),
            None => self.body.ends_with(b"0\r\n\r\n"),
        }
    }

    /// The chunks of a body without an announced length (RFC 9112, chunked transfer coding), as far as received.
    pub(crate) fn chunks(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.headers.get("transfer-encoding").map(String::as_str), Some("chunked"));
        let mut chunks = Vec::new();
        let mut rest = self.body.as_slice();
        while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
            let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
            rest = &rest[end + 2..];
            if length == 0 {
                break;
            }
            chunks.push(rest[..length].to_vec());
            rest = &rest[length + 2..];
        }
        chunks
    }

    /// The joined chunks.
    pub(crate) fn unchunked(&self) -> Vec<u8> {
        self.chunks().concat()
    }
}

/// Sends a request to the service with this token.
pub(crate) async fn ask(base_url: &str, token: &str, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let headers = format!("X-Service-Token: {token}\r\nX-Service-Timestamp: {now}\r\n");
    exchange(base_url, method, path, &headers, body).await
}

/// Sends one request; `None` if the connection was closed without an answer.
pub(crate) async fn exchange(
    base_url: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: Option<&Value>,
) -> Option<Reply> {
    let address = base_url.strip_prefix("http://").unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut may be reset; the bytes before it are kept.
    let _cut = stream.read_to_end(&mut bytes).await;
    (!bytes.is_empty()).then(|| parse(&bytes))
}

pub(crate) fn parse(bytes: &[u8]) -> Reply {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Reply { status, headers, body: bytes[end + 4..].to_vec() }
}

/// A running sandbox, with requests of its main account.
pub(crate) struct Site {
    pub(crate) running: Running,
}

impl Site {
    pub(crate) async fn start(options: Options) -> Self {
        Self { running: Sandbox::start(options).await.unwrap() }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
        ask(&self.running.base_url, self.running.token.expose_secret(), method, path, body).await
    }

    /// Sends a request to the chat endpoint with the main account's key.
    pub(crate) async fn chat(&self, path: &str, body: &Value) -> Option<Reply> {
        let headers = format!("Authorization: Bearer {}\r\n", self.running.chat_key.expose_secret());
        exchange(&self.running.base_url, "POST", path, &headers, Some(body)).await
    }

    /// The reply to a valid create.
    pub(crate) async fn create(&self) -> Option<Reply> {
        let body = json!({
            "region": "cn-east-1",
            "payment_type": "Hourly",
            "spec_id": 103,
            "gpu_num": 1,
            "data_disk_expand_size": 0,
            "image_id": 902,
            "image_type": "public",
            "instance_alias": "trainer",
        });
        self.ask("POST", "/api/instance/create", Some(&body)).await
    }

    pub(crate) async fn list(&self) -> Option<Reply> {
        self.ask("GET", "/api/instance/list?page=1&page_size=0", None).await
    }

    /// The number of instances in a list.
    pub(crate) async fn total(&self) -> i64 {
        self.list().await.unwrap().json()["result"]["total"].as_i64().unwrap()
    }

    /// Sends a request to the control interface.
    pub(crate) async fn control(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        ask(&self.running.base_url, self.running.token.expose_secret(), method, path, body).await.unwrap()
    }

    /// Arms a fault for the next call of the endpoint.
    pub(crate) fn arm(&self, endpoint: &str, action: FaultAction) {
        self.running.sandbox.arm(Fault { endpoint: endpoint.to_owned(), when: When::Next(1), action });
    }
}
