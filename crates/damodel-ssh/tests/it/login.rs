//! Logins with keys, certificates and agents, at a real sshd.

use std::{fs, path::Path, time::Duration};

use damodel_ssh::{Credentials, Error, Session, SessionLimits, Target, connect};
use rstest::rstest;
use secrecy::SecretString;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::sshd::{Agent, Sshd};

/// Connects without repeating a refused login.
async fn log_in(target: &Target) -> Result<Session, Error> {
    let limits = SessionLimits { denied: Duration::ZERO, ..SessionLimits::default() };
    connect(target, &limits, Instant::now() + Duration::from_secs(60), &CancellationToken::new()).await
}

fn public_half(key: &Path) -> String {
    fs::read_to_string(key.with_extension("pub")).unwrap()
}

/// The error of a login that must fail, and its full output.
async fn refusal(target: &Target) -> (Error, String) {
    let error = log_in(target).await.unwrap_err();
    let text = format!("{error} {error:?} {target:?}");
    (error, text)
}

#[rstest]
#[case::ed25519(&["-t", "ed25519"], "OPENSSH")]
#[case::ecdsa_256(&["-t", "ecdsa", "-b", "256"], "OPENSSH")]
#[case::ecdsa_384(&["-t", "ecdsa", "-b", "384"], "OPENSSH")]
#[case::ecdsa_521(&["-t", "ecdsa", "-b", "521"], "OPENSSH")]
#[case::rsa(&["-t", "rsa", "-b", "2048"], "OPENSSH")]
#[case::rsa_pkcs1(&["-t", "rsa", "-b", "2048", "-m", "PEM"], "RSA")]
#[case::rsa_pkcs8(&["-t", "rsa", "-b", "2048", "-m", "PKCS8"], "-----BEGIN PRIVATE KEY")]
#[case::ecdsa_sec1(&["-t", "ecdsa", "-b", "256", "-m", "PEM"], "EC")]
#[case::ecdsa_384_sec1(&["-t", "ecdsa", "-b", "384", "-m", "PEM"], "EC")]
#[case::ecdsa_pkcs8(&["-t", "ecdsa", "-b", "521", "-m", "PKCS8"], "-----BEGIN PRIVATE KEY")]
#[tokio::test]
async fn every_form_of_key_logs_in(#[case] arguments: &[&str], #[case] form: &str) {
    let Some(sshd) = Sshd::started() else { return };
    let key = sshd.keys().make("other", arguments);
    sshd.authorize_nobody();
    sshd.authorize(&public_half(&key));
    let text = fs::read_to_string(&key).unwrap();
    assert!(text.lines().next().unwrap().contains(form), "{}", text.lines().next().unwrap());
    log_in(&sshd.target_with_key(&text)).await.unwrap();
    // As in an indented here-document of a file from Windows, with its byte order mark.
    let indented: String = text.lines().map(|line| format!("    {line}\r\n")).collect();
    log_in(&sshd.target_with_key(&format!("\u{feff}{indented}"))).await.unwrap();
    // In one line, as JSON and .env files have it.
    let file = key.with_extension("line");
    fs::write(&file, text.replace('\n', "\\n")).unwrap();
    log_in(&sshd.target_with(Credentials { private_key_file: Some(file), ..Credentials::default() })).await.unwrap();
}

