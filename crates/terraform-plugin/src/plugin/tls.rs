//! Mutual TLS with one-off certificates: each side trusts exactly the other's (plugin protocol, AutoMTLS).
//!
//! The only file that uses rustls and rcgen.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName as RootHint, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use tokio_rustls::TlsAcceptor;

use super::Error;

/// The certificate of the only accepted client.
#[derive(Clone, Debug)]
pub(super) struct ClientCertificate(CertificateDer<'static>);

impl ClientCertificate {
    /// Reads the first certificate of `pem`; its private key stays with the client.
    pub(super) fn from_pem(pem: &str) -> Result<Self, Error> {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes());
        certificate.map(Self).map_err(|error| Error::ClientCertificate { reason: error.to_string() })
    }
}

/// The server's TLS settings and certificate, created for each process.
pub(super) struct TlsIdentity {
    /// Completes the TLS handshake of an accepted connection.
    pub(super) acceptor: TlsAcceptor,
    /// The certificate that the handshake line passes to the host.
    pub(super) certificate: CertificateDer<'static>,
}

impl TlsIdentity {
    /// Creates a key, a certificate for it, and settings that accept `client` alone.
    pub(super) fn for_client(client: &ClientCertificate) -> Result<Self, Error> {
        let (certificate, key) = self_signed().map_err(|error| Error::Certificate(error.into()))?;
        let config =
            server_config(client, certificate.clone(), key).map_err(|error| Error::Certificate(error.into()))?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), certificate })
    }
}

/// Creates the server's certificate like go-plugin's own, except for P-256: every host accepts that curve, and the
/// smaller key is generated and used several times faster.
fn self_signed() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    // The host checks this name, and not the common name.
    let mut params = CertificateParams::new([SERVER_NAME.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, SERVER_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyAgreement,
        KeyUsagePurpose::KeyCertSign,
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Ok((certificate.der().clone(), key))
}

fn server_config(
    client: &ClientCertificate,
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    // Named, because another library may have installed its own process-wide default. It is aws-lc, because ring cannot
    // verify the P-521 signatures of go-plugin's clients.
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(PinnedClient::new(client, &provider));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    // The host's gRPC library fails if no protocol is negotiated.
    config.alpn_protocols = vec![b"h2".to_vec()];
    // Every connection proves its key again: a process has only a few, so resumption would save little.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The name that the host expects in the server's certificate.
const SERVER_NAME: &str = "localhost";

/// Accepts the holder of the key of one certificate.
///
/// The usual verifier builds a chain to a root and refuses go-plugin's certificate, which is self-signed and marked as
/// an authority. Here the certificate must be the expected one, byte for byte. Because a certificate is public, the
/// signature checks below prove that the peer owns its key.
#[derive(Debug)]
struct PinnedClient {
    algorithms: WebPkiSupportedAlgorithms,
    certificate: CertificateDer<'static>,
}

impl PinnedClient {
    fn new(client: &ClientCertificate, provider: &CryptoProvider) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, certificate: client.0.clone() }
    }
}

impl ClientCertVerifier for PinnedClient {
    fn root_hint_subjects(&self) -> &[RootHint] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            Ok(ClientCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use rcgen::PKCS_ECDSA_P521_SHA512;

    use super::*;

    /// A client like go-plugin's.
    pub(in crate::plugin) fn client() -> ClientCertificate {
        ClientCertificate(client_certificate())
    }

    fn client_certificate() -> CertificateDer<'static> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512).unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn only_the_pinned_certificate_is_accepted_byte_for_byte() {
        let right = client_certificate();
        let verifier = PinnedClient::new(&ClientCertificate(right.clone()), &aws_lc_rs::default_provider());
        assert!(verifier.verify_client_cert(&right, &[], UnixTime::now()).is_ok());
        let (mut longer, shorter) = (right.to_vec(), right.get(..right.len() - 1).unwrap().to_vec());
        longer.push(0);
        for other in [longer, shorter, Vec::new(), client_certificate().to_vec()] {
            // The expected certificate among the intermediates is not accepted.
            let verdict = verifier.verify_client_cert(
                &CertificateDer::from(other),
                std::slice::from_ref(&right),
                UnixTime::now(),
            );
            assert_eq!(verdict.unwrap_err(), CertificateError::ApplicationVerificationFailure.into());
        }
    }

    #[test]
    fn http2_is_negotiated_and_no_session_resumed() {
        let (certificate, key) = self_signed().unwrap();
        let config = server_config(&client(), certificate, key).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec()]);
        assert!(!config.session_storage.can_cache());
        assert_eq!(config.send_tls13_tickets, 0);
    }
}
