//! Rules for the texts that users meet: diagnostics, errors, schema descriptions and the help of each command.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::PathBuf, process::Command, sync::LazyLock};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use regex::Regex;

use super::{files, layers::module, root, sources};
use crate::support::plugin::BINARY;

/// The layers with texts for users of the provider and of its commands. The sandbox's texts are for testers of modules.
const PARTS: [&str; 10] =
    ["api", "commands", "creation", "framework", "llama", "plugin", "protocol", "provider", "review", "ssh"];

/// The sources of those layers; each layer has some.
fn parts() -> Vec<PathBuf> {
    let layer = |file: &PathBuf| module(file.strip_prefix(root()).unwrap()).into_iter().next().unwrap_or_default();
    let parts: Vec<PathBuf> = sources("src").into_iter().filter(|file| PARTS.contains(&&*layer(file))).collect();
    assert_eq!(parts.iter().map(layer).collect::<BTreeSet<_>>().len(), PARTS.len());
    parts
}

/// Words that no text may contain, each with its replacement.
const AVOIDED: [(&str, &str); 26] = [
    (r"\bnobody\b", "name who, or what is missing"),
    (r"\bthere (is|are) (none|nothing)\b", "what is missing"),
    (r"\bknows? none\b", "what does not exist"),
    (r"\bthe service (says|tells|knows|wants)\b", "the service reports; service response"),
    (r"\bthe core\b", "Terraform, or Terraform or OpenTofu"),
    (r"\b(takes?|taken|took) (it|them) up\b", "adopts; resumes"),
    (r"\btakes? up\b", "adopts; resumes"),
    (r"\bthe machines?\b", "instance; computer"),
    (r"\b(a|each|every|one) machine\b", "instance; computer"),
    (r"\bthings?\b", "object; resource"),
    (r"\bfor ever\b", "indefinitely"),
    (r"\bworth knowing\b", "the fact itself"),
    (r"\bleft the state\b", "was removed from the state"),
    (r"\bpaid ahead\b", "prepaid"),
    (r"\bgoes? on\b", "continues"),
    (r"\bwent on\b", "continued"),
    (r"\bdied\b|\bdies\b", "exited"),
    (r"\bnews\b", "what changed"),
    (r"\bnewer core\b", "Terraform, or Terraform or OpenTofu"),
    (r"\banew\b", "again"),
    (r"\bdearest\b|\bdearer\b", "most expensive"),
    (r"\bis worth\b|\bworth setting\b", "Recommended"),
    (r"\bservice (never )?(names|tells)\b", "has; reports"),
    (r"\bby the month\b", "per month"),
    (r"\bformer\b", "previous"),
    (r"\bnot known\b", "unknown"),
];

