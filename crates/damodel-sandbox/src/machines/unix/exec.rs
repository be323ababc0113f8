//! A command of a session, run by the system's shell, as sshd runs one, with a terminal or without; and the processes
//! of an instance.
//!
//! They carry its mark in their environment, which detached processes inherit too, and which cannot be changed from
//! outside; a descendant that was started with another environment is found through its parents. Linux only: elsewhere
//! /proc is missing, and no process is found.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::{ffi::OsStringExt, process::ExitStatusExt},
    process::{ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use russh::{
    Channel, ChannelId, ChannelMsg, Sig,
    server::{Handle, Msg},
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt, copy},
    process::{Child, Command},
    sync::mpsc,
    time::timeout,
};
use tokio_util::task::AbortOnDropHandle;

use super::{guest::Guest, terminal::Terminal};

/// Runs a command, or a shell that reads its commands, until it and all processes that hold its output have ended, or
/// until the client disconnects. Processes that are then still running continue.
pub(super) async fn run(guest: Arc<Guest>, command: Option<Vec<u8>>, mut channel: Channel<Msg>, client: Handle) {
    let id = channel.id();
    let (mut output, mut errors) = (channel.make_writer(), channel.make_writer_ext(Some(1)));
    let mut child = match spawn(&guest, command) {
        Ok(child) => child,
        Err(error) => {
            let _ = errors.write_all(format!("{error}\n").as_bytes()).await;
            let _ = client.exit_status_request(id, 255).await;
            let _ = client.close(id).await;
            return;
        }
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let input = child.stdin.take().map(|pipe| {
        let (input, writing) = feed(pipe);
        // What a client has sent reaches a command that goes on without it.
        writing.detach();
        input
    });
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let outputs = async {
        let stdout = async {
            if let Some(mut pipe) = stdout {
                let _ = copy(&mut pipe, &mut output).await;
            }
        };
        let stderr = async {
            if let Some(mut pipe) = stderr {
                let _ = copy(&mut pipe, &mut errors).await;
            }
        };
        tokio::join!(stdout, stderr);
    };
    // As sshd: the status is sent when the command ends, and the channel is closed when no process holds its output any
    // more.
    let ended = async {
        let status = async {
            if let Ok(status) = child.wait().await {
                tell(&client, id, status).await;
            }
        };
        tokio::join!(status, outputs);
    };
    tokio::select! {
        () = ended => {
            let _ = client.eof(id).await;
            let _ = client.close(id).await;
        }
        () = listen(&mut channel, input, group) => {}
    }
}

/// The same on a terminal, until the command ends. When the client disconnects, its processes are hung up.
pub(super) async fn run_on(
    (terminal, device): (Arc<Terminal>, File),
    guest: Arc<Guest>,
    command: Option<Vec<u8>>,
    mut channel: Channel<Msg>,
    client: Handle,
) {
    let id = channel.id();
    let mut output = channel.make_writer();
    let begun = terminal.ends().and_then(|ends| Ok((ends, spawn_on(&terminal, device, &guest, command)?)));
    let ((mut printed, typed), mut child) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _ = output.write_all(format!("{error}\r\n").as_bytes()).await;
            let _ = client.exit_status_request(id, 255).await;
            let _ = client.close(id).await;
            return;
        }
    };
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let (input, _writing) = feed(typed);
    let ended = async {
        let copied = copy(&mut printed, &mut output);
        tokio::pin!(copied);
        let status = tokio::select! {
            status = child.wait() => {
                // What it printed last. Others that have the terminal open are not waited for.
                let _ = timeout(LAST_WORDS, copied).await;
                status
            }
            _ = &mut copied => child.wait().await,
        };
        if let Ok(status) = status {
            tell(&client, id, status).await;
        }
    };
    tokio::select! {
        () = ended => {
            let _ = client.eof(id).await;
            let _ = client.close(id).await;
        }
        () = listen(&mut channel, Some(input), group) => {}
    }
}

/// How long a terminal is read after its command has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// In a session of its own, whose terminal it is: a safe program does what only unsafe code could.
fn spawn_on(terminal: &Terminal, device: File, guest: &Guest, command: Option<Vec<u8>>) -> io::Result<Child> {
    let mut shell = Command::new("setsid");
    shell.args(["-c", "/bin/sh"]);
    if let Some(command) = command {
        shell.arg("-c").arg(OsString::from_vec(command));
    }
    shell
        .env_clear()
        .envs(guest.environment())
        .env("TERM", &terminal.kind)
        .current_dir(guest.home())
        .stdin(device.try_clone()?)
        .stdout(device.try_clone()?)
        .stderr(device)
        .spawn()
}

