//! Certificates and proxies of connections to a file at an address.

use damodel_client::api::{ConnectFailure, Proxies, RemoteError, RemoteFile, Settings};
use terraform_plugin::testing::ClientIdentity;

use crate::support::{ports::free_port, socks::Socks};

/// The failure of reading a file at a server with this certificate, which is trusted.
async fn failure(identity: &ClientIdentity) -> RemoteError {
    failure_at("localhost", identity, &identity.pem()).await
}

/// The same at this host, with these certificates.
async fn failure_at(host: &str, identity: &ClientIdentity, pem: &str) -> RemoteError {
    let settings = Settings { extra_roots_pem: Some(pem.into()), max_retries: 0, ..Settings::default() };
    let address = format!("https://{host}:{}/m.gguf", identity.listen());
    RemoteFile::new(&address, &settings).unwrap().size("/m.gguf").await.unwrap_err()
}

#[tokio::test]
async fn a_certificate_that_is_its_own_root_is_accepted_if_it_is_no_authority() {
    let RemoteError::Untrusted(cause) = failure(&ClientIdentity::generate()).await else { panic!("it is trusted") };
    assert_eq!(cause.connect_failure(), ConnectFailure::Authority, "{cause}");
    let failure = failure(&ClientIdentity::generate_leaf()).await;
    assert!(matches!(failure, RemoteError::Connection(_)), "{failure}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_told_from_an_untrusted_one() {
    let identity = ClientIdentity::generate_leaf();
    let RemoteError::Untrusted(cause) = failure_at("127.0.0.1", &identity, &identity.pem()).await else {
        panic!("it is not named")
    };
    assert_eq!(cause.connect_failure(), ConnectFailure::OtherName, "{cause}");
    let other = ClientIdentity::generate_leaf().pem();
    let RemoteError::Untrusted(cause) = failure_at("localhost", &identity, &other).await else {
        panic!("it is trusted")
    };
    assert_eq!(cause.connect_failure(), ConnectFailure::Tls, "{cause}");
}

#[test]
fn a_file_without_certificates_is_an_error() {
    let settings = Settings { extra_roots_pem: Some(b"no certificate".to_vec()), ..Settings::default() };
    let error = RemoteFile::new("https://localhost/m.gguf", &settings).unwrap_err().to_string();
    assert!(error.contains("contains no certificate"), "{error}");
}

#[tokio::test]
async fn a_file_is_read_through_a_socks_proxy() {
    let identity = ClientIdentity::generate();
    let proxy = Socks::leading_to(([127, 0, 0, 1], identity.listen()).into());
    let closed = format!("socks5://127.0.0.1:{}", free_port());
    for url in [&proxy.url, &closed] {
        let proxies = Proxies::read(|name| (name == "ALL_PROXY").then_some(url));
        let settings = Settings { proxies, max_retries: 0, ..Settings::default() };
        let file = RemoteFile::new("https://models.example/m.gguf", &settings).unwrap();
        let error = file.size("/m.gguf").await.unwrap_err().to_string();
        assert!(error.contains("through the proxy in ALL_PROXY"), "{error}");
    }
    assert_eq!(proxy.asked(), ["models.example:443"]);
}