/// The texts in a source, in order: literals of at least three words, without log messages, tests, and attributes other
/// than `error`.
fn texts(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let ident = |at: usize, names: &[&str]| {
        matches!(tokens.get(at),
        Some(TokenTree::Ident(ident)) if names.contains(&ident.to_string().as_str()))
    };
    let punct =
        |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Literal(literal) => found.extend(text(&literal.to_string())),
            TokenTree::Group(group) => {
                let is_attribute = group.delimiter() == Delimiter::Bracket
                    && at > 0
                    && (punct(at - 1, '#') || at > 1 && punct(at - 1, '!') && punct(at - 2, '#'));
                let is_error = group.stream().to_string().starts_with("error");
                let is_log = at > 2
                    && punct(at - 1, '!')
                    && ident(at - 2, &["trace", "debug", "info", "warn", "error", "event", "assert", "debug_assert"]);
                let is_test = at > 1 && ident(at - 1, &["tests"]) && ident(at - 2, &["mod"]);
                if !is_log && !is_test && (!is_attribute || is_error) {
                    texts(group.stream(), found);
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The content of a literal, if it is a text.
fn text(literal: &str) -> Option<String> {
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    static CONTINUED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\\\n\s*").unwrap());
    let text = CONTINUED.replace_all(inner, "").replace("\\\"", "\"").replace("\\n", "\n    ");
    (text.split_whitespace().count() > 2).then_some(text)
}

/// The texts of each source that has some, one a line.
fn sources_with_texts() -> Vec<(String, String)> {
    let mut sources_with_texts = Vec::new();
    for file in parts().into_iter().filter(|file| !file.iter().any(|part| part == "tests" || part == "tests.rs")) {
        let mut found = Vec::new();
        texts(fs::read_to_string(&file).unwrap().parse().unwrap(), &mut found);
        if !found.is_empty() {
            sources_with_texts.push((file.strip_prefix(root()).unwrap().display().to_string(), found.join("\n")));
        }
    }
    sources_with_texts
}

fn help(arguments: &[&str]) -> String {
    let output = Command::new(BINARY).args(arguments).arg("--help").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn no_text_holds_a_word_that_is_avoided() {
    let avoided = AVOIDED.map(|(words, instead)| (Regex::new(&format!("(?i){words}")).unwrap(), instead));
    let commands = [
        "audit",
        "demo",
        "docs",
        "expire",
        "install",
        "pending",
        "release",
        "review",
        "sandbox",
        "ssh",
        "ssh-config",
        "watch",
    ];
    let helps = commands.map(|command| (format!("{command} --help"), help(&[command])));
    let values = Regex::new(r"\{[^}]*\}").unwrap();
    let mut broken = String::new();
    for (name, texts) in sources_with_texts().into_iter().chain(helps) {
        // Inserted values are not words of the text.
        for line in values.replace_all(&texts, "…").lines() {
            for (words, instead) in avoided.iter().filter(|(words, _)| words.is_match(line)) {
                writeln!(broken, "{name}: {words}, write {instead}: {line}").unwrap();
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

/// The prose of guides and of the pages for contributors, without code.
#[test]
fn no_page_holds_a_word_that_is_avoided() {
    let avoided = AVOIDED.map(|(words, instead)| (Regex::new(&format!("(?i){words}")).unwrap(), instead));
    let (code, bullet) = (Regex::new("`[^`]*`").unwrap(), Regex::new(r"^\s*([-*|]|\d+\.)\s+").unwrap());
    let pages = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"].map(|page| root().join(page));
    let guides = files(&root().join("docs/guides"));
    assert!(guides.len() > 10, "{guides:?}");
    let mut broken = String::new();
    for page in pages.into_iter().chain(guides) {
        let mut is_code = false;
        for line in fs::read_to_string(&page).unwrap().lines() {
            is_code ^= line.starts_with("```");
            let prose = bullet.replace(&code.replace_all(line, "`"), "").into_owned();
            for (words, instead) in avoided.iter().filter(|(words, _)| !is_code && words.is_match(&prose)) {
                writeln!(broken, "{}: {words}, write {instead}: {line}", page.display()).unwrap();
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

/// The summary of a diagnostic is a headline. Inserted values are not counted.
#[test]
fn summaries_are_short() {
    let summary = Regex::new(
        r#"(?s)\b(?:Diagnostic::|diagnostics\.)(?:error|warning)\(\s*(?:&?format!\(\s*)?"((?:\\.|[^"\\])*)""#,
    )
    .unwrap();
    let (unread, inserted) = (Regex::new(r"\\\n\s*").unwrap(), Regex::new(r"\{[^}]*\}").unwrap());
    let mut found = 0;
    for file in parts() {
        let source = fs::read_to_string(&file).unwrap();
        for text in summary.captures_iter(&source) {
            let text = inserted.replace_all(&unread.replace_all(&text[1], ""), "").into_owned();
            assert!(text.chars().count() <= 80, "{}: {text}", file.display());
            found += 1;
        }
    }
    assert!(found > 10, "{found}");
}

/// What a data source only reports is no argument, and nothing is planned with it.
#[test]
fn what_data_sources_report_is_not_described_as_an_argument() {
    let of_arguments = Regex::new("Default:|[Nn]eeded|[Cc]hanged in place|in a plan|[Ee]ither this").unwrap();
    for page in files(&root().join("docs/data-sources")) {
        let mut is_reported = false;
        for line in fs::read_to_string(&page).unwrap().lines() {
            if line.starts_with('#') || line.ends_with("nal:") || line.ends_with("red:") || line.ends_with("nly:") {
                is_reported = line.ends_with("Read-Only") || line == "Read-Only:";
            }
            assert!(!is_reported || !of_arguments.is_match(line), "{}: {line}", page.display());
        }
    }
}
