//! One command in one channel, with its output and exit code.

use std::{collections::VecDeque, fmt, pin::pin, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use russh::{Channel, ChannelMsg, ChannelOpenFailure, ChannelWriteHalf, Sig, client::Msg};
use tokio::{runtime::Handle, time::sleep};

use super::{
    Error,
    connection::Connection,
    error::{is_lasting, said},
};

/// The number of bytes of input in one write.
const PIECE: usize = 32 * 1024;

/// The longest silence of a channel after its command ended. A process that the command left behind may hold the
/// channel open without end (`server &` without redirections).
const GRACE: Duration = Duration::from_secs(2);

/// The marks around the answer of a script. They are on no command line, which a server may repeat.
const BEGIN: &str = "damodel-answer-begins";
const END: &str = "damodel-answer-ends";

/// The number of standard error (RFC 4254, section 5.2).
const STDERR: u32 = 1;

impl Connection {
    /// Runs a command with this input, and collects `kept` bytes of each output.
    ///
    /// Cancel-safe: when dropped, the channel is closed and the input of the command ends.
    pub(super) async fn exec(&self, command: &str, stdin: &[u8], kept: usize) -> Result<Output, Error> {
        let (mut read, write) = self.channel().await?.split();
        let write = Closing(Arc::new(write));
        write.0.exec(true, command).await.map_err(|_| self.lost())?;
        let mut feed = pin!(feed(&write.0, stdin));
        let mut is_fed = false;
        let (mut stdout, mut stderr) = (HeadAndTail::new(kept), HeadAndTail::new(kept));
        let mut exit = None;
        loop {
            let message = tokio::select! {
                message = read.wait() => message,
                () = &mut feed, if !is_fed => {
                    is_fed = true;
                    continue;
                }
                () = sleep(GRACE), if exit.is_some() => break,
            };
            match message {
                Some(ChannelMsg::Data { data }) => stdout.push(&data),
                Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => stderr.push(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => exit = Some(Exit::Code(exit_status)),
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => exit = Some(Exit::Signal(name(&signal_name))),
                Some(ChannelMsg::Failure) => {
                    return Err(Error::NotRun { reason: "commands are not permitted".to_owned() });
                }
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
        }
        let exit = match exit {
            Some(exit) => exit,
            None if self.facts.is_gone() => return Err(self.lost()),
            None => Exit::Missing,
        };
        let ((stdout, of_stdout), (stderr, of_stderr)) = (stdout.finish(), stderr.finish());
        Ok(Output { stdout, stderr, exit, left_out: of_stdout + of_stderr })
    }

    /// Runs a script in `sh`, whatever the user's shell is, and returns what it wrote, without what start and logout
    /// files of the login wrote around it. The arguments are `$1` and so on.
    pub(super) async fn script(&self, script: &str, arguments: &[&str], kept: usize) -> Result<Output, Error> {
        let arguments: String =
            arguments.iter().map(|word| format!(" '{}'", word.replace('\0', "").replace('\'', r"'\''"))).collect();
        let input = format!(
            "set --{arguments}\necho {BEGIN}\n(\n{script}\n) </dev/null\ncode=$?\necho\necho {END}\nexit $code\n"
        );
        let output = self.exec("sh -s", input.as_bytes(), kept).await?;
        match answer(&output.stdout) {
            Some(stdout) => Ok(Output { stdout: stdout.to_vec(), ..output }),
            None => Err(self.not_run(output.ended())),
        }
    }

    /// The error of a script that the server did not run. A refusal that will not pass names the user.
    fn not_run(&self, reason: String) -> Error {
        if !is_lasting(&reason) {
            return Error::NotRun { reason };
        }
        Error::Excluded { address: self.address.clone(), user: self.user.clone(), reason, is_bastion: false }
    }

    /// Opens a channel for a command. If the server has no free session (MaxSessions), the request is repeated for a
    /// while: a session is free again a moment after its command ended.
    async fn channel(&self) -> Result<Channel<Msg>, Error> {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(50))
            .with_max_delay(Duration::from_millis(500))
            .with_jitter()
            .with_max_times(20);
        let opened = (|| self.handle.channel_open_session()).retry(pauses).when(is_full).await;
        opened.map_err(|error| match error {
            russh::Error::ChannelOpenFailure(failure) => {
                Error::NotRun { reason: said(&format!("the server opened no session ({failure:?})")) }
            }
            _ => self.lost(),
        })
    }
}

/// What stands between the marks of a script's answer.
fn answer(stdout: &[u8]) -> Option<&[u8]> {
    let (begin, end) = (format!("{BEGIN}\n"), format!("\n{END}\n"));
    let start = stdout.windows(begin.len()).position(|window| window == begin.as_bytes())? + begin.len();
    let rest = stdout.get(start..)?;
    // A file that is read may contain the mark.
    rest.get(..rest.windows(end.len()).rposition(|window| window == end.as_bytes())?)
}

/// Whether the server has no free session: sshd reports a failed connection, other servers a shortage.
fn is_full(error: &russh::Error) -> bool {
    use ChannelOpenFailure::{ConnectFailed, ResourceShortage};

    matches!(error, russh::Error::ChannelOpenFailure(ConnectFailed | ResourceShortage))
}

/// Sends the whole input and its end. It is not an error if the command ends before it has read everything.
async fn feed(channel: &ChannelWriteHalf<Msg>, stdin: &[u8]) {
    for piece in stdin.chunks(PIECE) {
        if channel.data_bytes(Bytes::copy_from_slice(piece)).await.is_err() {
            return;
        }
    }
    // An error means that the channel was closed, which its reader reports.
    let _ = channel.eof().await;
}

fn name(signal: &Sig) -> String {
    match signal {
        Sig::Custom(name) => said(name),
        known => format!("{known:?}"),
    }
}

/// Closes its channel when dropped.
struct Closing(Arc<ChannelWriteHalf<Msg>>);

impl Drop for Closing {
    fn drop(&mut self) {
        let channel = self.0.clone();
        // Without a runtime, the connection has ended too.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { channel.close().await });
        }
    }
}

/// The output of a command, and its exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output. If it is longer than [`SessionLimits::output`](crate::SessionLimits), a line with the
    /// number of missing bytes replaces the middle.
    pub stdout: Vec<u8>,
    /// Standard error, shortened in the same way.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub exit: Exit,
    /// The number of bytes that are missing in both.
    pub left_out: u64,
}

