//! The prebuilt server: which of those in the instance serves.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::{
    bootstrap::{Facts, FailureKind, Job, JobFailure, Prebuilt, Provided, Question, Supply},
    model_file::list,
};

/// Each executable server below a folder: its path, its time, how its `--version` ended, and what that printed.
const SERVERS: &str = "find -L \"$1\" -maxdepth 5 -type f -name llama-server -exec sh -c '\
    for file; do [ -x \"$file\" ] || continue; folder=${file%/*}; \
    said=$(LD_LIBRARY_PATH=$folder:$folder/../lib:$LD_LIBRARY_PATH \"$file\" --version 2>&1 </dev/null); code=$?; \
    printf \"%s\\0%s\\0%s\\0%s\\0\" \"$file\" \"$(stat -L -c %Y \"$file\")\" \"$code\" \"$said\"; done' sh {} +";

/// Each archive there that holds a server: its path, its size and time, and the server's path in it.
const ARCHIVES: &str = "find -L \"$1\" -maxdepth 3 -type f \\( -name '*.t?z' -o -name '*.tar*' -o -name '*.zip' \\) \
                        -exec sh -c 'for file; do case $file in *.zip) unzip -Z1 \"$file\" ;; *) tar -tf \"$file\" ;; \
                        esac </dev/null 2>/dev/null | grep -E \"(^|/)llama-server$\" | head -n 1 | { read -r entry && \
                        printf \"%s\\0%s\\0%s\\0\" \"$file\" \"$(stat -L -c %s:%Y \"$file\")\" \"$entry\"; }; done' \
                        sh {} +";

/// What is asked about it: more as long as nothing is found.
pub(super) fn questions(job: &Job, facts: &Facts) -> Vec<Question> {
    let root = root(job);
    let mut questions = vec![
        Question::of("package", &["stat", "-L", "-c", "%F/%Y"]).on(&root),
        Question::line("servers", SERVERS).on(&root),
    ];
    let is_found = !facts.text("servers").is_empty() || (is_file(facts) && !is_archive(&root));
    if facts.knows("servers") && !is_found {
        let listing = "cd \"$1\" && find . -maxdepth 3 ! -name . | sed 's|^\\./||'";
        questions.push(Question::line("server_archives", ARCHIVES).on(&root));
        questions.push(Question::line("packages", listing).on(&format!("{}/package", job.public_storage)));
    }
    questions
}

/// A path that was given must be there.
pub(super) fn check(job: &Job, facts: &Facts) -> Result<(), JobFailure> {
    match &job.package {
        Some(path) if facts.knows("package") && facts.text("package").is_empty() => {
            Err(none(job, facts, &format!("no file or folder at {}", facts.absolute(path))))
        }
        _ => Ok(()),
    }
}

/// The best one. A file is taken as it is, a folder is looked through, an archive unpacked.
pub(super) fn choose(job: &Job, facts: &Facts) -> Result<Prebuilt, JobFailure> {
    check(job, facts)?;
    let root = facts.absolute(&root(job));
    let prebuilt = |path: String, provided| {
        let hardware = hardware_of(&path, facts);
        Ok(Prebuilt { path, provided, hardware })
    };
    if is_file(facts) && !is_archive(&root) {
        return prebuilt(root, None);
    }
    if let Some(best) = best(facts) {
        return prebuilt(best, None);
    }
    match facts.entries("server_archives").first() {
        Some([archive, stat, entry]) => {
            let name = archive.rsplit('/').next().unwrap_or_default();
            let folder = format!("{}/.damodel/packages/{}", job.place.workspace, short_hash([name, stat]));
            let path = facts.absolute(&format!("{folder}/{}", entry.trim_start_matches("./")));
            prebuilt(path, Some(Provided { folder, from: Supply::Archive((*archive).to_owned()) }))
        }
        None => Err(none(job, facts, &format!("no executable llama-server is in {root}"))),
    }
}

