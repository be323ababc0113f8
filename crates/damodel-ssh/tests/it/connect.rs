//! Servers that start late, or never, or disconnect.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use damodel_ssh::{Error, Exit, Session, SessionLimits, Target, connect, log_in};
use rstest::rstest;
use tokio::{io::AsyncWriteExt, net::TcpListener, sync::Notify, task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer, Registry,
    layer::{self, SubscriberExt as _},
};

use crate::support::{
    ports::free_port,
    sshd::{Cable, Sshd},
    wait::wait_until,
};

const LONG: Duration = Duration::from_secs(60);

async fn reach(target: &Target, limits: &SessionLimits, patience: Duration) -> Result<Session, Error> {
    connect(target, limits, Instant::now() + patience, &CancellationToken::new()).await
}

fn last_of(error: Error) -> Error {
    match error {
        Error::TimedOut { last: Some(last), .. } => *last,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_waited_for() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    let target = sshd.target();
    let refused = Arc::new(Notify::new());
    let _listening = tracing::subscriber::set_default(Registry::default().with(Refusals(refused.clone())));
    let waiting = tokio::spawn(async move { reach(&target, &SessionLimits::default(), LONG).await });
    refused.notified().await;
    sshd.start();
    let session = waiting.await.unwrap().unwrap();
    assert!(session.run("true", b"").await.unwrap().is_success());
}

/// Gets each failed attempt that will be repeated.
struct Refusals(Arc<Notify>);

impl<S: Subscriber> Layer<S> for Refusals {
    fn on_event(&self, event: &Event<'_>, _: layer::Context<'_, S>) {
        if event.metadata().target() == "damodel_ssh::session" {
            self.0.notify_one();
        }
    }
}

#[tokio::test]
async fn a_server_that_never_comes_up_is_given_up_at_the_deadline() {
    let Some(sshd) = Sshd::prepare() else { return };
    let begin = Instant::now();
    let error = reach(&sshd.target(), &SessionLimits::default(), Duration::from_millis(700)).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(error.is_out_of_reach());
    assert!(error.to_string().contains("took too long; last: 127.0.0.1:"), "{error}");
    let last = last_of(error);
    assert!(last.to_string().ends_with("cannot be reached: connection refused"), "{last}");
}

#[tokio::test]
async fn a_port_without_a_banner_is_asked_again() {
    let Some(sshd) = Sshd::started() else { return };
    // Like a load balancer whose server is still booting: accepts, and disconnects or sends nothing.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (inner, asked) = (sshd.port(), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    let balancer = tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut near, _)) = listener.accept().await {
            match counted.fetch_add(1, Ordering::SeqCst) {
                0 => drop(near),
                1 => silent.push(near),
                2 => near.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap(),
                _ => {
                    let mut far = tokio::net::TcpStream::connect(("127.0.0.1", inner)).await.unwrap();
                    tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
                }
            }
        }
    });
    let mut target = sshd.target();
    target.port = port;
    let limits = SessionLimits { connect: Duration::from_secs(3), ..SessionLimits::default() };
    reach(&target, &limits, LONG).await.unwrap();
    assert!(asked.load(Ordering::SeqCst) >= 4);
    balancer.abort();
}

#[tokio::test]
async fn a_key_that_is_installed_late_is_tried_again() {
    let Some(sshd) = Sshd::started() else { return };
    let target = sshd.target();
    let key = fs::read_to_string(target.credentials.private_key_file.as_ref().unwrap().with_extension("pub")).unwrap();
    sshd.authorize_nobody();
    let limits = SessionLimits { denied: Duration::from_secs(3), ..SessionLimits::default() };
    let waiting = tokio::spawn(async move { reach(&target, &limits, LONG).await });
    let sshd = spawn_blocking(move || {
        sshd.until("it was refused once", |sshd| sshd.log().contains("Failed publickey"));
        sshd.authorize(&key);
        sshd
    });
    waiting.await.unwrap().unwrap();
    drop(sshd.await.unwrap());
}

