//! The model's file in the instance.

use super::bootstrap::{Facts, FailureKind, Job, JobFailure, Question};
use crate::model::described;

/// How many of the models that are there an error names.
pub(super) const SHOWN: usize = 40;

/// The questions about it, and about other models if it is missing.
pub(super) fn questions(job: &Job, facts: &Facts) -> Vec<Question> {
    let parts = parts(&job.model).into_iter();
    let mut questions = vec![
        Question::new("model").on(&job.model),
        Question::new("model_magic").on(&job.model),
        Question::new("user"),
        parts.fold(Question::new("model_missing_parts"), |question, part| question.on(&part)),
    ];
    if job.model_source.is_some() && lacks_file(facts) {
        questions.push(Question::new(LOADERS));
    } else if facts.answers.contains_key("model") && !is_file(facts) {
        let folder = if is_folder(facts) { &job.model } else { folder_of(&job.model) };
        questions.push(Question::new("models").on(folder).on_storage("model"));
    }
    questions
}

/// Whether it can be served.
pub(super) fn check(job: &Job, facts: &Facts) -> Result<(), JobFailure> {
    let model = facts.absolute(&job.model);
    let missing = |text: String| Err(JobFailure { kind: FailureKind::MissingModel, text });
    if is_folder(facts) {
        return missing(format!("the model {model} is a directory. {}", others(facts, &model)));
    }
    if job.model_source.is_some() && lacks_file(facts) {
        return match facts.lines(LOADERS).first() {
            Some(_) => Ok(()),
            None => Err(JobFailure {
                kind: FailureKind::MissingTool,
                text: "curl or python3 must be installed to download the model".to_owned(),
            }),
        };
    }
    if !is_file(facts) {
        let folder = folder_of(&model).to_owned();
        return missing(format!("no model at {model}. {}", others(facts, &folder)));
    }
    match facts.text("model_magic") {
        "GGUF" => {}
        "" if !facts.text("model").ends_with("/0") => {
            return missing(format!("the model {model} is not readable for user {}", facts.text("user")));
        }
        begin => {
            let kind = if begin.is_empty() { "it is empty".to_owned() } else { described(begin) };
            return Err(JobFailure { kind: FailureKind::NoGguf, text: format!("{model} is not a GGUF file: {kind}") });
        }
    }
    match facts.lines("model_missing_parts").first() {
        Some(part) => {
            let all = parts(&model).len();
            missing(format!("the model is in {all} parts, and this one is missing: {part}"))
        }
        None => Ok(()),
    }
}

/// The question about the programs that can download it.
const LOADERS: &str = "loaders";

/// Whether the file, or one of its parts, is missing.
pub(super) fn lacks_file(facts: &Facts) -> bool {
    let is_known = facts.answers.contains_key("model") && !is_folder(facts);
    is_known && (facts.text("model").is_empty() || !facts.lines("model_missing_parts").is_empty())
}

fn is_folder(facts: &Facts) -> bool {
    facts.text("model").starts_with("directory")
}

fn is_file(facts: &Facts) -> bool {
    facts.text("model").starts_with("regular")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The parts of a split model (NAME-00001-of-00003.gguf): the server loads the first, and needs all.
pub(super) fn parts(model: &str) -> Vec<String> {
    let Some((stem, _, all)) = split(model) else { return Vec::new() };
    (1..=all.parse::<u32>().unwrap_or_default()).map(|part| format!("{stem}-{part:05}-of-{all}.gguf")).collect()
}

/// The name of a part without its end, its number, and the number of all.
pub(super) fn split(model: &str) -> Option<(&str, &str, &str)> {
    let (rest, all) = model.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (stem, part) = rest.rsplit_once('-')?;
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(all) && is_number(part)).then_some((stem, part, all))
}

/// The other models, as a suggestion.
fn others(facts: &Facts, folder: &str) -> String {
    match list(facts.lines("models")) {
        Some(models) => format!("Available:\n{models}"),
        None => format!("No *.gguf file is in {folder} or {}", facts.storage("model")),
    }
}