/// What decides whether the prebuilt server can run; empty where there is none.
pub(super) fn hardware(job: &Job, facts: &Facts) -> String {
    choose(job, facts).map(|prebuilt| prebuilt.hardware).unwrap_or_default()
}

/// The cards, their driver, the file and the folder that it was found in, as one word.
fn hardware_of(path: &str, facts: &Facts) -> String {
    let times = facts.entries::<4>("servers");
    let time = times.iter().find(|[file, ..]| *file == path).map_or("", |[_, time, ..]| *time);
    short_hash([facts.text("cards"), path, time, facts.text("package")])
}

fn root(job: &Job) -> String {
    job.package.clone().unwrap_or_else(|| format!("{}/package", job.public_storage))
}

fn is_file(facts: &Facts) -> bool {
    facts.text("package").starts_with("regular")
}

fn is_archive(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_short =
        name.rsplit_once('.').is_some_and(|(_, end)| end.len() == 3 && end.starts_with('t') && end.ends_with('z'));
    is_short || name.contains(".tar") || name.ends_with(".zip")
}

/// A server that runs before one that does not, then one for CUDA, then by the number of the build, then the newest. A
/// dotted version is of the numbering that came after the plain one.
fn best(facts: &Facts) -> Option<String> {
    let rank = |[path, time, code, said]: &[&str; 4]| {
        let version = said.lines().find_map(|line| line.strip_prefix("version:")?.split_whitespace().next());
        let build = version.map_or(0, |version| version.parse::<u64>().unwrap_or(u64::MAX));
        (*code == "0", path.to_ascii_lowercase().contains("cuda"), build, time.parse::<i64>().unwrap_or_default())
    };
    facts.entries("servers").into_iter().max_by_key(rank).map(|[path, ..]| path.to_owned())
}

fn none(job: &Job, facts: &Facts, what: &str) -> JobFailure {
    let folder = facts.absolute(&format!("{}/package", job.public_storage));
    let text = match list(facts.lines("packages")) {
        Some(found) => format!("{what}. {folder} contains:\n{found}"),
        None => format!("{what}. {folder} is empty"),
    };
    JobFailure { kind: FailureKind::NoPackage, text }
}

/// 16 hexadecimal digits of a hash over texts.
pub(super) fn short_hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_of(servers: &[[&str; 4]]) -> Option<String> {
        let answer: String = servers.as_flattened().iter().map(|value| format!("{value}\0")).collect();
        best(&Facts::of([("servers".to_owned(), answer)].into()))
    }

    #[test]
    fn the_best_of_several_servers_is_chosen() {
        let old = ["/p/cuda-a/llama-server", "1", "0", "version: 4748 (c392e5094)"];
        let new = ["/p/cuda-b/llama-server", "1", "0", "ggml_cuda_init: failed\nversion: 0.5.0-dev (build 0)"];
        let broken = ["/p/cuda-c/llama-server", "9", "127", "error while loading shared libraries"];
        let other = ["/p/vulkan/llama-server", "9", "0", "version: 0.6.0"];
        let newer = ["/p/cuda-d/llama-server", "2", "0", "version: 0.5.0-dev (build 0)"];
        for (servers, expected) in [
            (vec![old, new, broken, other], Some(new)),
            (vec![new, newer, old], Some(newer)),
            (vec![other, broken], Some(other)),
            (vec![broken], Some(broken)),
            (vec![], None),
        ] {
            assert_eq!(best_of(&servers).as_deref(), expected.map(|[path, ..]| path));
        }
    }

    #[test]
    fn an_archive_is_known_by_its_name() {
        for name in ["/a.tgz", "a.txz", "/x/a.tar.gz", "a.tar", "a.zip"] {
            assert!(is_archive(name), "{name}");
        }
        for name in ["/a.tar.d/llama-server", "/llama-server", "a.gz"] {
            assert!(!is_archive(name), "{name}");
        }
    }
}
