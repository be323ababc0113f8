//! Facts about the instance: the questions of a check (commands), their answers, and the listeners on a port.

use std::collections::{BTreeSet, HashMap};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    super::options::{self, ServerOption},
    shell::{path, quote},
};

/// The known facts about an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The names of the GPUs.
    pub cards: Vec<String>,
    /// Their compute capabilities, such as "7.0"; none if the driver does not report them.
    pub capabilities: Vec<String>,
    /// The CUDA toolkits, the one on the PATH first.
    pub toolkits: Vec<Toolkit>,
    /// The programs for a compile that are installed.
    pub tools: Vec<String>,
    /// The free memory, or the limit of the container, in MiB.
    pub memory_mib: Option<u64>,
    /// The processors that may be used.
    pub cores: Option<u32>,
    /// All answers, by the names of the questions.
    pub answers: HashMap<String, String>,
    /// The build that served last: its path, and [`super::Prebuilt::hardware`] of that time.
    pub served: Option<(String, String)>,
    /// The questions that have no answer: it is not known, which is neither "missing" nor "changed".
    pub unanswered: BTreeSet<String>,
    /// Whether one of them is missing because no folder had room for its answer.
    pub lacks_room: bool,
}

/// A CUDA toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// The path of its compiler.
    pub nvcc: String,
    /// Such as "12.4"; empty if unknown.
    pub version: String,
    /// The architectures that it supports, such as "70"; empty if unknown.
    pub architectures: Vec<String>,
}

impl Facts {
    /// The facts in these answers.
    pub fn of(answers: HashMap<String, String>) -> Self {
        let mut facts = Self { answers, ..Self::default() };
        facts.cards = facts.answers.get("cards").map(|answer| cards(answer)).unwrap_or_default();
        facts.cards.sort();
        facts.cards.dedup();
        let capabilities = facts.lines("capabilities").into_iter().filter(|text| {
            text.split_once('.').is_some_and(|(major, minor)| {
                [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            })
        });
        facts.capabilities = capabilities.collect();
        facts.toolkits = facts.lines("toolkits").iter().filter_map(|line| Toolkit::read(line)).collect();
        facts.tools = facts.lines("tools");
        facts.memory_mib = facts.lines("memory").iter().filter_map(|line| memory_mib(line)).min();
        facts.cores = facts.lines("cores").iter().filter_map(|line| cores(line)).min();
        facts
    }

    /// Adds further answers.
    pub fn learn(&mut self, further: Self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(further.answers);
        let mut unanswered = std::mem::take(&mut self.unanswered);
        unanswered.extend(further.unanswered);
        let served = further.served.or_else(|| self.served.take());
        let lacks_room = further.lacks_room || self.lacks_room;
        *self = Self { unanswered, served, lacks_room, ..Self::of(answers) };
    }

    /// Whether a question was asked already.
    pub fn knows(&self, key: &str) -> bool {
        self.answers.contains_key(key) || self.unanswered.contains(key)
    }

    /// An answer, without the white space around it; empty if there was none.
    pub fn text(&self, key: &str) -> &str {
        self.answers.get(key).map_or("", |answer| answer.trim())
    }

    /// The lines of an answer that are not blank.
    pub fn lines(&self, key: &str) -> Vec<String> {
        let lines = self.text(key).lines().map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// An answer that is a list of values, each with a NUL behind it, so many to an entry.
    pub fn entries<const VALUES: usize>(&self, key: &str) -> Vec<[&str; VALUES]> {
        let values: Vec<&str> = self.answers.get(key).map_or("", |answer| answer).split_terminator('\0').collect();
        values.chunks_exact(VALUES).filter_map(|entry| entry.try_into().ok()).collect()
    }

    /// [`absolute`] in the home of the instance.
    pub fn absolute(&self, path: &str) -> String {
        absolute(path, self.text("home"))
    }

    /// The places of a folder of the public storage, for people.
    pub fn storage(&self, folder: &str) -> String {
        let mut places = options::PUBLIC_STORAGE.map(|storage| self.absolute(&format!("{storage}/{folder}"))).to_vec();
        places.dedup();
        places.join(" or ")
    }
}

/// An absolute path without empty and `.` parts: `~/` is the home, and a relative path begins there. What `..` means
/// depends on links, so it stays.
pub fn absolute(path: &str, home: &str) -> String {
    let whole = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{home}/{path}"),
    };
    let parts: Vec<&str> = whole.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    format!("/{}", parts.join("/"))
}

impl Toolkit {
    /// The path, the output of `--version` and that of `--list-gpu-arch`, separated by tabs.
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        let nvcc = parts.next().filter(|nvcc| !nvcc.is_empty())?.to_owned();
        let release = parts.next().and_then(|about| about.split_once("release ")).map(|(_, rest)| rest);
        let is_part = |c: &char| c.is_ascii_digit() || *c == '.';
        let version = release.map(|rest| rest.chars().take_while(is_part).collect()).unwrap_or_default();
        let listed = parts.next().unwrap_or_default().split_whitespace();
        let architectures = listed.filter_map(|word| Some(word.strip_prefix("compute_")?.to_owned())).collect();
        Some(Self { nvcc, version, architectures })
    }
}