#[rstest]
#[case::ed25519("ed25519")]
#[case::ecdsa("ecdsa")]
#[case::rsa("rsa")]
#[tokio::test]
async fn a_certificate_logs_in(#[case] kind: &str) {
    let Some(mut sshd) = Sshd::prepare() else { return };
    let authority = sshd.keys().make("authority", &["-t", "ed25519"]);
    let key = sshd.keys().make("other", &["-t", kind]);
    sshd.authorize_nobody();
    sshd.line(&format!("TrustedUserCAKeys {}", authority.with_extension("pub").display()));
    sshd.start();
    let mut target = sshd.target_with_key(&fs::read_to_string(&key).unwrap());
    target.credentials.certificate = Some(sshd.keys().sign(&authority, &key, &target.user));
    log_in(&target).await.unwrap();
    // The same with the key in a file; without the certificate the key is not authorized.
    target.credentials.private_key_file = Some(key);
    target.credentials.private_key = None;
    log_in(&target).await.unwrap();
    target.credentials.certificate = None;
    let (error, _) = refusal(&target).await;
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

#[tokio::test]
async fn a_certificate_of_another_key_is_told_before_anything_is_sent() {
    let Some(sshd) = Sshd::started() else { return };
    let authority = sshd.keys().make("authority", &["-t", "ed25519"]);
    let (key, other) = (sshd.keys().make("a", &["-t", "ed25519"]), sshd.keys().make("b", &["-t", "ed25519"]));
    let mut target = sshd.target_with_key(&fs::read_to_string(&key).unwrap());
    target.credentials.certificate = Some(sshd.keys().sign(&authority, &other, "root"));
    let (error, text) = refusal(&target).await;
    assert!(text.contains("the certificate cannot be used: it belongs to a key other than"), "{error}");
    assert_eq!(sshd.attempts(), 0);
}

#[rstest]
#[case::openssh(&["-t", "ed25519"])]
#[case::pkcs1(&["-t", "rsa", "-b", "2048", "-m", "PEM"])]
#[case::pkcs8(&["-t", "rsa", "-b", "2048", "-m", "PKCS8"])]
#[case::sec1(&["-t", "ecdsa", "-m", "PEM"])]
#[tokio::test]
async fn an_encrypted_key_is_told_as_such(#[case] arguments: &[&str]) {
    let Some(sshd) = Sshd::started() else { return };
    let key = sshd.keys().make_encrypted("other", "a passphrase", arguments);
    let target = sshd.target_with_key(&fs::read_to_string(&key).unwrap());
    let (error, text) = refusal(&target).await;
    assert!(matches!(error, Error::EncryptedKey { .. }), "{error}");
    assert!(text.contains("the private key is encrypted: give one without a passphrase"), "{error}");
    let file = Credentials { private_key_file: Some(key), ..Credentials::default() };
    let (error, _) = refusal(&sshd.target_with(file)).await;
    assert!(matches!(error, Error::EncryptedKey { ref what } if what.starts_with("private key file /")), "{error}");
    assert_eq!(sshd.attempts(), 0);
}

#[tokio::test]
async fn a_broken_key_is_told_without_a_word_of_it() {
    let Some(sshd) = Sshd::started() else { return };
    let key = sshd.keys().make("other", &["-t", "ed25519"]);
    let lines: Vec<String> = fs::read_to_string(&key).unwrap().lines().map(str::to_owned).collect();
    let without_a_line = [&lines[..2], &lines[3..]].concat().join("\n");
    for (text, word) in [
        (without_a_line, "damaged"),
        (String::new(), "empty"),
        (public_half(&key), "not a private key"),
        ("-----BEGIN PRIVATE KEY-----\nPLANTED\n-----END PRIVATE KEY-----".to_owned(), "damaged"),
        ("-----BEGIN DSA PRIVATE KEY-----\nPLANTED\n-----END DSA PRIVATE KEY-----".to_owned(), "damaged"),
    ] {
        let (error, shown) = refusal(&sshd.target_with_key(&text)).await;
        assert!(matches!(error, Error::BadKey { .. }), "{error}");
        assert!(shown.contains(word), "{error}");
        assert!(!shown.contains("PLANTED") && !shown.contains(&lines[1]), "{shown}");
    }
    let of_powershell = key.with_extension("utf16");
    let units: Vec<u8> = format!("\u{feff}{}", lines.join("\r\n")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&of_powershell, units).unwrap();
    let file = Credentials { private_key_file: Some(of_powershell), ..Credentials::default() };
    let (error, _) = refusal(&sshd.target_with(file)).await;
    assert!(error.to_string().contains("it is UTF-16"), "{error}");
    let missing = Credentials { private_key_file: Some("/nowhere/key".into()), ..Credentials::default() };
    let (error, _) = refusal(&sshd.target_with(missing)).await;
    assert!(error.to_string().contains("/nowhere/key cannot be used: No such file"), "{error}");
    assert_eq!(sshd.attempts(), 0);
}

#[tokio::test]
async fn a_refused_login_names_what_was_tried_and_what_is_taken() {
    let Some(sshd) = Sshd::started() else { return };
    sshd.authorize_nobody();
    let mut target = sshd.target();
    target.credentials.password = Some(SecretString::from("PLANTED"));
    let (error, shown) = refusal(&target).await;
    let text = error.to_string();
    assert!(text.contains(&format!("{}@127.0.0.1:{} refused the login", target.user, sshd.port())), "{text}");
    assert!(text.contains("tried: private key file /") && text.contains("ssh-ed25519 SHA256:"), "{text}");
    assert!(text.ends_with("(the server accepts publickey)"), "{text}");
    assert!(!shown.contains("PLANTED"), "{shown}");
    let nothing = refusal(&sshd.target_with(Credentials::default())).await.0.to_string();
    assert!(nothing.contains("no credential was given that the server accepts (it accepts publickey)"), "{nothing}");
}

#[tokio::test]
async fn the_keys_of_an_agent_log_in() {
    let Some(sshd) = Sshd::started() else { return };
    let agent = Agent::start();
    let credentials = Credentials { agent: Some(agent.socket()), ..Credentials::default() };
    let target = sshd.target_with(credentials);
    let (error, _) = refusal(&target).await;
    assert!(error.to_string().contains("which has no keys"), "{error}");
    for (name, kind) in [("stranger", "ed25519"), ("rsa", "rsa")] {
        let key = sshd.keys().make(name, &["-t", kind]);
        agent.add(&key);
        if kind == "rsa" {
            sshd.authorize_nobody();
            sshd.authorize(&public_half(&key));
        }
    }
    log_in(&target).await.unwrap();
}

#[tokio::test]
async fn an_agent_signs_for_a_certificate() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    let authority = sshd.keys().make("authority", &["-t", "ed25519"]);
    sshd.line(&format!("TrustedUserCAKeys {}", authority.with_extension("pub").display()));
    sshd.start();
    sshd.authorize_nobody();
    let key = sshd.keys().make("other", &["-t", "rsa", "-b", "2048"]);
    // Loaded before it is signed: the agent does not have the certificate.
    let agent = Agent::start();
    agent.add(&key);
    let mut target = sshd.target_with(Credentials { agent: Some(agent.socket()), ..Credentials::default() });
    target.credentials.certificate = Some(sshd.keys().sign(&authority, &key, &target.user));
    log_in(&target).await.unwrap();
    // Loaded together with the certificate beside it, the agent offers the certificate by itself.
    agent.add(&key);
    target.credentials.certificate = None;
    log_in(&target).await.unwrap();
}

