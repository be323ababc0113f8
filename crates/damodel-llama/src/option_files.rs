//! The files that the words of a command line name beside the model.

use super::{
    bootstrap::{Facts, FailureKind, FileOrigin, JobFailure, Question, absolute},
    options,
};

/// The question which of them are missing, and its fact.
pub(super) const MISSING: &str = "missing_files";

/// The question; `None` if no file is named that is not downloaded before the start. The server begins in the
/// workspace, and a relative path begins there.
pub fn files_question(workspace: &str, words: &[String], downloads: &[FileOrigin]) -> Option<Question> {
    let mut files = options::named_files(words);
    files.retain(|(_, file)| {
        let path = absolute(&in_workspace(workspace, file), "");
        downloads.iter().all(|download| download.path != path)
    });
    let all = || files.iter().fold(Question::new(MISSING).on(workspace), |question, (_, file)| question.with(file));
    (!files.is_empty()).then(all)
}

/// The path of a file as the server takes it: `~` is no home.
pub fn in_workspace(workspace: &str, file: &str) -> String {
    if file.starts_with('/') { file.to_owned() } else { format!("{workspace}/{file}") }
}

/// Whether they are all there.
pub fn check_files(words: &[String], facts: &Facts) -> Result<(), JobFailure> {
    let missing = facts.lines(MISSING);
    let is_missing = |file: &str| missing.iter().any(|missing| missing == file.trim());
    match options::named_files(words).into_iter().find(|(_, file)| is_missing(file)) {
        Some((option, file)) => {
            let text = format!("{option} names {file}, which does not exist or cannot be read");
            Err(JobFailure { kind: FailureKind::MissingFile, text })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words, the file that is missing, and the words of the refusal.
    #[test]
    fn a_file_that_an_option_names_must_be_there() {
        for (words, missing, expected) in [
            ("--mmproj /no/such", "/no/such", "--mmproj names /no/such"),
            ("-md=/no/such", "/no/such", "-md names /no/such"),
            ("--lora /here,/no/such", "/no/such", "--lora names /no/such"),
            ("-lcd /no/such", "/no/such", "-lcd names /no/such"),
            // A scale belongs to the options that have one; a file may be named so.
            ("--lora /here:7", "/here", ""),
            ("--lora /here:7", "/here:7", "--lora names /here:7"),
            ("--lora_scaled /here:0.5,/no/such:2", "/no/such", "--lora_scaled names /no/such"),
            ("--chat-template-file ~/here", "~/here", "--chat-template-file names ~/here"),
            ("--mmproj /here --lora /here:0.5 --grammar-file ../here -np /no", "/no", ""),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let checked = check_files(&words, &Facts::of([(MISSING.to_owned(), format!("{missing}\n"))].into()));
            let text = checked.err().map(|failure| failure.text).unwrap_or_default();
            assert!(text.starts_with(expected) && text.is_empty() == expected.is_empty(), "{text}");
        }
        assert_eq!(files_question("/w", &["-np".to_owned(), "/no".to_owned()], &[]), None);
    }

    /// The file of the option, and whether it has to be there before the download to /w/p.
    #[test]
    fn a_file_that_is_downloaded_need_not_be_there() {
        let (path, address) = ("/w/p".to_owned(), "https://x/p".to_owned());
        let downloads = [FileOrigin { path, address, sha256: None, token: None, is_model: false }];
        for (file, is_asked) in
            [("/w/p", false), ("//w/./p", false), ("p", false), ("./p", false), ("~/p", true), ("/p", true)]
        {
            let words = ["--mmproj".to_owned(), file.to_owned()];
            assert_eq!(files_question("/w", &words, &downloads).is_some(), is_asked, "{file}");
        }
    }
}
