//! The files that the words of a command line name beside the model.

use super::{
    bootstrap::{Facts, FailureKind, JobFailure, Question},
    options,
};

/// The question which of them are missing, and its fact.
pub(super) const MISSING: &str = "missing_files";

/// The question; `None` if no file is named. The server begins in the workspace, and a relative path begins there.
pub(super) fn question(workspace: &str, words: &[String]) -> Option<Question> {
    let files = options::files(words);
    let all = || files.iter().fold(Question::new(MISSING).on(workspace), |question, (_, file)| question.with(file));
    (!files.is_empty()).then(all)
}

/// Whether they are all there.
pub(super) fn check(words: &[String], facts: &Facts) -> Result<(), JobFailure> {
    let missing = facts.lines(MISSING);
    let is_missing = |file: &str| missing.iter().any(|missing| missing == file.trim());
    match options::files(words).into_iter().find(|(_, file)| is_missing(file)) {
        Some((option, file)) => {
            let text = format!("{option} names {file}, which does not exist or cannot be read");
            Err(JobFailure { kind: FailureKind::MissingFile, text })
        }
        None => Ok(()),
    }
}
