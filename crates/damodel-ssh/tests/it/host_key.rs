//! Host keys: pinned, learnt, and changed. A wrong server never gets an attempt to log in.

use std::{sync::Arc, time::Duration};

use damodel_ssh::{Error, HostKey, Pin, Session, SessionLimits, Target, connect};
use rstest::rstest;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::sshd::Sshd;

async fn reach(target: &Target) -> Result<Session, Error> {
    let deadline = Instant::now() + Duration::from_secs(60);
    connect(target, &SessionLimits::default(), deadline, &CancellationToken::new()).await
}

/// The fingerprints of a refused key: the pinned one, the shown one, and the address.
async fn refused(target: &Target) -> (String, String, String) {
    match reach(target).await.unwrap_err() {
        Error::HostKeyChanged { address, expected, shown, key, is_bastion } => {
            assert_eq!(is_bastion, target.bastion.as_ref().is_some_and(|bastion| address == place(bastion)));
            assert_eq!(key.fingerprint(), shown);
            (expected, shown, address)
        }
        other => panic!("{other}"),
    }
}

fn place(target: &Target) -> String {
    format!("{}:{}", target.host, target.port)
}

fn fingerprint(line: &str) -> String {
    line.parse::<HostKey>().unwrap().fingerprint()
}

#[tokio::test]
async fn without_a_pin_the_session_tells_the_key_and_it_can_be_pinned() {
    let Some(sshd) = Sshd::started() else { return };
    let mut target = sshd.target();
    let session = reach(&target).await.unwrap();
    assert!(sshd.host_key("ed25519").starts_with(&session.host_key().to_string()));
    assert_eq!(session.bastion_host_key(), None);
    for pin in [session.host_key().to_string(), session.host_key().fingerprint(), sshd.host_key("ed25519")] {
        target.pin = Some(pin.parse().unwrap());
        reach(&target).await.unwrap();
    }
}

#[tokio::test]
async fn a_changed_key_is_refused_before_any_credential_is_sent() {
    let Some(mut sshd) = Sshd::started() else { return };
    let mut target = sshd.target();
    target.pin = Some(sshd.pin("ed25519"));
    reach(&target).await.unwrap();
    let before = fingerprint(&sshd.host_key("ed25519"));
    sshd.stop();
    sshd.replace_host_keys();
    sshd.start();
    let after = fingerprint(&sshd.host_key("ed25519"));
    let seen = sshd.attempts();
    for pin in [target.pin.clone().unwrap(), before.parse().unwrap()] {
        target.pin = Some(pin);
        assert_eq!(refused(&target).await, (before.clone(), after.clone(), format!("127.0.0.1:{}", sshd.port())));
    }
    let error = reach(&target).await.unwrap_err().to_string();
    assert!(error.contains(&before) && error.contains(&format!("ssh-ed25519 {after}")), "{error}");
    assert!(error.ends_with("no credential was sent"), "{error}");
    // Only without the pin it is accepted.
    target.pin = None;
    reach(&target).await.unwrap();
    sshd.until("the last login alone is seen", |sshd| sshd.attempts() > seen);
    let lines: Vec<String> =
        sshd.log().lines().filter(|line| line.contains("userauth-request")).map(str::to_owned).collect();
    // The question for methods, and the key: of the first login and of the last one.
    assert_eq!(lines.len(), seen * 2, "{lines:#?}");
}

#[rstest]
#[case("ed25519")]
#[case("ecdsa")]
#[case("rsa")]
#[tokio::test]
async fn a_server_with_several_keys_shows_the_pinned_one(#[case] kind: &str) {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.host_keys(&["rsa", "ecdsa", "ed25519"]);
    sshd.start();
    let mut target = sshd.target();
    for pin in [sshd.pin(kind), fingerprint(&sshd.host_key(kind)).parse::<Pin>().unwrap()] {
        target.pin = Some(pin);
        let session = reach(&target).await.unwrap();
        assert_eq!(session.host_key().fingerprint(), fingerprint(&sshd.host_key(kind)));
    }
}

#[tokio::test]
async fn a_server_without_a_key_of_the_pinned_kind_is_another_server() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.host_keys(&["ecdsa"]);
    sshd.start();
    let other = sshd.keys().make("other", &["-t", "ed25519"]);
    let line = std::fs::read_to_string(other.with_extension("pub")).unwrap();
    let mut target = sshd.target();
    for pin in [line.parse().unwrap(), fingerprint(&line).parse().unwrap()] {
        target.pin = Some(pin);
        let (expected, shown, _) = refused(&target).await;
        assert_eq!((expected, shown), (fingerprint(&line), fingerprint(&sshd.host_key("ecdsa"))));
    }
    assert_eq!(sshd.attempts(), 0);
}

