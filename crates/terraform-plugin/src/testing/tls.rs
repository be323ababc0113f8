//! The client's half of go-plugin's mutual TLS.

use std::{net::TcpListener, sync::Arc, thread};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P521_SHA512,
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, ServerConnection, SignatureScheme,
    SupportedProtocolVersion,
    client::{
        ResolvesClientCert,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime},
    server::ParsedCertificate,
    sign::CertifiedKey,
};

/// A one-off client certificate with its key, as go-plugin makes them: P-521, self-signed, an authority.
#[derive(Debug)]
pub struct ClientIdentity {
    /// The certificate in DER form.
    pub certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Clone for ClientIdentity {
    fn clone(&self) -> Self {
        Self { certificate: self.certificate.clone(), key: self.key.clone_key() }
    }
}

impl ClientIdentity {
    /// One as go-plugin makes it.
    pub fn generate() -> Self {
        Self::generate_as(IsCa::Ca(BasicConstraints::Unconstrained))
    }

    /// One for a server alone, as `openssl req -x509 -addext basicConstraints=CA:FALSE` makes it.
    pub fn generate_leaf() -> Self {
        Self::generate_as(IsCa::ExplicitNoCa)
    }

    fn generate_as(is_ca: IsCa) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = is_ca;
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyAgreement,
            KeyUsagePurpose::KeyCertSign,
        ];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Self { certificate, key }
    }

    /// This identity's certificate with another key: what a reader of the environment has.
    pub fn with_key_of(&self, other: &Self) -> Self {
        Self { certificate: self.certificate.clone(), key: other.key.clone_key() }
    }

    /// Like a web server, which asks its clients for no certificate.
    pub fn web_server(&self) -> ServerConfig {
        let builder = ServerConfig::builder().with_no_client_auth();
        builder.with_single_cert(vec![self.certificate.clone()], self.key.clone_key()).unwrap()
    }

    /// Answers handshakes on the port that is returned, and nothing else.
    pub fn listen(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = Arc::new(self.web_server());
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
                let _ = tls.complete_io(&mut client.unwrap());
            }
        });
        port
    }

    /// The certificate as the core passes it to a plugin.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.certificate);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
        let lines = lines.join("\n");
        format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
    }
}

/// A client that trusts only `server`, and presents `identity`, if any.
pub fn client_config(
    server: &CertificateDer<'static>,
    identity: Option<&ClientIdentity>,
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedServer {
            certificate: server.clone(),
            provider: Arc::clone(&provider),
        }));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let key = provider.key_provider.load_private_key(identity.key.clone_key());
            // Made by hand, because the usual way refuses a key that does not belong to the certificate.
            let pair = CertifiedKey::new(vec![identity.certificate.clone()], key.unwrap());
            builder.with_client_cert_resolver(Arc::new(Always(Arc::new(pair))))
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesClientCert for Always {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Go accepts the certificate of the handshake line as a root, and as the leaf below it; rustls' own verifier does not,
/// because it is marked as an authority. The name and the signatures are checked here, too.
#[derive(Debug)]
struct PinnedServer {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity != self.certificate {
            return Err(CertificateError::UnknownIssuer.into());
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
