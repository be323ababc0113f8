//! The source of a compile: its origin and its exact version.

use super::{
    bootstrap::{
        Facts, FailureKind, Job, JobFailure, Provided, Question, REFERENCE, REPOSITORY, SourceOrigin, Supply, Tree,
    },
    package::short_hash,
};

/// The origin of the source.
enum KnownSource {
    Archive { path: String, stat: String, entry: String },
    Git { url: String, reference: String },
    Tree(String),
}

/// The next questions about it.
pub(super) fn questions(job: &Job, facts: &Facts) -> Vec<Question> {
    let mut questions = match &job.source.origin {
        SourceOrigin::Default => {
            let mut questions = vec![Question::new("trees").on_storage("package")];
            if facts.answers.contains_key("trees") && facts.text("trees").is_empty() {
                questions.push(Question::new("source_archives").on_storage("package"));
            }
            questions
        }
        SourceOrigin::Git { .. } => Vec::new(),
        SourceOrigin::Path(path) => {
            let mut questions = vec![Question::new("source").on(path)];
            if facts.text("source").starts_with("regular") {
                questions.push(Question::new("source_archives").on(path));
            }
            questions
        }
    };
    let is_known = questions.iter().all(|question| facts.knows(question.key));
    match find(job, facts).ok().filter(|_| is_known) {
        Some(KnownSource::Git { url, reference }) => {
            questions.push(Question::new("references").with(&url).with(&reference));
            questions.push(Question::new("reference").on(&reference_file(job, &url, &reference)));
        }
        Some(KnownSource::Tree(path)) => questions.push(Question::new("tree").on(&path)),
        Some(KnownSource::Archive { .. }) | None => {}
    }
    questions
}

/// The tree, and the text of a warning.
pub(super) fn choose(job: &Job, facts: &Facts) -> Result<(Tree, Option<String>), JobFailure> {
    let folder_of = |hash: String| format!("{}/.damodel/sources/{hash}", job.place.workspace);
    match find(job, facts)? {
        KnownSource::Tree(path) => match facts.text("tree").split_whitespace().next() {
            Some(hash) => {
                let name = format!("tree-{}", hash.chars().take(16).collect::<String>());
                Ok((Tree { folder: path, name, provided: None }, None))
            }
            None => Err(no_source(format!("no source of llama.cpp in {path}: no CMakeLists.txt names llama"))),
        },
        KnownSource::Archive { path, stat, entry } => {
            let hash = short_hash([path.rsplit('/').next().unwrap_or_default(), &stat]);
            let provided = folder_of(hash.clone());
            let inside = entry.trim_start_matches("./").trim_end_matches("CMakeLists.txt").trim_end_matches('/');
            let folder = if inside.is_empty() { provided.clone() } else { format!("{provided}/{inside}") };
            let provided = Some(Provided { folder: provided, from: Supply::Archive(path) });
            Ok((Tree { folder, name: format!("archive-{hash}"), provided }, None))
        }
        KnownSource::Git { url, reference } => {
            let (commit, note) = commit(&url, &reference, facts)?;
            let folder = folder_of(short_hash([url.as_str(), &commit]));
            let file = reference_file(job, &url, &reference);
            let from = Supply::Git { url, reference, commit: commit.clone(), file };
            let provided = Some(Provided { folder: folder.clone(), from });
            Ok((Tree { folder, name: commit, provided }, note))
        }
    }
}

fn find(job: &Job, facts: &Facts) -> Result<KnownSource, JobFailure> {
    let archive = || {
        let archives = facts.entries("source_archives");
        archives.first().map(|[path, stat, entry]| KnownSource::Archive {
            path: (*path).to_owned(),
            stat: (*stat).to_owned(),
            entry: (*entry).to_owned(),
        })
    };
    match &job.source.origin {
        SourceOrigin::Git { url, reference } => Ok(KnownSource::Git { url: url.clone(), reference: reference.clone() }),
        SourceOrigin::Path(path) => {
            let path = facts.absolute(path);
            match (facts.text("source"), archive()) {
                ("directory", _) => Ok(KnownSource::Tree(path)),
                ("", _) => Err(no_source(format!("no source at {path}"))),
                (_, Some(archive)) => Ok(archive),
                (_, None) => Err(no_source(format!("no source of llama.cpp in the archive {path}"))),
            }
        }
        SourceOrigin::Default => {
            // The tree nearest to the folder, then the newest.
            let trees = facts.entries::<2>("trees");
            let depth = |path: &str| std::cmp::Reverse(path.matches('/').count());
            let best = trees.iter().max_by_key(|[time, path]| (depth(path), time.parse::<i64>().unwrap_or_default()));
            let tree = best.map(|[_, path]| KnownSource::Tree((*path).to_owned()));
            let public = || KnownSource::Git { url: REPOSITORY.to_owned(), reference: REFERENCE.to_owned() };
            Ok(tree.or_else(archive).unwrap_or_else(public))
        }
    }
}

