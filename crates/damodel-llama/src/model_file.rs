//! The model's file in the instance, and whether downloads are needed.

use super::bootstrap::{Facts, FailureKind, Job, JobFailure, Question};
use crate::model::described;

/// How many of the models that are there an error names.
pub(super) const SHOWN: usize = 40;

/// The questions about it, and about other models if it is missing.
pub(super) fn questions(job: &Job, facts: &Facts) -> Vec<Question> {
    let parts = model_parts(&job.model).into_iter();
    let mut questions = vec![
        Question::new("model").on(&job.model),
        Question::new("user"),
        parts.fold(Question::new("model_missing_parts"), |question, part| question.on(&part)),
    ];
    if !job.downloads.is_empty() {
        let all = job.downloads.iter().fold(Question::new(DOWNLOADS), |question, file| question.on(&file.path));
        questions.push(all);
    }
    if lacks_file(facts) {
        questions.push(Question::new(LOADERS));
    }
    if !is_downloaded(job, facts) && facts.answers.contains_key("model") && !is_file(facts) {
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
    if let (Some(file), []) = (facts.lines(DOWNLOADS).first(), &facts.lines(LOADERS)[..]) {
        let text = format!("curl or python3 must be installed to download {file}");
        return Err(JobFailure { kind: FailureKind::MissingTool, text });
    }
    if is_downloaded(job, facts) {
        return Ok(());
    }
    if !is_file(facts) {
        let folder = folder_of(&model).to_owned();
        return missing(format!("no model at {model}. {}", others(facts, &folder)));
    }
    match facts.text("model").split_once('\n').unwrap_or_default().1 {
        "GGUF" => {}
        "" if !facts.text("model").ends_with("/0") => {
            return missing(format!("the model {model} is not readable for user {}", facts.text("user")));
        }
        begin => {
            let text = format!("{model} is not a GGUF file: {}", described(begin));
            return Err(JobFailure { kind: FailureKind::NoGguf, text });
        }
    }
    match facts.lines("model_missing_parts").first() {
        Some(part) => {
            let all = model_parts(&model).len();
            missing(format!("the model is in {all} parts, and this one is missing: {part}"))
        }
        None => Ok(()),
    }
}

/// The question which of the downloads are missing.
pub(super) const DOWNLOADS: &str = "missing_downloads";

/// The question about the programs that can download them.
const LOADERS: &str = "loaders";

/// Whether a start would download a file.
pub(super) fn lacks_file(facts: &Facts) -> bool {
    !facts.lines(DOWNLOADS).is_empty()
}

/// Whether the file, or one of its parts, is missing, and a start downloads it.
fn is_downloaded(job: &Job, facts: &Facts) -> bool {
    let is_known = facts.answers.contains_key("model") && !is_folder(facts);
    let lacks = is_known && (facts.text("model").is_empty() || !facts.lines("model_missing_parts").is_empty());
    lacks && job.downloads.iter().any(|file| file.is_model)
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
pub fn model_parts(model: &str) -> Vec<String> {
    let Some((stem, _, all)) = split_part(model) else { return Vec::new() };
    (1..=all.parse::<u32>().unwrap_or_default()).map(|part| format!("{stem}-{part:05}-of-{all}.gguf")).collect()
}

/// The name of a part without its end, its number, and the number of all.
pub fn split_part(model: &str) -> Option<(&str, &str, &str)> {
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
    use super::{super::bootstrap::FileOrigin, *};

    #[test]
    fn a_model_in_parts_needs_them_all() {
        assert_eq!(model_parts("~/a-00002-of-00002.gguf"), ["~/a-00001-of-00002.gguf", "~/a-00002-of-00002.gguf"]);
        for whole in ["~/a.gguf", "~/a-1-of-2.gguf", "~/a-00001-of-0000x.gguf", "a-00001-of-00002"] {
            assert!(model_parts(whole).is_empty(), "{whole}");
        }
    }

    /// The answers about the file: how the check ends.
    #[test]
    fn only_a_whole_gguf_file_is_a_model() {
        let model = "/m/a-00001-of-00002.gguf";
        let available = [("models", "/m/b.gguf\n/m/a.gguf\n")];
        for (answers, expected) in [
            (vec![("model", "regular file/9\nGGUF")], None),
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
            (vec![("model", "regular file/9\nvers")], Some((FailureKind::NoGguf, "it is a Git LFS pointer"))),
            (vec![("model", "regular file/9\n<!DO")], Some((FailureKind::NoGguf, "it is a web page"))),
            (vec![("model", "regular file/9\nGGML")], Some((FailureKind::NoGguf, "it begins with \"GGML\""))),
            (
                vec![("model", "regular file/9\nGGUF"), ("model_missing_parts", "/m/part")],
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
    fn a_file_that_is_missing_is_downloaded_by_curl_or_python() {
        use FailureKind::{MissingModel, MissingTool};
        let origin = |path: &str, is_model| {
            let (path, address) = (path.to_owned(), "https://x/a".to_owned());
            FileOrigin { path, address, sha256: None, token: None, is_model }
        };
        for (model, lacking, loaders, is_model, expected) in [
            ("", "/m\n", "python3\n", true, None),
            ("", "/m\n", "", true, Some(MissingTool)),
            ("regular file/9\nGGUF", "", "", true, None),
            ("regular file/9\nGGUF", "/p\n", "curl\n", false, None),
            ("regular file/9\nGGUF", "/p\n", "", false, Some(MissingTool)),
            ("", "/p\n", "curl\n", false, Some(MissingModel)),
        ] {
            let answers = [("model", model), (DOWNLOADS, lacking), (LOADERS, loaders)];
            let facts = Facts::of(answers.map(|(key, answer)| (key.to_owned(), answer.to_owned())).into());
            let job = Job { downloads: vec![origin("/m", is_model)], ..Job::sample() };
            let kind = check(&job, &facts).err().map(|failure| failure.kind);
            assert_eq!(kind, expected, "{model} {lacking} {loaders}");
        }
    }

    #[test]
    fn a_list_is_not_too_long() {
        let lines = (0..50).map(|number| format!("{number:02}")).collect();
        assert!(list(lines).unwrap().ends_with("39\n... and 10 more"));
        assert_eq!(list(Vec::new()), None);
    }
}