impl Output {
    /// Whether the command ended with exit code 0.
    pub fn is_success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// The text about an unexpected exit.
    pub(super) fn ended(&self) -> String {
        let text = [self.stderr.as_slice(), b"\n", &self.stdout].concat();
        let text = said(&String::from_utf8_lossy(&text));
        if text.is_empty() { self.exit.to_string() } else { format!("{}: {text}", self.exit) }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// The command ended by itself with this exit code.
    Code(u32),
    /// The server reported no exit although the connection is up: the command was ended from outside.
    Missing,
    /// This signal ended it, such as `TERM`.
    Signal(String),
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Missing => formatter.write_str("no exit code"),
            Self::Signal(name) => write!(formatter, "signal {name}"),
        }
    }
}

/// The beginning and the end of a text of any length.
#[derive(Debug)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// The number of bytes that are kept of each.
    half: usize,
    left_out: u64,
}

impl HeadAndTail {
    /// Keeps this many bytes in all.
    pub(super) fn new(kept: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), half: kept / 2, left_out: 0 }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.half - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
    }

    /// The text, and the number of missing bytes.
    pub(super) fn finish(self) -> (Vec<u8>, u64) {
        let mut text = self.head;
        if self.left_out > 0 {
            text.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        text.extend(self.tail);
        (text, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(kept: usize, pieces: &[&str]) -> (String, u64) {
        let mut ends = HeadAndTail::new(kept);
        pieces.iter().for_each(|piece| ends.push(piece.as_bytes()));
        let (text, left_out) = ends.finish();
        (String::from_utf8(text).unwrap(), left_out)
    }

    #[test]
    fn an_answer_stands_between_its_marks() {
        let answered = |text: &str| answer(text.as_bytes()).map(|answer| String::from_utf8(answer.to_vec()).unwrap());
        let (begin, end) = (BEGIN, END);
        assert_eq!(answered(&format!("hi{begin}\na\n\n{end}\nbye")), Some("a\n".to_owned()));
        assert_eq!(answered(&format!("{begin}\n\n{end}\n")), Some(String::new()));
        assert_eq!(answered(&format!("{begin}\na\n{end}\nb\n{end}\n")), Some(format!("a\n{end}\nb")));
        for text in ["", "a", &format!("{begin}\na"), &format!("a\n{end}\n"), &format!("\n{end}\n{begin}\n")] {
            assert_eq!(answered(text), None, "{text}");
        }
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(ends(8, &[]), (String::new(), 0));
        assert_eq!(ends(8, &["abc", "", "defgh"]), ("abcdefgh".to_owned(), 0));
    }

    #[test]
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(ends(4, &["abcdefgh"]), ("ab\n[4 bytes left out]\ngh".to_owned(), 4));
        let letters: Vec<&str> = "abcdefgh".split("").collect();
        assert_eq!(ends(4, &letters), ("ab\n[4 bytes left out]\ngh".to_owned(), 4));
    }
}
