//! The texts that users meet, as pages to read: diagnostics, errors, schema descriptions and the help of each command.
//!
//! A page is a snapshot for each part of the program. After a change of a text:
//! `INSTA_UPDATE=always cargo test --test it house::texts`, then read the page.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, process::Command, sync::LazyLock};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use regex::Regex;

use super::{root, sources};
use crate::support::plugin::BINARY;

/// The parts with texts for users of the provider and of its commands. The sandbox's texts are for testers of modules.
const PARTS: [&str; 9] = ["api", "commands", "framework", "model", "plugin", "protocol", "provider", "review", "ssh"];

/// Words that no text may contain, each with its replacement.
const AVOIDED: [(&str, &str); 24] = [
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
];

/// The page for the texts of a source: its folder, or a resource's.
fn page(file: &Path) -> Option<String> {
    let path = file.strip_prefix(root().join("src")).unwrap();
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    let part = *parts.first().filter(|part| PARTS.contains(part))?;
    let is_split = ["commands", "provider"].contains(&part) && parts.len() > 2;
    Some(if is_split { format!("{part}_{}", parts[1]) } else { part.to_owned() })
}

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
    let continued = Regex::new(r"\\\n\s*").unwrap();
    let text = continued.replace_all(inner, "").replace("\\\"", "\"").replace("\\n", "\n    ");
    (text.split_whitespace().count() > 2).then_some(text)
}

/// The pages by name. Reading all sources takes half a minute, so it is done once.
static PAGES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut pages: BTreeMap<String, String> = BTreeMap::new();
    for file in sources("src").into_iter().filter(|file| !file.iter().any(|part| part == "tests" || part == "tests.rs"))
    {
        let Some(page) = page(&file) else { continue };
        let mut found = Vec::new();
        texts(std::fs::read_to_string(&file).unwrap().parse().unwrap(), &mut found);
        if !found.is_empty() {
            let page = pages.entry(page).or_default();
            writeln!(page, "\n# {}", file.strip_prefix(root()).unwrap().display()).unwrap();
            found.iter().for_each(|text| writeln!(page, "- {text}").unwrap());
        }
    }
    pages
});

fn help(arguments: &[&str]) -> String {
    let output = Command::new(BINARY).args(arguments).arg("--help").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_page_reads_as_it_is_written_down() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("pages");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (name, page) in &*PAGES {
            insta::assert_snapshot!(name.as_str(), page);
        }
    });
    let files = std::fs::read_dir(root().join("tests/it/house/pages")).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
    let stale: Vec<String> = names.filter(|name| !PAGES.contains_key(name)).collect();
    assert!(stale.is_empty(), "pages of no source: {stale:?}");
}

#[test]
fn no_text_holds_a_word_that_is_avoided() {
    let avoided = AVOIDED.map(|(words, instead)| (Regex::new(&format!("(?i){words}")).unwrap(), instead));
    let commands =
        ["adopt", "audit", "completions", "demo", "docs", "install", "pending", "review", "sandbox", "watch"];
    let helps = commands.map(|command| (format!("{command} --help"), help(&[command])));
    let values = Regex::new(r#"\{[^}]*\}|"nobody""#).unwrap();
    let mut broken = String::new();
    for (name, page) in PAGES.clone().into_iter().chain(helps) {
        // Inserted values, and values of attributes, are not words of the text.
        for line in values.replace_all(&page, "…").lines() {
            for (words, instead) in avoided.iter().filter(|(words, _)| words.is_match(line)) {
                writeln!(broken, "{name}: {words}, write {instead}: {line}").unwrap();
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}
