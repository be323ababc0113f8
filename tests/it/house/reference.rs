//! Every page and heading that a comment cites is in `reference`.

use std::{collections::BTreeSet, fs};

use super::{root, sources};

/// The beginning of a citation, and its page.
const PAGES: [(&str, &str); 2] = [("plugin protocol, ", "plugin-protocol.md"), ("service API, ", "service-api.md")];

/// The headings of a page, in lower case.
fn headings(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("reference").join(page)).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(str::to_lowercase).collect()
}

/// The comments of a file, each block in one line.
fn comments(text: &str) -> Vec<String> {
    let mut comments = vec![String::new()];
    for line in text.lines().map(str::trim_start) {
        let comment = ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark));
        match (comment, comments.last_mut()) {
            (Some(comment), Some(block)) => block.extend([" ", comment.trim()]),
            _ => comments.push(String::new()),
        }
    }
    comments
}

/// Whether a citation begins with a heading, followed by nothing or by a part of its section.
fn cites(citation: &str, heading: &str) -> bool {
    let rest = citation.to_lowercase().strip_prefix(heading).map(|rest| rest.chars().next());
    rest.is_some_and(|next| next.is_none_or(|next| !next.is_alphanumeric()))
}

#[test]
fn every_citation_names_a_heading() {
    let sources = ["src", "tests", "benches"].map(sources).concat();
    let mut missing = BTreeSet::new();
    let mut cited = 0;
    for (words, page) in PAGES {
        let headings = headings(page);
        for file in &sources {
            for comment in comments(&fs::read_to_string(file).unwrap()) {
                for citation in comment.split(words).skip(1) {
                    cited += 1;
                    if !headings.iter().any(|heading| cites(citation, heading)) {
                        let citation: String = citation.chars().take(60).collect();
                        missing.insert(format!("{words}{citation}: {}", file.display()));
                    }
                }
            }
        }
    }
    assert!(cited > 200, "only {cited} citations were found");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_citation_is_more_than_the_beginning_of_a_word() {
    assert!(cites("Limits: one", "limits") && cites("States, Instance", "states") && cites("Import", "import"));
    assert!(!cites("Importance", "import") && !cites("Limit", "limits"));
}