/// The names in rows of nvidia-smi, which the version of the driver follows, and the service's name in the last line.
fn cards(answer: &str) -> Vec<String> {
    let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '[');
    let mut lines: Vec<&str> = answer.lines().map(str::trim).collect();
    let named = lines.pop().map(|line| line.rsplit_once(", ").map_or(line, |(name, _)| name));
    let rows = lines.into_iter().filter_map(|line| match line.rsplit_once(", ") {
        Some((name, version)) if is_version(version) => Some(name),
        _ => {
            tracing::info!(line, "a line of nvidia-smi is no GPU");
            None
        }
    });
    rows.chain(named).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `12345 kB` of the kernel, or the limit of a container in bytes: "max" or a number near 2^63 if there is none.
fn memory_mib(line: &str) -> Option<u64> {
    match line.strip_suffix("kB") {
        Some(kilobytes) => Some(kilobytes.trim().parse::<u64>().ok()? / 1024),
        None => Some(line.parse::<u64>().ok().filter(|bytes| *bytes < 1 << 50)? / (1 << 20)),
    }
}

/// A number, or a container's `quota period`: `max 100000` if there is no limit.
fn cores(line: &str) -> Option<u32> {
    match line.split_once(' ') {
        None => line.parse().ok(),
        Some((quota, period)) => {
            let (quota, period): (u32, u32) = (quota.parse().ok()?, period.parse().ok()?);
            (period > 0).then(|| quota.div_ceil(period))
        }
    }
}

/// A question: a function of `script/questions.sh`, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The name of the function, and of the fact.
    pub key: &'static str,
    arguments: String,
}

impl Question {
    /// A question without arguments.
    pub fn new(key: &'static str) -> Self {
        Self { key, arguments: String::new() }
    }

    /// Adds a path of the instance, which may begin with `~/`.
    pub fn on(mut self, text: &str) -> Self {
        self.arguments.push(' ');
        self.arguments.push_str(&path(text));
        self
    }

    /// Adds a folder of the public storage, in each place where the storage may be.
    pub fn on_storage(self, folder: &str) -> Self {
        options::PUBLIC_STORAGE.iter().fold(self, |question, storage| question.on(&format!("{storage}/{folder}")))
    }

    /// Adds an argument.
    pub fn with(mut self, text: &str) -> Self {
        self.arguments.push(' ');
        self.arguments.push_str(&quote(text));
        self
    }

    /// The statement of the program that asks it.
    pub(super) fn statement(&self) -> String {
        format!("ask {}{}\n", self.key, self.arguments)
    }

    /// The command that runs the function itself.
    pub(super) fn command(&self) -> String {
        format!("ask_{}{}", self.key, self.arguments)
    }
}

/// The prefix of a fact's name in a report.
pub(super) const PREFIX: &str = "fact_";

/// The name of the fact.
const KEY: &str = "listeners";