/// The commit of a reference: the peeled tag, the tag, the branch. Without network it is the last known commit.
fn commit(url: &str, reference: &str, facts: &Facts) -> Result<(String, Option<String>), JobFailure> {
    if facts.knows("tools") && !facts.tools.iter().any(|tool| tool == "git") {
        let text = format!("git is not installed: install it to fetch the source from {url}, or set source.path");
        return Err(JobFailure { kind: FailureKind::MissingTool, text });
    }
    if is_commit(reference) {
        return Ok((reference.to_owned(), None));
    }
    let answer = facts.lines("references");
    let (found, said): (Vec<_>, Vec<_>) =
        answer.iter().partition(|line| line.split_once('\t').is_some_and(|(commit, _)| is_commit(commit)));
    let names = [
        format!("refs/tags/{reference}^{{}}"),
        format!("refs/tags/{reference}"),
        format!("refs/heads/{reference}"),
        reference.to_owned(),
    ];
    if let Some(commit) = names.iter().find_map(|name| {
        found.iter().filter_map(|line| line.split_once('\t')).find(|(_, found)| found == name).map(|(commit, _)| commit)
    }) {
        return Ok((commit.to_owned(), None));
    }
    let known = facts.text("reference");
    if !said.is_empty() && is_commit(known) {
        let note = format!(
            "the source repository could not be reached: {reference} of {url} is built at its last known commit, \
             {known}"
        );
        return Ok((known.to_owned(), Some(note)));
    }
    let said: Vec<&str> = said.iter().rev().take(3).rev().map(|line| line.as_str()).collect();
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("\n")) };
    Err(no_source(format!("{url} has no reference {reference}{said}")))
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The file that records the commit of a reference.
fn reference_file(job: &Job, url: &str, reference: &str) -> String {
    format!("{}/.damodel/sources/{}.ref", job.place.workspace, short_hash([url, reference]))
}

fn no_source(text: String) -> JobFailure {
    JobFailure { kind: FailureKind::NoSource, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn meaning(references: &str, known: &str) -> Result<(String, Option<String>), String> {
        let facts = [("references", references), ("reference", known), ("tools", "git")];
        let facts = Facts::of(facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        commit("u", "b1", &facts).map_err(|failure| failure.text)
    }

    #[test]
    fn a_reference_is_a_tag_before_a_branch() {
        let branch = format!("{ONE}\trefs/heads/b1");
        assert_eq!(meaning(&branch, ""), Ok((ONE.to_owned(), None)));
        assert_eq!(meaning(&format!("{branch}\n{TWO}\trefs/tags/b1"), ""), Ok((TWO.to_owned(), None)));
        let peeled = format!("{TWO}\trefs/tags/b1\n{ONE}\trefs/tags/b1^{{}}");
        assert_eq!(meaning(&peeled, ""), Ok((ONE.to_owned(), None)));
        assert_eq!(meaning(&format!("{ONE}\trefs/heads/x/b1"), TWO), Err("u has no reference b1".to_owned()));
    }

    #[test]
    fn a_path_needs_a_source_of_llama() {
        for (found, words) in [
            ("", "no source at /s"),
            ("directory", "no CMakeLists.txt names llama"),
            ("regular file", "no source of llama.cpp in the archive /s"),
        ] {
            let facts = Facts::of([("source".to_owned(), found.to_owned())].into());
            let mut job = Job::sample();
            job.source.origin = SourceOrigin::Path("/s".to_owned());
            let failure = choose(&job, &facts).unwrap_err();
            assert!(failure.kind == FailureKind::NoSource && failure.text.contains(words), "{failure:?}");
        }
    }

    #[test]
    fn a_reference_is_remembered_while_its_repository_cannot_be_asked() {
        let (commit, note) = meaning("fatal: unable to access", TWO).unwrap();
        assert!(commit == TWO && note.unwrap().contains("could not be reached"));
        assert_eq!(meaning("fatal: no", ""), Err("u has no reference b1: fatal: no".to_owned()));
    }
}
