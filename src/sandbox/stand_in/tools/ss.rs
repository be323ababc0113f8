//! `ss`: who listens in the port space. Where there is none, the system's.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, ExitCode},
};

use super::{
    super::{Call, PORTS},
    complain, processes, say,
};

/// Marks a socket in /proc/net/unix that listens (`__SO_ACCEPTCON`).
const LISTENS: u32 = 0x0001_0000;

/// Where systems have their `ss`.
const SYSTEM: [&str; 4] = ["/usr/bin/ss", "/bin/ss", "/usr/sbin/ss", "/sbin/ss"];

pub(in super::super) fn main(call: &Call<'_>) -> ExitCode {
    let Some(folder) = call.path(PORTS) else {
        let Some(system) = SYSTEM.into_iter().find(|path| Path::new(path).exists()) else {
            return complain("ss: command not found\n", 127);
        };
        let error = Command::new(system).args(&call.arguments).exec();
        return complain(&format!("ss: {error}\n"), 126);
    };
    let flags: String = call.arguments.iter().filter_map(|word| word.strip_prefix('-')).collect();
    let wanted = wanted(&call.arguments);
    let mut text = String::new();
    if !flags.contains('H') {
        text.push_str("State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n");
    }
    for listener in listeners(&folder) {
        if wanted.is_none_or(|port| port == listener.port) {
            let users = if flags.contains('p') { listener.users() } else { String::new() };
            text.push_str(&line(listener.port, &users));
        }
    }
    say(&text, 0)
}

fn line(port: u16, users: &str) -> String {
    format!("LISTEN 0      512          0.0.0.0:{port:<6} 0.0.0.0:*    {users}\n")
}

/// The port of a filter such as `sport = :8000`; none where all are wanted.
fn wanted(arguments: &[String]) -> Option<u16> {
    let words = arguments.iter().filter(|word| !word.starts_with('-')).flat_map(|word| word.split_whitespace());
    words.filter_map(|word| word.rsplit_once(':')?.1.parse().ok()).next()
}

#[derive(Debug)]
struct Listener {
    port: u16,
    inode: String,
}

impl Listener {
    /// `users:(("llama-server",pid=77,fd=9))`.
    fn users(&self) -> String {
        let target = format!("socket:[{}]", self.inode);
        let mut users = Vec::new();
        for id in processes() {
            for entry in fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten() {
                if fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == target.as_str()) {
                    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                    let fd = entry.file_name().to_string_lossy().into_owned();
                    users.push(format!("(\"{}\",pid={id},fd={fd})", name.trim_end()));
                }
            }
        }
        if users.is_empty() { String::new() } else { format!("users:({})", users.join(",")) }
    }
}

/// The sockets of the folder that listen, by port.
fn listeners(folder: &Path) -> Vec<Listener> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut listeners = BTreeMap::new();
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let [_, _, _, flags, _, _, inode, path] = fields.as_slice() else { continue };
        let path = Path::new(path);
        let listens = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & LISTENS != 0);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if listens
            && path.parent() == Some(folder)
            && name.ends_with(".sock")
            && let Some(port) = name.split('.').next().and_then(|port| port.parse().ok())
        {
            listeners.insert((port, (*inode).to_owned()), Listener { port, inode: (*inode).to_owned() });
        }
    }
    listeners.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_that_people_write_are_understood() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(wanted(&words(&["-ltnpH", "sport = :8000"])), Some(8000));
        assert_eq!(wanted(&words(&["-ltn", "sport", "=", ":8001"])), Some(8001));
        assert_eq!(wanted(&words(&["-ltn", "( sport = :8002 )"])), Some(8002));
        assert_eq!(wanted(&words(&["-ltn"])), None);
    }
}