/// Such a key was refused, with the advice to load it into an agent.
#[rstest]
#[case::openssh(&["-t", "ed25519"], &[], "")]
#[case::pem(&["-t", "rsa", "-b", "2048"], &["-m", "PEM"], "")]
#[case::public(&["-t", "ed25519"], &[], ".pub")]
#[case::certificate(&["-t", "ed25519"], &[], "certificate")]
#[tokio::test]
async fn a_key_with_a_passphrase_is_used_through_the_agent_first_and_alone(
    #[case] kind: &[&str],
    #[case] form: &[&str],
    #[case] given: &str,
) {
    let Some(mut sshd) = Sshd::prepare() else { return };
    let authority = sshd.keys().make("authority", &["-t", "ed25519"]);
    sshd.line(&format!("TrustedUserCAKeys {}", authority.with_extension("pub").display()));
    sshd.start();
    sshd.authorize_nobody();
    let (agent, key) = (Agent::start(), sshd.keys().make("other", kind));
    for index in 0..7 {
        agent.add(&sshd.keys().make(&format!("stranger{index}"), &["-t", "ed25519"]));
    }
    agent.add(&key);
    sshd.keys().encrypt(&key, form);
    let mut target = sshd.target_with(Credentials { agent: Some(agent.socket()), ..Credentials::default() });
    if given == "certificate" {
        target.credentials.certificate = Some(sshd.keys().sign(&authority, &key, &target.user));
    } else {
        sshd.authorize(&public_half(&key));
        target.credentials.private_key_file = Some(format!("{}{given}", key.display()).into());
    }
    log_in(&target).await.unwrap();
    let attempts = sshd.attempts();
    assert!(attempts <= 3, "{attempts} attempts");
    // The public half alone.
    fs::remove_file(&key).unwrap();
    log_in(&target).await.unwrap();
    // An agent that does not have it, and no agent.
    let empty = Agent::start();
    target.credentials.agent = Some(empty.socket());
    let (error, _) = refusal(&target).await;
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    target.credentials.agent = None;
    if given == ".pub" {
        let (error, _) = refusal(&target).await;
        assert!(error.to_string().contains("not a private key: it names a key of an agent"), "{error}");
    }
    if let Some(certificate) = target.credentials.certificate.take() {
        target.credentials.private_key = Some(SecretString::from(certificate));
        let (error, _) = refusal(&target).await;
        assert!(error.to_string().contains("it is a certificate, which is another argument"), "{error}");
    }
}