#[tokio::test]
async fn a_login_that_stays_refused_is_given_up_soon() {
    let Some(sshd) = Sshd::started() else { return };
    sshd.authorize_nobody();
    let begin = Instant::now();
    let limits = SessionLimits { denied: Duration::from_secs(1), ..SessionLimits::default() };
    let error = reach(&sshd.target(), &limits, Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
    // More attempts would cause a ban: fail2ban bans after five.
    let tries = sshd.log().matches("Failed publickey").count();
    assert!((2..=3).contains(&tries) && begin.elapsed() < LONG, "{tries} in {:?}", begin.elapsed());
    // A deadline before the end of the window does not hide the reason.
    let error = reach(&sshd.target(), &SessionLimits::default(), Duration::from_secs(4)).await.unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

/// Like a ban by fail2ban.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_bans_us_for_a_refused_login_has_refused_the_login() {
    let Some(mut sshd) = Sshd::started() else { return };
    let target = sshd.target();
    sshd.authorize_nobody();
    let limits = SessionLimits { denied: Duration::from_secs(2), ..SessionLimits::default() };
    let waiting = tokio::spawn(async move { reach(&target, &limits, Duration::from_secs(10)).await });
    sshd.until("it was refused once", |sshd| sshd.log().contains("Failed publickey"));
    // The attempt is answered before the server stops.
    sshd.until("the connection has ended", |sshd| sshd.log().contains("Connection closed"));
    sshd.stop();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error}");
}

#[tokio::test]
async fn a_user_without_a_shell_is_not_ready() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("ForceCommand echo this account is not available; exit 1");
    sshd.start();
    let error = reach(&sshd.target(), &SessionLimits::default(), Duration::from_secs(4)).await.unwrap_err();
    let last = last_of(error);
    assert!(matches!(last, Error::NotReady { .. }), "{last}");
    assert!(last.to_string().ends_with("exit code 1: this account is not available"), "{last}");
}

/// Such a host was waited for, for as long as one that is still starting.
#[rstest]
#[case("echo 'Please login as the user \"ubuntu\" rather than the user \"root\".'; exit 142")]
#[case("echo 'You are required to change your password immediately (administrator enforced).' >&2; exit 1")]
#[case("echo 'WARNING: Your password has expired.' >&2; exit 1")]
#[case("echo 'Password change required but no TTY available.' >&2; exit 1")]
#[case("echo \"Error: Your SSH client doesn't support PTY\"")]
#[case("echo 'This account is currently not available.'; exit 1")]
#[case("echo 'This service allows sftp connections only.'; exit 1")]
#[tokio::test]
async fn a_refusal_of_commands_that_will_not_pass_ends_the_wait(#[case] session: &str) {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line(&format!("ForceCommand {session}"));
    sshd.start();
    let error = reach(&sshd.target(), &SessionLimits::default(), Duration::from_secs(15)).await.unwrap_err();
    let begins = format!("{}@127.0.0.1:{} may not run commands: ", sshd.target().user, sshd.port());
    assert!(error.to_string().starts_with(&begins) && !error.is_out_of_reach(), "{error}");
    // Also where the login itself runs no command.
    let (target, limits, cancel) = (sshd.target(), SessionLimits::default(), CancellationToken::new());
    let session = log_in(&target, &limits, Instant::now() + LONG, &cancel).await.unwrap();
    let error = session.script(":", &[]).await.unwrap_err();
    assert!(error.to_string().starts_with(&begins), "{error}");
}

