//! Who listens on a port of the instance.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{facts::Facts, question::Question};

/// Each process that listens there: its number, name, program, user, `/proc` line and arguments; `?` for one that this
/// user may not see.
const LISTENERS: &str = "\
    said=$(ss -ltnpH \"sport = :$1\") || said=$(\
        for inode in $(cat /proc/net/tcp /proc/net/tcp6 | awk -v port=\":$2\" \
            '$4 == \"0A\" && substr($2, length($2) - 4) == port { print $10 }'); do \
            ls -l /proc/[0-9]*/fd | awk -v socket=\"socket:[$inode]\" \
                '/^\\/proc\\// { split($0, parts, \"/\") } $NF == socket { print \"pid=\" parts[3] }' | grep . || echo '?'; \
        done); \
    [ -z \"$said\" ] || for pid in $(echo \"$said\" | grep -o 'pid=[0-9]*' | sort -u | grep . || echo '?'); do \
        process=/proc/${pid#pid=}; \
        printf '%s\\0%s\\0%s\\0%s\\0%s\\0%s\\0' \"${pid#pid=}\" \"$(cat \"$process/comm\")\" \
            \"$(readlink \"$process/exe\")\" \"$(stat -c %U \"$process\")\" \"$(cat \"$process/stat\")\" \
            \"$(base64 <\"$process/cmdline\")\"; \
    done";

/// The name of the fact.
const KEY: &str = "listeners";

/// Asks for them.
pub(super) fn question(port: u16) -> Question {
    Question::line(KEY, LISTENERS).with(&port.to_string()).with(&format!("{port:04X}"))
}

/// Who listens on the server's port beside the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    /// What tells it from any other process, also after a reboot; none where it may not be seen.
    pub(crate) identity: Option<String>,
    /// Who it is, for people. The arguments of a stranger may be secret.
    pub(crate) about: String,
    /// Its arguments, where it is another llama-server of the same user; without its secrets.
    pub(crate) command_line: Vec<String>,
}

impl Listener {
    /// The first that is not this process.
    pub(super) fn beside(own: Option<u32>, facts: &Facts, boot: &str) -> Option<Self> {
        let own = own.map(|pid| pid.to_string());
        let others = facts.entries::<6>(KEY).into_iter();
        let [pid, name, program, user, stat, words] =
            others.into_iter().find(|[pid, ..]| own.as_deref() != Some(*pid))?;
        if pid == "?" {
            let about = "a process of another user".to_owned();
            return Some(Self { identity: None, about, command_line: Vec::new() });
        }
        // The name stands in parentheses and may hold anything.
        let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19));
        let words: String = words.split_whitespace().collect();
        let words = STANDARD.decode(words).unwrap_or_default();
        Some(Self {
            identity: start.map(|start| format!("{pid}.{start}.{boot}")),
            about: format!("process {pid} ({name}, {program}) of user {user}"),
            command_line: of_a_server(&String::from_utf8_lossy(&words)),
        })
    }
}

/// The command line of a server that is not ours, without the keys that may stand on it; that of another program is
/// not shown.
fn of_a_server(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_terminator('\0').collect();
    if words.first().is_none_or(|word| word.rsplit('/').next() != Some("llama-server")) {
        return Vec::new();
    }
    let mut is_key = false;
    let hide = |word: &str| {
        let hidden = if is_key { "(redacted)" } else { word };
        is_key = ["--api-key", "--api_key"].contains(&word);
        match hidden.split_once('=') {
            Some((name @ ("--api-key" | "--api_key"), _)) => format!("{name}=(redacted)"),
            _ => hidden.to_owned(),
        }
    };
    words.into_iter().map(hide).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(entries: &[[&str; 3]]) -> Facts {
        let one = |[pid, program, words]: &[&str; 3]| {
            let stat = format!("{pid} (a b) c) S {}", (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
            format!("{pid}\0a b\0{program}\0me\0{stat}\0{}\0", STANDARD.encode(words))
        };
        Facts::of([(KEY.to_owned(), entries.iter().map(one).collect())].into())
    }

    #[test]
    fn who_else_listens_is_told_without_its_secrets() {
        let own = ["7", "/b/llama-server", "/b/llama-server\0-m\0x\0"];
        let other = ["8", "/c/llama-server", "/c/llama-server\0--api-key\0planted\0--api-key=planted\0-m\0y\0"];
        assert_eq!(Listener::beside(Some(7), &facts(&[own]), "boot"), None);
        let rival = Listener::beside(Some(7), &facts(&[own, other]), "boot").unwrap();
        assert_eq!(rival.identity.as_deref(), Some("8.18.boot"));
        assert_eq!(rival.about, "process 8 (a b, /c/llama-server) of user me");
        assert_eq!(
            rival.command_line,
            ["/c/llama-server", "--api-key", "(redacted)", "--api-key=(redacted)", "-m", "y"]
        );
        let stranger = Listener::beside(None, &facts(&[["9", "/usr/bin/nc", "nc\0--password\0planted\0"]]), "boot");
        assert_eq!(stranger.unwrap().command_line, [""; 0]);
        let unseen = Listener::beside(None, &facts(&[["?", "", ""]]), "boot").unwrap();
        assert_eq!((unseen.identity, unseen.about.as_str()), (None, "a process of another user"));
    }
}