/// Asks for the processes that listen on a port. The program treats the port as free if the answer is empty.
pub(super) fn listeners(port: u16) -> Question {
    Question::new(KEY).with(&port.to_string()).with(&format!("{port:04X}"))
}

/// A process that listens on the server's port and is not the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortHolder {
    /// Its identity, which is unique, also after a reboot; none if the user cannot see the process.
    pub identity: Option<String>,
    /// A description for people. It has no arguments, which may be secret.
    pub about: String,
    /// Its arguments without their secrets, if it is another llama-server of the same user.
    pub command_line: Vec<String>,
}

impl PortHolder {
    /// The first that is not this process. `folder` is the state folder.
    pub(super) fn beside(own: Option<u32>, folder: &str, facts: &Facts, boot: &str) -> Option<Self> {
        let own = own.map(|pid| pid.to_string());
        let others = facts.entries::<7>(KEY).into_iter();
        let [pid, name, program, user, stat, words, folder_of_work] =
            others.into_iter().find(|[pid, ..]| own.as_deref() != Some(*pid))?;
        if pid == "?" {
            let about = "a process of another user".to_owned();
            return Some(Self { identity: None, about, command_line: Vec::new() });
        }
        // The name is in parentheses and may contain anything.
        let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19));
        let identity = start.map(|start| format!("{pid}.{start}.{boot}"));
        let about = format!("process {pid} ({name}, {program}) of user {user}");
        // A server that the work of another resource supervises is never ended.
        if let Some((workspace, _)) = folder_of_work.trim_end().rsplit_once("/.damodel/")
            && folder_of_work.trim_end() != folder
        {
            let about = format!("{about}, the server of another damodel_llama_server with the workspace {workspace}");
            return Some(Self { identity, about, command_line: Vec::new() });
        }
        let words: String = words.split_whitespace().collect();
        let words = STANDARD.decode(words).unwrap_or_default();
        Some(Self { identity, about, command_line: of_a_server(&String::from_utf8_lossy(&words)) })
    }
}