/// A window title, or a text without a newline, made a login that "runs no commands".
#[tokio::test]
async fn what_start_files_write_around_an_answer_does_not_hide_it() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.session_line("printf '\\033]0;host\\007welcome'");
    sshd.session_line("/bin/sh -c \"$SSH_ORIGINAL_COMMAND\"; code=$?; printf bye; exit $code");
    sshd.start();
    let session = reach(&sshd.target(), &SessionLimits::default(), Duration::from_secs(10)).await.unwrap();
    let output = session.script("printf '%s, %s' \"$1\" \"$2\"; exit 7", &["it's", "$HOME"]).await.unwrap();
    assert_eq!((output.stdout, output.exit), (b"it's, $HOME".to_vec(), Exit::Code(7)));
}

/// Such hosts had no algorithm in common with us.
#[rstest]
#[case("ecdh-sha2-nistp256", "aes128-gcm@openssh.com")]
#[case("ecdh-sha2-nistp384", "aes256-gcm@openssh.com")]
#[case("ecdh-sha2-nistp521", "aes128-ctr")]
#[tokio::test]
async fn a_hardened_host_is_reached(#[case] exchange: &str, #[case] cipher: &str) {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line(&format!("KexAlgorithms {exchange}"));
    sshd.line(&format!("Ciphers {cipher}"));
    sshd.start();
    let session = reach(&sshd.target(), &SessionLimits::default(), LONG).await.unwrap();
    assert!(session.run("true", b"").await.unwrap().is_success());
}

#[tokio::test]
async fn a_cancel_ends_a_wait_at_once() {
    let Some(sshd) = Sshd::prepare() else { return };
    let cancel = CancellationToken::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (mut target, token) = (sshd.target(), cancel.clone());
    target.port = listener.local_addr().unwrap().port();
    let waiting =
        tokio::spawn(async move { connect(&target, &SessionLimits::default(), Instant::now() + LONG, &token).await });
    // A server that sends nothing would be waited for.
    let _silent = listener.accept().await.unwrap();
    cancel.cancel();
    let begin = Instant::now();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_told() {
    let Some(sshd) = Sshd::prepare() else { return };
    let mut target = sshd.target();
    target.host = "nobody.invalid".to_owned();
    target.port = free_port();
    let error = reach(&target, &SessionLimits::default(), Duration::from_secs(3)).await.unwrap_err();
    assert!(error.to_string().contains("nobody.invalid:"), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_of_a_command_is_told() {
    let Some(sshd) = Sshd::started() else { return };
    let cable = Cable::to(sshd.port()).await;
    let mut target = sshd.target();
    target.port = cable.port();
    let session = reach(&target, &SessionLimits::default(), LONG).await.unwrap();
    assert!(!session.is_lost());
    let broken = async {
        until_exists(&sshd.home().join("begun")).await;
        cable.cut();
    };
    let (outcome, ()) = tokio::join!(session.run("touch begun; cat", &[0; 10 << 20]), broken);
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }) && error.is_out_of_reach(), "{error}");
    assert!(session.is_lost());
    let error = session.run("true", b"").await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_falls_silent_is_lost_after_the_keepalives() {
    let Some(sshd) = Sshd::started() else { return };
    let cable = Cable::to(sshd.port()).await;
    let mut target = sshd.target();
    target.port = cable.port();
    let limits = SessionLimits { keepalive: Duration::from_millis(200), missed: 2, ..SessionLimits::default() };
    let session = reach(&target, &limits, LONG).await.unwrap();
    // A silent command does not mean a silent server.
    assert!(session.run("sleep 2", b"").await.unwrap().is_success());
    let frozen = async {
        until_exists(&sshd.home().join("begun")).await;
        cable.freeze();
    };
    let begin = Instant::now();
    let (outcome, ()) = tokio::join!(session.run("touch begun; sleep 120", b""), frozen);
    let error = outcome.unwrap_err();
    assert!(matches!(&error, Error::Lost { reason, .. } if reason.contains("no longer answers")), "{error}");
    assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
    assert_eq!(cable.connections(), 1);
    cable.mend();
}

async fn until_exists(file: &Path) {
    let file = file.to_owned();
    spawn_blocking(move || wait_until("the file", || file.exists())).await.unwrap();
}
