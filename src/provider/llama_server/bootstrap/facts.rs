//! What the instance has, as it answers the questions of a check.

use std::collections::HashMap;

/// What is known of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The cards, by name.
    pub(crate) cards: Vec<String>,
    /// Their compute capabilities, such as "7.0"; none where the driver does not report them.
    pub(crate) capabilities: Vec<String>,
    /// The CUDA toolkits, the one on the PATH first.
    pub(crate) toolkits: Vec<Toolkit>,
    /// The programs for a compile that are installed.
    pub(crate) tools: Vec<String>,
    /// The memory that is free, or that a container is granted, in MiB.
    pub(crate) memory_mib: Option<u64>,
    /// The processors that may be used.
    pub(crate) cores: Option<u32>,
    /// All answers, by the names of the questions.
    pub(crate) answers: HashMap<String, String>,
}

/// A CUDA toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toolkit {
    /// The path of its compiler.
    pub(crate) nvcc: String,
    /// Such as "12.4"; empty where it does not tell.
    pub(crate) version: String,
    /// For which it compiles, such as "70"; empty where it does not tell.
    pub(crate) architectures: Vec<String>,
}

impl Facts {
    /// What these answers say.
    pub(crate) fn of(answers: HashMap<String, String>) -> Self {
        let mut facts = Self { answers, ..Self::default() };
        let is_capability = |text: &String| {
            text.split_once('.').is_some_and(|(major, minor)| {
                [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
            })
        };
        facts.cards = facts.lines("cards");
        facts.cards.sort();
        facts.cards.dedup();
        facts.capabilities = facts.lines("capabilities").into_iter().filter(is_capability).collect();
        facts.toolkits = facts.lines("toolkits").iter().filter_map(|line| Toolkit::read(line)).collect();
        facts.tools = facts.lines("tools");
        facts.memory_mib = facts.lines("memory").iter().filter_map(|line| memory_mib(line)).min();
        facts.cores = facts.lines("cores").iter().filter_map(|line| cores(line)).min();
        facts
    }

    /// Takes over further answers.
    pub(crate) fn learn(&mut self, further: Self) {
        let mut answers = std::mem::take(&mut self.answers);
        answers.extend(further.answers);
        *self = Self::of(answers);
    }

    /// Whether a question was asked.
    pub(crate) fn knows(&self, key: &str) -> bool {
        self.answers.contains_key(key)
    }

    /// An answer, without the white space around it; empty where nothing was answered.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.answers.get(key).map_or("", |answer| answer.trim())
    }

    /// The lines of an answer that hold something.
    pub(crate) fn lines(&self, key: &str) -> Vec<String> {
        let lines = self.text(key).lines().map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// An answer that is a list of values, each with a NUL behind it, so many to an entry.
    pub(crate) fn entries<const VALUES: usize>(&self, key: &str) -> Vec<[&str; VALUES]> {
        let values: Vec<&str> = self.answers.get(key).map_or("", |answer| answer).split_terminator('\0').collect();
        values.chunks_exact(VALUES).filter_map(|entry| entry.try_into().ok()).collect()
    }

    /// A path as the instance spells it out: `~/` is the home, and a relative path begins there.
    pub(crate) fn absolute(&self, path: &str) -> String {
        let home = self.text("home");
        match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ if path.starts_with('/') => path.to_owned(),
            _ => format!("{home}/{path}"),
        }
    }
}

impl Toolkit {
    /// The path, what the compiler says of its version, and what it lists, with tabs between them.
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

/// `12345 kB` of the kernel, or the bytes that a container is granted: "max", or a number near 2^63 that says the same.
fn memory_mib(line: &str) -> Option<u64> {
    match line.strip_suffix("kB") {
        Some(kilobytes) => Some(kilobytes.trim().parse::<u64>().ok()? / 1024),
        None => Some(line.parse::<u64>().ok().filter(|bytes| *bytes < 1 << 50)? / (1 << 20)),
    }
}

/// A number, or a container's `quota period`: `max 100000` where it has none.
fn cores(line: &str) -> Option<u32> {
    match line.split_once(' ') {
        None => line.parse().ok(),
        Some((quota, period)) => {
            let (quota, period): (u32, u32) = (quota.parse().ok()?, period.parse().ok()?);
            (period > 0).then(|| quota.div_ceil(period))
        }
    }
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
        let mut facts = read("cards", "T4\nA100\nT4");
        facts.learn(read("home", "/root\n"));
        assert_eq!(facts.cards, ["A100", "T4"]);
        for (path, absolute) in [("~", "/root"), ("~/m", "/root/m"), ("m", "/root/m"), ("/m", "/m"), ("~m", "/root/~m")]
        {
            assert_eq!(facts.absolute(path), absolute);
        }
    }

    #[test]
    fn capabilities_are_numbers_with_a_dot_and_errors_are_none() {
        assert_eq!(read("capabilities", "8.9\n 7.0 \r\n").capabilities, ["8.9", "7.0"]);
        let error = "Field \"compute_cap\" is not a valid field to query.\n[N/A]";
        assert_eq!(read("capabilities", error).capabilities, [""; 0]);
    }

    #[test]
    fn toolkits_are_read_as_nvcc_tells_them() {
        let told = "/usr/bin/nvcc\tnvcc: NVIDIA (R) Cuda Cuda compilation tools, release 12.4, V12.4.99\tcompute_50 \
                    compute_70\n/opt/cuda/bin/nvcc\t\t";
        let toolkits = read("toolkits", told).toolkits;
        let toolkit = |nvcc: &str, version: &str, architectures: &[&str]| Toolkit {
            nvcc: nvcc.to_owned(),
            version: version.to_owned(),
            architectures: architectures.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(toolkits, [toolkit("/usr/bin/nvcc", "12.4", &["50", "70"]), toolkit("/opt/cuda/bin/nvcc", "", &[])]);
    }

    #[test]
    fn a_container_may_be_granted_less_than_it_sees() {
        for (told, memory) in [
            ("8388608 kB", Some(8192)),
            ("8388608 kB\nmax", Some(8192)),
            ("8388608 kB\n9223372036854771712", Some(8192)),
            ("8388608 kB\n2147483648", Some(2048)),
            ("", None),
        ] {
            assert_eq!(read("memory", told).memory_mib, memory, "{told}");
        }
        for (told, cores) in
            [("16", Some(16)), ("16\nmax 100000", Some(16)), ("16\n250000 100000", Some(3)), ("max 100000", None)]
        {
            assert_eq!(read("cores", told).cores, cores, "{told}");
        }
    }
}