fn spawn(guest: &Guest, command: Option<Vec<u8>>) -> io::Result<Child> {
    let mut shell = Command::new("/bin/sh");
    if let Some(command) = command {
        shell.arg("-c").arg(OsString::from_vec(command));
    }
    shell
        .env_clear()
        .envs(guest.environment())
        .current_dir(guest.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A process group of its own, for the client's signals.
        .process_group(0)
        .spawn()
}

/// Writes the data that is sent to the command; the pipe is closed when the sender is dropped. A command that does not
/// read delays no other session.
fn feed(mut pipe: impl AsyncWrite + Unpin + Send + 'static) -> (mpsc::UnboundedSender<Bytes>, AbortOnDropHandle<()>) {
    let (sender, mut pieces) = mpsc::unbounded_channel::<Bytes>();
    let task = tokio::spawn(async move {
        while let Some(piece) = pieces.recv().await {
            if pipe.write_all(&piece).await.is_err() {
                return;
            }
        }
    });
    (sender, AbortOnDropHandle::new(task))
}

/// Reads the client's messages until it disconnects.
async fn listen(channel: &mut Channel<Msg>, mut input: Option<mpsc::UnboundedSender<Bytes>>, group: Option<Pid>) {
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => {
                if let Some(input) = &input {
                    // A command that has ended reads no more.
                    let _ = input.send(data);
                }
            }
            ChannelMsg::Eof => input = None,
            ChannelMsg::Signal { signal } => {
                if let (Some(group), Some(signal)) = (group, signal_of(&signal)) {
                    let _ = killpg(group, signal);
                }
            }
            ChannelMsg::Close => return,
            _ => {}
        }
    }
}

async fn tell(client: &Handle, id: ChannelId, status: ExitStatus) {
    let _ = match (status.code(), status.signal().and_then(|signal| Signal::try_from(signal).ok())) {
        (Some(code), _) => client.exit_status_request(id, u32::try_from(code).unwrap_or(255)).await,
        (None, Some(signal)) => {
            let core = status.core_dumped();
            let name = Sig::Custom(signal.as_str().trim_start_matches("SIG").to_owned());
            client.exit_signal_request(id, name, core, String::new(), String::new()).await
        }
        (None, None) => client.exit_status_request(id, 255).await,
    };
}

/// The signal of a name (RFC 4254, 6.9).
fn signal_of(name: &Sig) -> Option<Signal> {
    match name {
        Sig::ABRT => Some(Signal::SIGABRT),
        Sig::ALRM => Some(Signal::SIGALRM),
        Sig::FPE => Some(Signal::SIGFPE),
        Sig::HUP => Some(Signal::SIGHUP),
        Sig::ILL => Some(Signal::SIGILL),
        Sig::INT => Some(Signal::SIGINT),
        Sig::KILL => Some(Signal::SIGKILL),
        Sig::PIPE => Some(Signal::SIGPIPE),
        Sig::QUIT => Some(Signal::SIGQUIT),
        Sig::SEGV => Some(Signal::SIGSEGV),
        Sig::TERM => Some(Signal::SIGTERM),
        Sig::USR1 => Some(Signal::SIGUSR1),
        Sig::Custom(name) => format!("SIG{name}").parse().ok(),
    }
}

/// The variable that marks the processes of an instance.
pub(super) const VARIABLE: &str = "SANDBOX_INSTANCE";

/// How often killed processes are looked for, every 2 ms: for 5 s, and longer on a computer that stood still meanwhile.
const LOOKS: usize = 2500;

/// A running process. The system gives the id of an ended one to another, which began later.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Process {
    id: u32,
    /// In ticks since the computer's start.
    begun: u64,
}

/// The ids of the running processes with this mark, in order.
pub(super) fn of(marker: &str) -> Vec<u32> {
    marked(marker).into_iter().map(|process| process.id).collect()
}

fn marked(marker: &str) -> BTreeSet<Process> {
    let entry = [VARIABLE.as_bytes(), b"=", marker.as_bytes()].concat();
    let mut processes = Vec::new();
    let mut own = BTreeSet::new();
    for id in ids() {
        let Some((process, parent)) = running(id) else { continue };
        processes.push((process, parent));
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        if environment.split(|&byte| byte == 0).any(|variable| variable == entry) {
            own.insert(id);
        }
    }
    loop {
        let before = own.len();
        for (process, parent) in &processes {
            if own.contains(parent) {
                own.insert(process.id);
            }
        }
        if own.len() == before {
            processes.retain(|(process, _)| own.contains(&process.id));
            return processes.into_iter().map(|(process, _)| process).collect();
        }
    }
}

/// Kills them, and waits until all have exited.
pub(super) fn end(marker: &str) {
    let mut live = BTreeSet::new();
    for _ in 0..LOOKS {
        // Repeated, because a process may have started another one meanwhile. One that exits has lost its mark before.
        live.retain(is_running);
        let marked = marked(marker);
        live.extend(&marked);
        if live.is_empty() {
            return;
        }
        for process in marked {
            if let Ok(id) = i32::try_from(process.id) {
                // It may have ended by itself.
                let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    tracing::error!(?live, "processes of an instance do not end");
}

fn ids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn is_running(process: &Process) -> bool {
    running(process.id).is_some_and(|(other, _)| other == *process)
}

/// The process with this id and its parent, unless it waits to be reaped.
fn running(id: u32) -> Option<(Process, u32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The 22nd of all (proc(5)).
    let begun = fields.nth(17)?.parse().ok()?;
    (!matches!(state, "X" | "Z")).then_some((Process { id, begun }, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_with_the_id_of_an_ended_one_is_another() {
        let (own, _) = running(std::process::id()).unwrap();
        assert!(is_running(&own));
        assert!(!is_running(&Process { begun: own.begun - 1, ..own }));
    }
}
