//! Mutual TLS with the core.

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

fn pinned(certificate: &CertificateDer<'static>) -> PinnedClient {
    PinnedClient::new(&ClientCertificate(certificate.clone()), &aws_lc_rs::default_provider())
}

#[test]
fn the_pinned_certificate_is_accepted_and_any_other_refused() {
    let right = client_certificate();
    let verifier = pinned(&right);
    let now = UnixTime::now();
    assert!(verifier.verify_client_cert(&right, &[], now).is_ok());

    let wrong = client_certificate();
    // The right one among the intermediates does not help.
    let refused = verifier.verify_client_cert(&wrong, std::slice::from_ref(&right), now);
    assert_eq!(refused.unwrap_err(), CertificateError::ApplicationVerificationFailure.into());
}

#[test]
fn a_longer_or_a_shorter_certificate_is_refused() {
    let right = client_certificate();
    let verifier = pinned(&right);
    let mut longer = right.to_vec();
    longer.push(0);
    let shorter = right.get(..right.len() - 1).unwrap().to_vec();
    for other in [longer, shorter, Vec::new()] {
        let other = CertificateDer::from(other);
        let verdict = verifier.verify_client_cert(&other, &[], UnixTime::now());
        assert!(verdict.is_err());
    }
}

#[test]
fn a_certificate_is_asked_for_and_required() {
    let verifier = pinned(&client_certificate());
    assert!(verifier.offer_client_auth());
    assert!(verifier.client_auth_mandatory());
    assert!(verifier.root_hint_subjects().is_empty());
}

#[test]
fn the_signature_of_go_plugin_clients_is_offered() {
    let schemes = pinned(&client_certificate()).supported_verify_schemes();
    assert!(schemes.contains(&SignatureScheme::ECDSA_NISTP521_SHA512));
}

#[test]
fn every_process_has_another_certificate() {
    let client = client();
    let one = Identity::for_client(&client).unwrap();
    let other = Identity::for_client(&client).unwrap();
    assert_ne!(one.certificate, other.certificate);
}

#[test]
fn http2_is_negotiated_and_no_session_resumed() {
    let (certificate, key) = self_signed().unwrap();
    let config = server_config(&client(), certificate, key).unwrap();
    assert_eq!(config.alpn_protocols, [b"h2".to_vec()]);
    assert!(!config.session_storage.can_cache());
    assert_eq!(config.send_tls13_tickets, 0);
}