/// The command line of a llama-server without its keys; empty for another program.
fn of_a_server(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_terminator('\0').collect();
    if words.first().is_none_or(|word| word.rsplit('/').next() != Some("llama-server")) {
        return Vec::new();
    }
    let is_secret = |word: &str| options::find_option(word).is_some_and(ServerOption::is_secret);
    let mut is_value = false;
    let shown = words.into_iter().map(|word| {
        let hidden = if is_value { "(redacted)" } else { word };
        is_value = is_secret(word) && !word.contains('=');
        match hidden.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}=(redacted)"),
            _ => hidden.to_owned(),
        }
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, text: &str) -> Facts {
        Facts::of([(key.to_owned(), text.to_owned())].into())
    }

    #[test]
    fn entries_hold_whatever_a_name_holds() {
        let facts = read("servers", "/a b\0one\n\0/c\nd\0\0/cut");
        assert_eq!(facts.entries::<2>("servers"), [["/a b", "one\n"], ["/c\nd", ""]]);
        assert!(facts.entries::<2>("others").is_empty() && !facts.knows("others"));
    }

    #[test]
    fn answers_are_added_up() {
        let noise = "WARNING: infoROM is corrupted at gpu 0000:00:00.0";
        let mut facts = read("cards", &format!("{noise}\nT4, 550.54\nA100, [N/A]\nfailed, as before\nT4\n"));
        facts.learn(read("home", "/root\n"));
        assert_eq!(facts.cards, ["A100", "T4"]);
        assert_eq!(read("cards", &format!("T4, 550.54\n{noise}\n\n")).cards, ["T4"]);
        for (path, absolute) in [
            ("~", "/root"),
            ("~/m", "/root/m"),
            ("m", "/root/m"),
            ("/m", "/m"),
            ("~m", "/root/~m"),
            ("~//m/./n/", "/root/m/n"),
            ("/../m", "/../m"),
            ("/", "/"),
        ] {
            assert_eq!(facts.absolute(path), absolute);
        }
        assert_eq!(facts.storage("model"), "/root/public-storage/model");
        facts.learn(read("home", "/home/me"));
        assert_eq!(facts.storage("model"), "/home/me/public-storage/model or /root/public-storage/model");
    }

    #[test]
    fn capabilities_are_numbers_with_a_dot_and_errors_are_none() {
        assert_eq!(read("capabilities", "8.9\n 7.0 \r\n").capabilities, ["8.9", "7.0"]);
        let error = "Field \"compute_cap\" is not a valid field to query.\n[N/A]";
        assert_eq!(read("capabilities", error).capabilities, [""; 0]);
    }

    #[test]
    fn toolkits_are_read_as_nvcc_tells_them() {
        let printed = "/usr/bin/nvcc\tnvcc: NVIDIA (R) Cuda Cuda compilation tools, release 12.4, V12.4.99\tcompute_50 \
                    compute_70\n/opt/cuda/bin/nvcc\t\t";
        let toolkits = read("toolkits", printed).toolkits;
        let toolkit = |nvcc: &str, version: &str, architectures: &[&str]| Toolkit {
            nvcc: nvcc.to_owned(),
            version: version.to_owned(),
            architectures: architectures.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(toolkits, [toolkit("/usr/bin/nvcc", "12.4", &["50", "70"]), toolkit("/opt/cuda/bin/nvcc", "", &[])]);
    }

    #[test]
    fn a_container_may_be_granted_less_than_it_sees() {
        for (printed, memory) in [
            ("8388608 kB", Some(8192)),
            ("8388608 kB\nmax", Some(8192)),
            ("8388608 kB\n9223372036854771712", Some(8192)),
            ("8388608 kB\n2147483648", Some(2048)),
            ("", None),
        ] {
            assert_eq!(read("memory", printed).memory_mib, memory, "{printed}");
        }
        for (printed, cores) in
            [("16", Some(16)), ("16\nmax 100000", Some(16)), ("16\n250000 100000", Some(3)), ("max 100000", None)]
        {
            assert_eq!(read("cores", printed).cores, cores, "{printed}");
        }
    }

    fn facts(entries: &[[&str; 3]], folder: &str) -> Facts {
        let one = |[pid, program, words]: &[&str; 3]| {
            let stat = format!("{pid} (a b) c) S {}", (0..40).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
            format!("{pid}\0a b\0{program}\0me\0{stat}\0{}\0{folder}\0", STANDARD.encode(words))
        };
        Facts::of([(KEY.to_owned(), entries.iter().map(one).collect())].into())
    }

    #[test]
    fn who_else_listens_is_told_without_its_secrets() {
        let own = ["7", "/b/llama-server", "/b/llama-server\0-m\0x\0"];
        let other = ["8", "/c/llama-server", "/c/llama-server\0--api-key\0planted\0--hf_token=planted\0-m\0y\0"];
        let beside = |own, entries: &[[&str; 3]], of_work| {
            PortHolder::beside(own, "/w/.damodel/8000-i", &facts(entries, of_work), "boot")
        };
        assert_eq!(beside(Some(7), &[own], ""), None);
        let rival = beside(Some(7), &[own, other], "/w/.damodel/8000-i").unwrap();
        assert_eq!(rival.identity.as_deref(), Some("8.18.boot"));
        assert_eq!(rival.about, "process 8 (a b, /c/llama-server) of user me");
        assert_eq!(
            rival.command_line,
            ["/c/llama-server", "--api-key", "(redacted)", "--hf_token=(redacted)", "-m", "y"]
        );
        let stranger = beside(None, &[["9", "/usr/bin/nc", "nc\0--password\0planted\0"]], "");
        assert_eq!(stranger.unwrap().command_line, [""; 0]);
        // The server of another resource was not started by hand.
        let of_another = beside(None, &[other], "/x/.damodel/8000-i").unwrap();
        assert_eq!(of_another.command_line, [""; 0]);
        assert!(of_another.about.ends_with("another damodel_llama_server with the workspace /x"), "{of_another:?}");
        let unseen = beside(None, &[["?", "", ""]], "").unwrap();
        assert_eq!((unseen.identity, unseen.about.as_str()), (None, "a process of another user"));
    }
}