/// The refusal named the agent alone.
#[rstest]
#[case::openssh(&[])]
#[case::pem(&["-m", "PKCS8"])]
#[tokio::test]
async fn a_key_with_a_passphrase_that_no_agent_has_is_named(#[case] form: &[&str]) {
    let Some(sshd) = Sshd::started() else { return };
    let (agent, key) = (Agent::start(), sshd.keys().make("other", &["-t", "ecdsa"]));
    sshd.keys().encrypt(&key, form);
    fs::remove_file(key.with_extension("pub")).unwrap();
    sshd.authorize_nobody();
    let credentials = Credentials { private_key_file: Some(key.clone()), ..Credentials::default() };
    let mut target = sshd.target_with(Credentials { agent: Some(agent.socket()), ..credentials });
    let passphrase =
        format!("private key file {}, which has a passphrase: load it into the agent with ssh-add", key.display());
    for socket in [agent.socket(), "/nowhere/agent".into()] {
        target.credentials.agent = Some(socket);
        let (error, _) = refusal(&target).await;
        assert!(error.to_string().contains(&passphrase), "{error}");
    }
    agent.add(&sshd.keys().make("stranger", &["-t", "ed25519"]));
    target.credentials.agent = Some(agent.socket());
    let (error, _) = refusal(&target).await;
    assert!(error.to_string().contains(&passphrase), "{error}");
}

#[tokio::test]
async fn an_agent_that_is_gone_leaves_the_other_credentials() {
    let Some(sshd) = Sshd::started() else { return };
    let mut target = sshd.target();
    target.credentials.agent = Some("/nowhere/agent".into());
    log_in(&target).await.unwrap();
    sshd.authorize_nobody();
    let (error, _) = refusal(&target).await;
    assert!(error.to_string().contains("agent at /nowhere/agent, which failed: No such file"), "{error}");
}

/// At most four keys of an agent were tried.
#[tokio::test]
async fn the_server_decides_how_many_keys_of_an_agent_it_takes() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("PasswordAuthentication yes");
    sshd.start();
    let agent = Agent::start();
    let add = |name: &str| {
        let key = sshd.keys().make(name, &["-t", "ed25519"]);
        agent.add(&key);
        key
    };
    for index in 0..4 {
        add(&format!("stranger{index}"));
    }
    let fifth = add("fifth");
    sshd.authorize_nobody();
    sshd.authorize(&public_half(&fifth));
    let mut target = sshd.target_with(Credentials { agent: Some(agent.socket()), ..Credentials::default() });
    log_in(&target).await.unwrap();
    sshd.authorize_nobody();
    for index in 5..8 {
        add(&format!("stranger{index}"));
    }
    let (error, _) = refusal(&target).await;
    assert!(error.to_string().contains("server message: Too many authentication failures"), "{error}");
    // A password has its turn.
    target.credentials.password = Some(SecretString::from("PLANTED"));
    let (error, shown) = refusal(&target).await;
    assert!(error.to_string().contains("the agent's other 4 keys were not tried; password"), "{error}");
    assert!(!shown.contains("PLANTED"), "{shown}");
}

#[tokio::test]
async fn a_server_that_loses_its_patience_is_quoted() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("MaxAuthTries 1");
    sshd.start();
    let stranger = sshd.keys().make("stranger", &["-t", "ed25519"]);
    let mut target = sshd.target();
    target.credentials.private_key = Some(SecretString::from(fs::read_to_string(stranger).unwrap()));
    let (error, _) = refusal(&target).await;
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    assert!(error.to_string().contains("server message: Too many authentication failures"), "{error}");
}