/// A bastion that forwards to one server only, and this server.
struct Behind {
    bastion: Sshd,
    inner: Sshd,
    target: Target,
}

impl Behind {
    fn start() -> Option<Self> {
        let (mut bastion, inner) = (Sshd::prepare()?, Sshd::started()?);
        bastion.line(&format!("PermitOpen 127.0.0.1:{}", inner.port()));
        // Like real bastions, it offers no shell.
        bastion.line("ForceCommand /bin/false");
        bastion.start();
        let mut target = inner.target();
        target.pin = Some(inner.pin("ed25519"));
        let mut through = bastion.target();
        through.pin = Some(bastion.pin("ed25519"));
        target.bastion = Some(Box::new(through));
        Some(Self { bastion, inner, target })
    }
}

#[tokio::test]
async fn a_bastion_has_credentials_and_a_pin_of_its_own() {
    let Some(behind) = Behind::start() else { return };
    let session = reach(&behind.target).await.unwrap();
    assert_eq!(session.host_key().fingerprint(), fingerprint(&behind.inner.host_key("ed25519")));
    let bastion = session.bastion_host_key().unwrap().fingerprint();
    assert_eq!(bastion, fingerprint(&behind.bastion.host_key("ed25519")));
    let output = session.run("cat; pwd", b"through").await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("through{}\n", behind.inner.home().display()));
    // The bastion's key does not open the inner server.
    let mut swapped = behind.target.clone();
    swapped.credentials = behind.bastion.target().credentials;
    let limits = SessionLimits { denied: Duration::ZERO, ..SessionLimits::default() };
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = connect(&swapped, &limits, deadline, &CancellationToken::new()).await.unwrap_err();
    let inner = format!("127.0.0.1:{}", behind.inner.port());
    assert!(matches!(&error, Error::Denied { address, .. } if *address == inner), "{error}");
}

#[tokio::test]
async fn a_bastion_with_another_key_learns_nothing() {
    let Some(mut behind) = Behind::start() else { return };
    behind.bastion.stop();
    behind.bastion.replace_host_keys();
    behind.bastion.start();
    let (_, shown, address) = refused(&behind.target).await;
    assert_eq!(shown, fingerprint(&behind.bastion.host_key("ed25519")));
    assert_eq!(address, format!("127.0.0.1:{}", behind.bastion.port()));
    assert_eq!((behind.bastion.attempts(), behind.inner.attempts()), (0, 0));
}

#[tokio::test]
async fn a_server_with_another_key_behind_a_bastion_learns_nothing() {
    let Some(mut behind) = Behind::start() else { return };
    behind.inner.stop();
    behind.inner.replace_host_keys();
    behind.inner.start();
    let (_, shown, address) = refused(&behind.target).await;
    assert_eq!(shown, fingerprint(&behind.inner.host_key("ed25519")));
    assert_eq!(address, format!("127.0.0.1:{}", behind.inner.port()));
    assert_eq!(behind.inner.attempts(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_up_behind_a_bastion_is_waited_for_with_one_login_there() {
    let Some(mut behind) = Behind::start() else { return };
    behind.inner.stop();
    let target = behind.target.clone();
    let waiting = tokio::spawn(async move { reach(&target).await });
    // It was refused twice, so it will be tried again.
    behind.bastion.until("the bastion was asked twice", |sshd| sshd.log().matches("connect_to 127.0.0.1").count() >= 2);
    behind.inner.start();
    let session = Arc::new(waiting.await.unwrap().unwrap());
    assert!(session.run("true", b"").await.unwrap().is_success());
    assert_eq!(behind.bastion.log().matches("Accepted publickey").count(), 1);
}

#[tokio::test]
async fn a_bastion_that_permits_no_channel_is_told() {
    let Some(mut bastion) = Sshd::prepare() else { return };
    bastion.line("AllowTcpForwarding no");
    bastion.start();
    let mut target = bastion.target();
    target.host = "10.0.0.1".to_owned();
    target.bastion = Some(Box::new(bastion.target()));
    let error = reach(&target).await.unwrap_err();
    assert!(matches!(&error, Error::Forbidden { host, .. } if host == "10.0.0.1"), "{error}");
}
