//! The choice of the prebuilt server.

use sha2::{Digest, Sha256};

use super::{
    bootstrap::{Facts, FailureKind, Job, JobFailure, Prebuilt, Provided, Question, Supply},
    model_file::list,
};

/// The folder of prebuilt servers in the public storage.
const FOLDER: &str = "package";

/// The questions about it: more if nothing is found.
pub(super) fn questions(job: &Job, facts: &Facts) -> Vec<Question> {
    let at_root = |key| match &job.package {
        Some(path) => Question::new(key).on(path),
        None => Question::new(key).on_storage(FOLDER),
    };
    let mut questions = vec![at_root("package"), at_root("servers")];
    let is_found = !facts.text("servers").is_empty() || given_server(job, facts).is_some();
    if facts.answers.contains_key("servers") && !is_found {
        questions.push(at_root("server_archives"));
        questions.push(Question::new("packages").on_storage(FOLDER));
    }
    questions
}

/// A path that was given must be there.
pub(super) fn check(job: &Job, facts: &Facts) -> Result<(), JobFailure> {
    match &job.package {
        Some(path) if facts.answers.contains_key("package") && facts.text("package").is_empty() => {
            Err(none(facts, &format!("no file or folder at {}", facts.absolute(path))))
        }
        _ => Ok(()),
    }
}

/// The best one. A path may be a file, a folder to search, or an archive to unpack.
pub(super) fn choose(job: &Job, facts: &Facts) -> Result<Prebuilt, JobFailure> {
    check(job, facts)?;
    let prebuilt = |path: String, provided| {
        let hardware = hardware_of(&path, facts);
        Ok(Prebuilt { path, provided, hardware })
    };
    if let Some(path) = given_server(job, facts) {
        return prebuilt(facts.absolute(path), None);
    }
    if let Some(best) = best(facts, last(facts)) {
        return prebuilt(best, None);
    }
    match facts.entries("server_archives").first() {
        Some([archive, stat, entry]) => {
            let name = archive.rsplit('/').next().unwrap_or_default();
            let folder = format!("{}/.damodel/packages/{}", job.place.workspace, short_hash([name, stat]));
            let path = facts.absolute(&format!("{folder}/{}", entry.trim_start_matches("./")));
            prebuilt(path, Some(Provided { folder, from: Supply::Archive((*archive).to_owned()) }))
        }
        None => {
            let root = job.package.as_ref().map_or_else(|| facts.storage(FOLDER), |path| facts.absolute(path));
            Err(none(facts, &format!("no executable llama-server is in {root}")))
        }
    }
}

/// [`Prebuilt::hardware`] of the choice; empty without one.
pub(super) fn hardware(job: &Job, facts: &Facts) -> String {
    choose(job, facts).map(|prebuilt| prebuilt.hardware).unwrap_or_default()
}

/// Two hashes in one word: of the cards and their driver, and of the file and the folder that it was found in.
fn hardware_of(path: &str, facts: &Facts) -> String {
    let times = facts.entries::<5>("servers");
    let time = times.iter().find(|[file, ..]| *file == path).map_or("", |[_, time, ..]| *time);
    format!("{}-{}", short_hash([facts.text("cards")]), short_hash([path, time, facts.text("package")]))
}

/// The server of the last run that served, if its file is still the same.
fn last(facts: &Facts) -> Option<&str> {
    let (path, hardware) = facts.served.as_ref()?;
    let file = |hardware: &str| hardware.split_once('-').map(|(_, file)| file.to_owned());
    Some(path.as_str()).filter(|path| file(hardware) == file(&hardware_of(path, facts)))
}

/// The path of the configuration, if it is that of a server itself.
fn given_server<'a>(job: &'a Job, facts: &Facts) -> Option<&'a str> {
    let is_file = facts.text("package").starts_with("regular");
    job.package.as_deref().filter(|path| is_file && !is_archive(path))
}

fn is_archive(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_short =
        name.rsplit_once('.').is_some_and(|(_, end)| end.len() == 3 && end.starts_with('t') && end.ends_with('z'));
    is_short || name.contains(".tar") || name.ends_with(".zip")
}

