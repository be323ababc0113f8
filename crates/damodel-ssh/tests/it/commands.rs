//! Commands, channels and forwards over one session.

use std::{fs, sync::Arc, time::Duration};

use damodel_ssh::{Error, Exit, Link, Session, SessionLimits, connect};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::support::{ports::free_port, sshd::Sshd};

async fn session(sshd: &Sshd, limits: SessionLimits, cancel: &CancellationToken) -> Session {
    let deadline = Instant::now() + Duration::from_secs(60);
    connect(&sshd.target(), &limits, deadline, cancel).await.unwrap()
}

async fn plain(sshd: &Sshd) -> Session {
    session(sshd, SessionLimits::default(), &CancellationToken::new()).await
}

#[tokio::test]
async fn a_command_has_two_outputs_and_an_exit_code() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    let output = session.run("echo out; echo err >&2; exit 7", b"").await.unwrap();
    assert_eq!((output.stdout, output.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
    assert_eq!((output.exit, output.left_out), (Exit::Code(7), 0));
    let output = session.run("pwd; echo $HOME", b"").await.unwrap();
    let home = sshd.home().display().to_string();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{home}\n{home}\n"));
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit_code() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    for (signal, name) in [("KILL", "KILL"), ("TERM", "TERM"), ("SEGV", "SEGV")] {
        let output = session.run(&format!("kill -{signal} $$"), b"").await.unwrap();
        assert_eq!(output.exit, Exit::Signal(name.to_owned()));
        assert!(!output.is_success());
    }
    assert_eq!(session.run("exit 255", b"").await.unwrap().exit, Exit::Code(255));
}

#[tokio::test]
async fn a_script_comes_by_the_input_and_is_in_no_list_of_processes() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    let script = b"secret=PLANTED\ntr '\\0' ' ' </proc/$$/cmdline\necho\necho ${#secret}\nexit 3\n";
    let output = session.run("sh -s", script).await.unwrap();
    assert_eq!(output.exit, Exit::Code(3));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains("PLANTED") && stdout.ends_with("\n7\n"), "{stdout}");
    assert!(!sshd.log().contains("PLANTED"));
}

#[tokio::test]
async fn much_goes_in_and_out_at_once() {
    let Some(sshd) = Sshd::started() else { return };
    let limits = SessionLimits { output: 64 << 20, ..SessionLimits::default() };
    let session = session(&sshd, limits, &CancellationToken::new()).await;
    let much: Vec<u8> = (0..20_000_000_u32).map(|index| (index % 251) as u8).collect();
    let output = session.run("cat; sleep 0.1; echo done >&2", &much).await.unwrap();
    assert!(output.stdout == much, "{} of {} bytes", output.stdout.len(), much.len());
    assert_eq!(output.stderr, b"done\n");
}

#[tokio::test]
async fn the_middle_of_a_long_output_is_left_out() {
    let Some(sshd) = Sshd::started() else { return };
    let limits = SessionLimits { output: 1000, ..SessionLimits::default() };
    let session = session(&sshd, limits, &CancellationToken::new()).await;
    let command = "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo last; echo first >&2";
    let output = session.run(command, b"").await.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("first\nxxx") && stdout.ends_with("xxxlast\n"), "{stdout}");
    assert!(stdout.contains("\n[49999011 bytes left out]\n"), "{stdout}");
    assert_eq!((output.left_out, output.stderr), (49_999_011, b"first\n".to_vec()));
}

#[tokio::test]
async fn a_command_that_does_not_read_its_input_ends() {
    let Some(sshd) = Sshd::started() else { return };
    let output = plain(&sshd).await.run("exit 4", &vec![0; 10 << 20]).await.unwrap();
    assert_eq!(output.exit, Exit::Code(4));
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_not_waited_for() {
    let Some(sshd) = Sshd::started() else { return };
    let begin = Instant::now();
    // The background process holds the channel's output: without the grace period this would take as long as the sleep.
    let output = plain(&sshd).await.run("sleep 120 & echo $! >pid; echo begun", b"").await.unwrap();
    assert_eq!((output.stdout, output.exit), (b"begun\n".to_vec(), Exit::Code(0)));
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    let left_behind = fs::read_to_string(sshd.home().join("pid")).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(left_behind), nix::sys::signal::Signal::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_command_ends_by_its_limit_and_by_the_token() {
    let Some(sshd) = Sshd::started() else { return };
    let cancel = CancellationToken::new();
    let limits = SessionLimits { command: Duration::from_secs(2), ..SessionLimits::default() };
    let session = session(&sshd, limits, &cancel).await;
    let error = session.run("sleep 5", b"").await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(error.to_string().starts_with("the command on 127.0.0.1:"), "{error}");
    assert!(session.run("true", b"").await.unwrap().is_success(), "the session still works");
    let (outcome, ()) = tokio::join!(session.run("sleep 3", b""), async { cancel.cancel() });
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    let error = session.run("true", b"").await.unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
}

#[tokio::test]
async fn more_commands_at_once_than_the_server_takes_wait_for_each_other() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("MaxSessions 2");
    sshd.start();
    let session = plain(&sshd).await;
    let runs = (0..25).map(|index| {
        let session = &session;
        async move { session.run(&format!("sleep 0.1; echo {index}"), b"").await.unwrap().stdout }
    });
    let said = futures_util::future::join_all(runs).await;
    let wanted: Vec<Vec<u8>> = (0..25).map(|index| format!("{index}\n").into_bytes()).collect();
    assert_eq!(said, wanted);
}

/// A server that returns all bytes.
async fn echo() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = connection.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    port
}

