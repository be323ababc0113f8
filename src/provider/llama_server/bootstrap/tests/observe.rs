//! What a test observes of a server from outside: its answers over HTTP, and processes.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

use super::home::DEADLINE;

/// Asks for a token, as the probe does: the status, or 0 without an answer.
pub(super) fn chat(port: u16, header: &str) -> u16 {
    let body = r#"{"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 1}"#;
    let length = body.len();
    let header = format!("{header}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    http(port, "POST /v1/chat/completions", &header).0
}

/// Asks a server over TCP: the status, or 0 without an answer, and the body.
pub(super) fn http(port: u16, request: &str, header: &str) -> (u16, String) {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().unwrap_or_default();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

/// Sends a signal, to a process that may be gone.
pub(super) fn kill(pid: u32, signal: &str) {
    let _ = Command::new("kill").args(["-s", signal, &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Whether a process is there and no zombie.
pub(super) fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// All processes that may be seen.
pub(super) fn processes() -> Vec<(u32, Vec<String>)> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some((pid, words(pid)?))).collect()
}

/// The words of a process, as it runs now.
pub(super) fn words(pid: u32) -> Option<Vec<String>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    Some(line.trim_end_matches('\0').split('\0').map(str::to_owned).collect())
}