/// A server that runs before one that does not, then one that may see a GPU before one that certainly sees none, then
/// the one that served last, then one for CUDA, then by the number of the build, then the newest. A dotted version is
/// newer than a plain number.
fn best(facts: &Facts, last: Option<&str>) -> Option<String> {
    facts
        .entries("servers")
        .into_iter()
        .max_by_key(|[path, time, code, printed, gpu]| {
            let version = printed.lines().find_map(|line| line.strip_prefix("version:")?.split_whitespace().next());
            let build = version.map_or(0, |version| version.parse::<u64>().unwrap_or(u64::MAX));
            let (is_last, is_cuda) = (last == Some(*path), path.to_ascii_lowercase().contains("cuda"));
            (*code == "0", *gpu != "none", is_last, is_cuda, build, time.parse::<i64>().unwrap_or_default())
        })
        .map(|[path, ..]| path.to_owned())
}

fn none(facts: &Facts, what: &str) -> JobFailure {
    let folder = facts.storage(FOLDER);
    let text = match list(facts.lines("packages")) {
        Some(found) => format!("{what}. Files in {folder}:\n{found}"),
        None => format!("{what}. No files are in {folder}"),
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
    hash.finalize().get(..8).map(hex::encode).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_served_last_is_known_while_its_file_is_the_same() {
        let facts = |time: &str, cards: &str| {
            let answers = [("servers", format!("/p/llama-server\0{time}\00\0\0\0")), ("cards", cards.to_owned())];
            Facts::of(answers.map(|(key, value)| (key.to_owned(), value)).into())
        };
        let served = ("/p/llama-server".to_owned(), hardware_of("/p/llama-server", &facts("1", "T4")));
        for (time, cards, expected) in [("1", "T4", true), ("1", "A100", true), ("2", "T4", false)] {
            let facts = Facts { served: Some(served.clone()), ..facts(time, cards) };
            assert_eq!(last(&facts).is_some(), expected, "{time} {cards}");
        }
    }

    fn best_of(servers: &[[&str; 5]], last: Option<&str>) -> Option<String> {
        let answer: String = servers.as_flattened().iter().map(|value| format!("{value}\0")).collect();
        best(&Facts::of([("servers".to_owned(), answer)].into()), last)
    }

    #[test]
    fn the_best_of_several_servers_is_chosen() {
        let old = ["/p/cuda-a/llama-server", "1", "0", "version: 4748 (c392e5094)", ""];
        let new = ["/p/cuda-b/llama-server", "1", "0", "ggml_cuda_init: failed\nversion: 0.5.0-dev (build 0)", ""];
        let broken = ["/p/cuda-c/llama-server", "9", "127", "error while loading shared libraries", ""];
        let other = ["/p/vulkan/llama-server", "9", "0", "version: 0.6.0", ""];
        let newer = ["/p/cuda-d/llama-server", "2", "0", "version: 0.5.0-dev (build 0)", ""];
        let blind = ["/p/cuda-e/llama-server", "3", "0", "version: 0.7.0", "none"];
        for (servers, last, expected) in [
            (vec![old, new, broken, other], None, Some(new)),
            (vec![new, newer, old], None, Some(newer)),
            (vec![other, broken], None, Some(other)),
            (vec![broken], None, Some(broken)),
            (vec![], None, None),
            (vec![blind, other], None, Some(other)),
            (vec![blind, broken], None, Some(blind)),
            // The server of the last run is kept, unless it sees no GPU any more.
            (vec![new, newer, old], Some("/p/cuda-a/llama-server"), Some(old)),
            (vec![blind, old], Some("/p/cuda-e/llama-server"), Some(old)),
        ] {
            assert_eq!(best_of(&servers, last).as_deref(), expected.map(|[path, ..]| path), "{last:?}");
        }
    }

    #[test]
    fn a_package_without_a_server_is_an_error_with_what_there_is() {
        for (package, found, packages, words) in [
            (Some("~/llama-b1"), "", "llama-cuda\n", "no file or folder at /root/llama-b1. "),
            (None, "directory/1", "b\na\n", "no executable llama-server is in /root/public-storage/package. "),
            (None, "directory/1", "", "No files are in /root/public-storage/package"),
        ] {
            let answers = [("home", "/root"), ("package", found), ("servers", ""), ("packages", packages)];
            let facts = Facts::of(answers.map(|(key, answer)| (key.to_owned(), answer.to_owned())).into());
            let failure = choose(&Job { package: package.map(str::to_owned), ..Job::sample() }, &facts).unwrap_err();
            let sorted = if packages == "b\na\n" { "/package:\na\nb" } else { "" };
            assert_eq!(failure.kind, FailureKind::NoPackage);
            assert!(failure.text.contains(words) && failure.text.ends_with(sorted), "{}", failure.text);
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