#[tokio::test]
async fn a_channel_carries_bytes_both_ways() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    let stream = session.open("127.0.0.1", echo().await).await.unwrap();
    let (mut read, mut write) = tokio::io::split(stream);
    let much: Vec<u8> = (0..5_000_000_u32).map(|index| (index % 253) as u8).collect();
    let sending = async {
        write.write_all(&much).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (_, read) = tokio::join!(sending, read.read_to_end(&mut back));
    read.unwrap();
    assert!(back == much, "{} of {} bytes", back.len(), much.len());
}

#[tokio::test]
async fn a_port_where_nobody_listens_and_one_that_is_not_permitted_are_told_apart() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    let free = free_port();
    sshd.line(&format!("PermitOpen 127.0.0.1:{free}"));
    sshd.start();
    let session = plain(&sshd).await;
    let error = session.open("127.0.0.1", free).await.unwrap_err();
    assert!(matches!(error, Error::Refused { port, .. } if port == free), "{error}");
    let error = session.open("127.0.0.1", echo().await).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }), "{error}");
}

#[tokio::test]
async fn a_stream_of_a_lost_session_fails_instead_of_ending() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    let mut stream = session.open("127.0.0.1", echo().await).await.unwrap();
    stream.write_all(b"half").await.unwrap();
    let mut half = [0; 4];
    stream.read_exact(&mut half).await.unwrap();
    sshd.kill_sessions();
    let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_forward_leads_every_connection_there_until_it_is_dropped() {
    let Some(sshd) = Sshd::started() else { return };
    let link = link(&sshd, SessionLimits::default()).await;
    let forward = link.clone().forward("127.0.0.1", echo().await).await.unwrap();
    let address = forward.local_address();
    assert!(address.ip().is_loopback());
    let mut connections = Vec::new();
    for index in 0..5_u8 {
        let mut connection = TcpStream::connect(address).await.unwrap();
        connection.write_all(&[index; 10]).await.unwrap();
        connections.push(connection);
    }
    for (index, connection) in connections.iter_mut().enumerate() {
        let mut back = [0; 10];
        connection.read_exact(&mut back).await.unwrap();
        assert_eq!(back, [u8::try_from(index).unwrap(); 10]);
    }
    drop(forward);
    // Open connections end, and new ones are refused.
    assert_eq!(connections[0].read(&mut [0; 1]).await.unwrap_or(0), 0);
    // The listener is closed by a task of its own.
    let refused = async { while TcpStream::connect(address).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(60), refused).await.unwrap();
    assert!(link.session().await.unwrap().run("true", b"").await.unwrap().is_success());
}

async fn link(sshd: &Sshd, limits: SessionLimits) -> Arc<Link> {
    Arc::new(Link::open(sshd.target(), limits, Duration::from_secs(60), CancellationToken::new()).await.unwrap())
}

#[tokio::test]
async fn a_forward_outlives_the_connection_that_it_began_with() {
    let Some(sshd) = Sshd::started() else { return };
    let link = link(&sshd, SessionLimits::default()).await;
    let forward = link.clone().forward("127.0.0.1", echo().await).await.unwrap();
    for _ in 0..2 {
        let mut connection = TcpStream::connect(forward.local_address()).await.unwrap();
        connection.write_all(b"again").await.unwrap();
        let mut back = [0; 5];
        connection.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"again");
        let session = link.session().await.unwrap();
        sshd.kill_sessions();
        // Open connections end, and the loss is detected.
        assert_eq!(connection.read(&mut [0; 1]).await.unwrap_or(0), 0);
        assert!(session.run("true", b"").await.is_err());
    }
}

#[tokio::test]
async fn a_login_that_may_only_forward_is_enough_for_a_forward() {
    let Some(mut sshd) = Sshd::prepare() else { return };
    sshd.line("ForceCommand /bin/false");
    sshd.start();
    let forward = link(&sshd, SessionLimits::default()).await.forward("127.0.0.1", echo().await).await.unwrap();
    let mut connection = TcpStream::connect(forward.local_address()).await.unwrap();
    connection.write_all(b"x").await.unwrap();
    assert_eq!(connection.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_forward_to_nobody_closes_its_connections() {
    let Some(sshd) = Sshd::started() else { return };
    let forward = link(&sshd, SessionLimits::default()).await.forward("127.0.0.1", free_port()).await.unwrap();
    let mut connection = TcpStream::connect(forward.local_address()).await.unwrap();
    assert_eq!(connection.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_client_that_takes_nothing_holds_up_the_others_for_the_limit_only() {
    let Some(sshd) = Sshd::started() else { return };
    let limits = SessionLimits { idle: Duration::from_millis(500), ..SessionLimits::default() };
    let link = link(&sshd, limits).await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let flooding = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        // Ends when the other side is closed.
        while connection.write_all(&[b'x'; 65536]).await.is_ok() {}
    });
    let forward = link.clone().forward("127.0.0.1", port).await.unwrap();
    let taking_nothing = TcpStream::connect(forward.local_address()).await.unwrap();
    flooding.await.unwrap();
    assert!(link.session().await.unwrap().run("true", b"").await.unwrap().is_success());
    drop(taking_nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_session_ends_its_connection() {
    let Some(sshd) = Sshd::started() else { return };
    let session = plain(&sshd).await;
    let stream = session.open("127.0.0.1", echo().await).await.unwrap();
    drop(session);
    assert!(!sshd.log().contains("Connection closed by"), "a stream of it is still there");
    drop(stream);
    sshd.until("it ended", |sshd| sshd.log().contains("Connection closed by"));
}
