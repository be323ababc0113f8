//! Passwords, which a real sshd accepts only from users of the computer, and other features that it lacks: against a
//! server of the test's own.

use std::{
    borrow::Cow,
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use damodel_ssh::{Credentials, Error, Exit, GivenAway, Session, SessionLimits, Target, connect};
use rstest::rstest;
use russh::{
    Channel, ChannelId, MethodKind, MethodSet, Preferred,
    keys::{Algorithm, HashAlg, PrivateKey},
    server::{
        Auth, ChannelOpenHandle, Config, Handler, Msg, Response, Session as Served, VerifiedPublicKey, run_stream,
    },
};
use secrecy::SecretString;
use tokio::{
    net::TcpListener,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::support::sshd::Sshd;

const PASSWORD: &str = "PLANTED pass wörd";

/// The method that a server asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// The password, as an answer to a question.
    Answer,
    /// First the password by its own method, then as an answer.
    Both,
    /// A code beside the password.
    Code,
    /// Another password, because that one has expired.
    Expired,
    /// The password, and ends the connection.
    HangsUp,
    /// The password, and does not answer.
    IsSilent,
    /// Nothing: it says this and ends the connection, as sshd where PAM refuses the account.
    Leave(&'static str),
    /// Nothing.
    Nothing,
    /// The password, by its own method.
    Password,
    /// The password, and answers after a second, as with a directory service.
    Slowly,
    /// An RSA key that signs with this hash.
    Rsa(HashAlg),
}

#[derive(Debug, Clone)]
struct Server {
    asks: Asks,
    /// The attempts, with their values.
    seen: Arc<Mutex<Vec<String>>>,
}

/// A server on a free port. Ends when dropped.
struct Running {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    _listening: AbortOnDropHandle<()>,
}

impl Running {
    async fn start(asks: Asks) -> Self {
        let methods: &[MethodKind] = match asks {
            Asks::Answer | Asks::Code | Asks::Expired => &[MethodKind::PublicKey, MethodKind::KeyboardInteractive],
            Asks::Both | Asks::HangsUp | Asks::IsSilent | Asks::Password | Asks::Slowly => &[MethodKind::Password],
            Asks::Nothing => &[MethodKind::None],
            Asks::Leave(_) | Asks::Rsa(_) => &[MethodKind::PublicKey],
        };
        let mut preferred = Preferred::default();
        if let Asks::Rsa(hash) = asks {
            preferred.key = Cow::Owned(vec![Algorithm::Ed25519, Algorithm::Rsa { hash: Some(hash) }]);
        }
        let config = Arc::new(Config {
            methods: MethodSet::from(methods),
            auth_rejection_time: Duration::ZERO,
            preferred,
            keys: vec![PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap()],
            ..Config::default()
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Server { asks, seen: Arc::default() };
        let seen = server.seen.clone();
        let listening = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (config, server) = (config.clone(), server.clone());
                tokio::spawn(async move { run_stream(config, connection, server).await.unwrap().await });
            }
        });
        Self { port, seen, _listening: AbortOnDropHandle::new(listening) }
    }

    fn target(&self, password: Option<&str>) -> Target {
        let credentials = Credentials { password: password.map(SecretString::from), ..Credentials::default() };
        let host = "127.0.0.1".to_owned();
        let (user, given_away) = ("somebody".to_owned(), GivenAway::default());
        Target { host, port: self.port, user, credentials, pin: None, bastion: None, given_away }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Server {
    fn see(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

impl Handler for Server {
    type Error = russh::Error;

    async fn authentication_banner(&mut self) -> Result<Option<String>, Self::Error> {
        Ok(if let Asks::Leave(text) = self.asks { Some(text.to_owned()) } else { None })
    }

    async fn auth_none(&mut self, _: &str) -> Result<Auth, Self::Error> {
        if let Asks::Leave(_) = self.asks {
            return Err(russh::Error::Disconnect);
        }
        Ok(if self.asks == Asks::Nothing { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, Self::Error> {
        self.see(format!("{user} {password}"));
        match self.asks {
            Asks::HangsUp => return Err(russh::Error::Disconnect),
            Asks::IsSilent => pending().await,
            Asks::Slowly => drop(timeout(Duration::from_secs(1), pending::<()>()).await),
            _ => {}
        }
        Ok(match (self.asks, password == PASSWORD) {
            (Asks::Password | Asks::Slowly, true) => Auth::Accept,
            (Asks::Both, true) => Auth::Reject {
                proceed_with_methods: Some(MethodSet::from(&[MethodKind::KeyboardInteractive][..])),
                partial_success: true,
            },
            _ => Auth::reject(),
        })
    }

    async fn auth_publickey(&mut self, _: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        self.see(key.algorithm.to_string());
        Ok(Auth::Accept)
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _: &str,
        _: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, Self::Error> {
        let Some(answers) = response else {
            let prompts: &[(Cow<'static, str>, bool)] = match self.asks {
                Asks::Code => &[(Cow::Borrowed("Password: "), false), (Cow::Borrowed("Code: "), true)],
                Asks::Expired => &[
                    (Cow::Borrowed("You are required to change your password immediately.\nCurrent: "), false),
                    (Cow::Borrowed("New: "), false),
                ],
                _ => &[(Cow::Borrowed("Password: "), false)],
            };
            let (name, instructions) = (Cow::Borrowed(""), Cow::Borrowed(""));
            return Ok(Auth::Partial { name, instructions, prompts: Cow::Owned(prompts.to_vec()) });
        };
        let answers: Vec<String> = answers.map(|answer| String::from_utf8(answer.to_vec()).unwrap()).collect();
        self.see(format!("answers {answers:?}"));
        Ok(if answers == [PASSWORD] { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Served,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        served: &mut Served,
    ) -> Result<(), Self::Error> {
        match command {
            b"refuse" => return served.channel_failure(channel),
            b"say nothing" => {}
            // The script that every login runs writes nothing.
            b"sh -s" => {
                served.channel_success(channel)?;
                served.data(channel, b"damodel-answer-begins\n\ndamodel-answer-ends\n".to_vec())?;
                served.exit_status_request(channel, 0)?;
            }
            b"be opened to" => {
                let (handle, seen) = (served.handle(), self.seen.clone());
                // The answers of the other side come to this task.
                tokio::spawn(async move {
                    let opened = [
                        handle.channel_open_agent().await,
                        handle.channel_open_direct_streamlocal("/a").await,
                        handle.channel_open_direct_tcpip("a", 1, "b", 2).await,
                        handle.channel_open_forwarded_streamlocal("/a").await,
                        handle.channel_open_forwarded_tcpip("a", 1, "b", 2).await,
                        handle.channel_open_session().await,
                        handle.channel_open_x11("a", 1).await,
                    ];
                    let refused = opened.iter().filter(|it| matches!(it, Err(russh::Error::ChannelOpenFailure(_))));
                    seen.lock().unwrap().push(format!("{} refused of {}", refused.count(), opened.len()));
                    let _ = handle.exit_status_request(channel, 0).await;
                    let _ = handle.close(channel).await;
                });
                return served.channel_success(channel);
            }
            _ => {
                served.channel_success(channel)?;
                served.data(channel, command.to_vec())?;
                served.exit_status_request(channel, 0)?;
            }
        }
        served.eof(channel)?;
        served.close(channel)
    }
}

async fn log_in(target: &Target) -> Result<Session, Error> {
    let limits = SessionLimits { denied: Duration::ZERO, ..SessionLimits::default() };
    connect(target, &limits, Instant::now() + Duration::from_secs(60), &CancellationToken::new()).await
}

#[tokio::test]
async fn a_password_logs_in() {
    let server = Running::start(Asks::Password).await;
    log_in(&server.target(Some(PASSWORD))).await.unwrap();
    assert_eq!(server.seen(), [format!("somebody {PASSWORD}")]);
}

/// It was cut at the limit of a step and begun again, until the deadline.
#[tokio::test]
async fn a_slow_login_succeeds_within_the_deadline_at_once() {
    let server = Running::start(Asks::Slowly).await;
    let limits = SessionLimits { connect: Duration::from_millis(300), ..SessionLimits::default() };
    let (target, deadline) = (server.target(Some(PASSWORD)), Instant::now() + Duration::from_secs(30));
    connect(&target, &limits, deadline, &CancellationToken::new()).await.unwrap();
    assert_eq!(server.seen().len(), 1, "{:?}", server.seen());
}

#[tokio::test]
async fn a_password_answers_the_question_where_it_is_not_taken_otherwise() {
    let server = Running::start(Asks::Answer).await;
    log_in(&server.target(Some(PASSWORD))).await.unwrap();
    assert_eq!(server.seen(), [format!("answers [{PASSWORD:?}]")]);
}

#[tokio::test]
async fn a_server_may_ask_for_more_than_one_thing() {
    let server = Running::start(Asks::Both).await;
    log_in(&server.target(Some(PASSWORD))).await.unwrap();
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_wrong_password_is_refused_without_a_word_of_it() {
    for (asks, tried) in
        [(Asks::Password, "tried: password"), (Asks::Answer, "tried: password, as an answer (keyboard")]
    {
        let server = Running::start(asks).await;
        let target = server.target(Some("PLANTED too"));
        let error = log_in(&target).await.unwrap_err();
        assert!(matches!(error, Error::Denied { .. }), "{error}");
        assert!(error.to_string().contains(tried), "{error}");
        assert!(!format!("{error} {error:?} {target:?}").contains("PLANTED"));
        assert_eq!(server.seen().len(), 1);
        // Nobody knows who has it now.
        let shown = target.given_away.host_key().unwrap().to_string();
        let pinned = Target { pin: Some(shown.parse().unwrap()), given_away: GivenAway::default(), ..target };
        log_in(&pinned).await.unwrap_err();
        assert!(pinned.given_away.host_key().is_none());
    }
}

/// A host that takes the password and is silent or gone is known nevertheless, and so is a bastion whose host is not
/// reached.
#[tokio::test]
async fn who_has_got_a_password_is_known_whatever_follows() {
    let soon = async |target: &Target| {
        let deadline = Instant::now() + Duration::from_secs(1);
        connect(target, &SessionLimits::default(), deadline, &CancellationToken::new()).await.unwrap_err()
    };
    for asks in [Asks::HangsUp, Asks::IsSilent] {
        let server = Running::start(asks).await;
        let target = server.target(Some(PASSWORD));
        let error = soon(&target).await;
        assert!(!server.seen().is_empty() && target.given_away.host_key().is_some(), "{asks:?}: {error}");
    }
    let (bastion, host) = (Running::start(Asks::Password).await, Running::start(Asks::Password).await);
    let through = Some(Box::new(bastion.target(Some(PASSWORD))));
    let target = Target { bastion: through, ..host.target(Some(PASSWORD)) };
    soon(&target).await;
    assert_eq!((bastion.seen().is_empty(), host.seen().is_empty()), (false, true));
    assert!(target.given_away.host_key().is_none());
    assert!(target.bastion.unwrap().given_away.host_key().is_some());
}

#[tokio::test]
async fn a_question_for_more_than_a_password_is_not_answered() {
    let server = Running::start(Asks::Code).await;
    let error = log_in(&server.target(Some(PASSWORD))).await.unwrap_err();
    assert!(error.to_string().contains("requires more than a password"), "{error}");
    assert_eq!(server.seen(), Vec::<String>::new());
    let server = Running::start(Asks::Expired).await;
    let error = log_in(&server.target(Some(PASSWORD))).await.unwrap_err();
    let words = "may not run commands: keyboard-interactive, which requires more than a password: \"You are required";
    assert!(error.to_string().contains(words), "{error}");
}

/// The text was not read: an account that has expired was waited for, and one that may log in soon was "early eof".
#[tokio::test]
async fn what_the_server_says_before_it_ends_a_login_is_shown_and_may_end_the_wait() {
    let expired = "Your account has expired; please contact your system administrator.\n";
    let server = Running::start(Asks::Leave(expired)).await;
    let error = log_in(&server.target(None)).await.unwrap_err();
    let place = format!("somebody@127.0.0.1:{} may not run commands: Your account has expired; please", server.port);
    assert!(error.to_string().starts_with(&place), "{error}");
    let server =
        Running::start(Asks::Leave("\"System is booting up. Unprivileged users are not permitted yet.\"\n")).await;
    let soon = Instant::now() + Duration::from_secs(2);
    let error = connect(&server.target(None), &SessionLimits::default(), soon, &CancellationToken::new()).await;
    let error = error.unwrap_err();
    let words = "; the server said: \"System is booting up. Unprivileged users are not permitted yet.\"";
    assert!(matches!(error, Error::TimedOut { .. }) && error.to_string().ends_with(words), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_nothing_lets_us_in() {
    let server = Running::start(Asks::Nothing).await;
    let session = log_in(&server.target(None)).await.unwrap();
    assert!(!format!("{session:?}").contains("PLANTED"));
}

#[tokio::test]
async fn a_command_without_an_exit_code_is_told_apart() {
    let server = Running::start(Asks::Nothing).await;
    let session = log_in(&server.target(None)).await.unwrap();
    assert_eq!(session.run("say nothing", b"").await.unwrap().exit, Exit::Missing);
    let error = session.run("refuse", b"").await.unwrap_err();
    assert!(matches!(error, Error::NotRun { .. }), "{error}");
}

#[tokio::test]
async fn a_server_opens_no_channel_to_us() {
    let server = Running::start(Asks::Nothing).await;
    let session = log_in(&server.target(None)).await.unwrap();
    assert_eq!(session.run("be opened to", b"").await.unwrap().exit, Exit::Code(0));
    assert_eq!(server.seen(), ["7 refused of 7"]);
}

#[rstest]
#[case(HashAlg::Sha256, "rsa-sha2-256")]
#[case(HashAlg::Sha512, "rsa-sha2-512")]
#[tokio::test]
async fn an_rsa_key_signs_with_the_hash_that_the_server_takes(#[case] hash: HashAlg, #[case] name: &str) {
    let Some(sshd) = Sshd::prepare() else { return };
    let key = sshd.keys().make("other", &["-t", "rsa", "-b", "2048"]);
    let server = Running::start(Asks::Rsa(hash)).await;
    let mut target = server.target(None);
    target.credentials.private_key_file = Some(key);
    log_in(&target).await.unwrap();
    assert_eq!(server.seen(), [name]);
}