/// Sorted lines for people, at most [`SHOWN`]; `None` without any.
pub(super) fn list(mut lines: Vec<String>) -> Option<String> {
    lines.sort();
    lines.dedup();
    let more = lines.len().saturating_sub(SHOWN);
    lines.truncate(SHOWN);
    if more > 0 {
        lines.push(format!("... and {more} more"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{super::bootstrap::ModelOrigin, *};

    #[test]
    fn a_model_in_parts_needs_them_all() {
        assert_eq!(parts("~/a-00002-of-00002.gguf"), ["~/a-00001-of-00002.gguf", "~/a-00002-of-00002.gguf"]);
        for whole in ["~/a.gguf", "~/a-1-of-2.gguf", "~/a-00001-of-0000x.gguf", "a-00001-of-00002"] {
            assert!(parts(whole).is_empty(), "{whole}");
        }
    }

    /// The answers about the file: how the check ends.
    #[test]
    fn only_a_whole_gguf_file_is_a_model() {
        let model = "/m/a-00001-of-00002.gguf";
        let available = [("models", "/m/b.gguf\n/m/a.gguf\n")];
        for (answers, expected) in [
            (vec![("model", "regular file/9"), ("model_magic", "GGUF")], None),
            (vec![], Some((FailureKind::MissingModel, "no model at /m/a-00001-of-00002.gguf. Available:\n/m/a.gguf"))),
            (
                vec![("model", "directory/9")],
                Some((FailureKind::MissingModel, "is a directory. Available:\n/m/a.gguf")),
            ),
            (
                vec![("model", "regular file/9"), ("user", "visitor")],
                Some((FailureKind::MissingModel, "is not readable for user visitor")),
            ),
            (vec![("model", "regular empty file/0")], Some((FailureKind::NoGguf, "it is empty"))),
            (
                vec![("model", "regular file/9"), ("model_magic", "vers")],
                Some((FailureKind::NoGguf, "it is a Git LFS pointer")),
            ),
            (
                vec![("model", "regular file/9"), ("model_magic", "<!DO")],
                Some((FailureKind::NoGguf, "it is a web page")),
            ),
            (
                vec![("model", "regular file/9"), ("model_magic", "GGML")],
                Some((FailureKind::NoGguf, "it begins with \"GGML\"")),
            ),
            (
                vec![("model", "regular file/9"), ("model_magic", "GGUF"), ("model_missing_parts", "/m/part")],
                Some((FailureKind::MissingModel, "the model is in 2 parts, and this one is missing: /m/part")),
            ),
        ] {
            let answers =
                answers.iter().chain(&available).map(|(key, answer)| ((*key).to_owned(), (*answer).to_owned()));
            let checked = check(&Job { model: model.to_owned(), ..Job::sample() }, &Facts::of(answers.collect()));
            match (checked, expected) {
                (Ok(()), None) => {}
                (Err(failure), Some((kind, words))) => {
                    assert!(failure.kind == kind && failure.text.contains(words), "{failure:?}");
                }
                (checked, _) => panic!("{checked:?}"),
            }
        }
    }

    #[test]
    fn a_model_that_is_missing_is_downloaded_by_curl_or_python() {
        for (file, loaders, is_possible) in [("", "python3\n", true), ("", "", false), ("regular file/9", "", true)] {
            let origin = ModelOrigin { files: Vec::new(), sha256: None, token: None };
            let answers = [("model", file), ("model_magic", "GGUF"), (LOADERS, loaders)];
            let facts = Facts::of(answers.map(|(key, answer)| (key.to_owned(), answer.to_owned())).into());
            let checked = check(&Job { model_source: Some(origin), ..Job::sample() }, &facts);
            let kind = checked.err().map(|failure| failure.kind);
            assert_eq!(kind, (!is_possible).then_some(FailureKind::MissingTool), "{file} {loaders}");
        }
    }

    #[test]
    fn a_list_is_not_too_long() {
        let lines = (0..50).map(|number| format!("{number:02}")).collect();
        assert!(list(lines).unwrap().ends_with("39\n... and 10 more"));
        assert_eq!(list(Vec::new()), None);
    }
}
