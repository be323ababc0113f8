//! Chats over real HTTP: an answer in pieces, connections that break, and the key.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use damodel_client::api::{
    BaseUrl, ChatAnswer, ChatMessage, ChatRequest, Client, Context, Error, PlainHttp, Settings, TokenSource,
};
use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

fn client(base: &str) -> Client {
    Client::new(Settings {
        base_url: Some(BaseUrl::parse(base, PlainHttp::LoopbackOnly).unwrap()),
        token: Some(TokenSource::Value("planted-token".into())),
        api_key: Some("planted-key".into()),
        ..Settings::default()
    })
}

async fn ask(base: &str) -> Result<ChatAnswer, Error> {
    let question = ChatMessage { role: "user".to_owned(), content: "hello?".to_owned() };
    let context = Context::within(Duration::from_secs(20), &CancellationToken::new());
    client(base).chat(&ChatRequest::new("a-model", vec![question]), &context).await
}

/// Reads one request, up to the end of its JSON body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).await.unwrap();
        text.extend_from_slice(&chunk[..count]);
        if count == 0 || text.ends_with(b"}") {
            return String::from_utf8(text).unwrap();
        }
    }
}

/// A service that answers with these bytes, one write each; returns its address, and the number and texts of requests.
async fn service(writes: &'static [&'static [u8]]) -> (String, Arc<AtomicUsize>, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let question = read_request(&mut stream).await;
            counted.fetch_add(1, Ordering::SeqCst);
            drop(tell.send(question));
            for bytes in writes {
                stream.write_all(bytes).await.unwrap();
                stream.flush().await.unwrap();
                tokio::task::yield_now().await;
            }
        }
    });
    (address, asked, told)
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const FIRST: &[u8] = b"2a\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"gr\xc3\r\n";
const SECOND: &[u8] = b"27\r\n\xbc\xc3\x9f\"},\"finish_reason\":\"stop\"}]}\r\n\r\ndata\r\n";
const LAST: &[u8] = b"a\r\n: [DONE]\n\n\r\n0\r\n\r\n";

#[rstest]
#[case::whole(&[HEAD, FIRST, SECOND, LAST])]
#[case::cut_after_its_end(&[HEAD, FIRST, SECOND])]
#[tokio::test]
async fn an_answer_in_pieces_is_put_together(#[case] writes: &'static [&'static [u8]]) {
    let (address, asked, mut told) = service(writes).await;
    let answer = ask(&format!("{address}/v1")).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.finish_reason.as_deref()), ("grüß", Some("stop")));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let question = told.recv().await.unwrap();
    assert!(question.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{question}");
    assert!(question.contains("authorization: Bearer planted-key\r\n"), "{question}");
    assert!(!question.contains("planted-token"), "{question}");
}

#[tokio::test]
async fn an_answer_that_breaks_is_not_asked_for_again() {
    const CONTENT: &[u8] = b"30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n";
    let (address, asked, _told) = service(&[HEAD, CONTENT]).await;
    let error = ask(&address).await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    assert!(!error.to_string().contains("planted"), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_redirect_is_refused_and_takes_no_key_along() {
    const REDIRECT: &[u8] =
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
    let (address, asked, _told) = service(&[REDIRECT]).await;
    let error = ask(&address).await.unwrap_err();
    assert!(matches!(error, Error::Redirected { status: 307, .. }), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
