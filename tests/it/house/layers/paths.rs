//! The paths of a source, read from its tokens: without comments and strings, but with the arguments of macros.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path that a source names.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) line: usize,
    /// Whether it leads into this crate. Its segments then start at the crate's root.
    pub(super) inside: bool,
    pub(super) path: Vec<String>,
}

/// All paths of a source that is the module `module`.
pub(super) fn paths(source: &str, module: &[String]) -> Vec<Found> {
    let mut found = Vec::new();
    let tokens: TokenStream = source.parse().unwrap();
    walk(&trees(tokens), module, &mut found);
    found
}

fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

/// Reads code: everything that begins like a path is one.
fn walk(tokens: &[TokenTree], module: &[String], found: &mut Vec<Found>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Group(group) => {
                let inner = trees(group.stream());
                match (ident(tokens, at.wrapping_sub(2)), ident(tokens, at.wrapping_sub(1))) {
                    // The module's own paths are one level deeper.
                    (Some(keyword), Some(name)) if keyword == "mod" && group.delimiter() == Delimiter::Brace => {
                        walk(&inner, &[module, &[name]].concat(), found);
                    }
                    _ => walk(&inner, module, found),
                }
                at += 1;
            }
            TokenTree::Ident(keyword) if keyword == "use" => at = import(tokens, at + 1, &[], module, found),
            // A field or a method.
            TokenTree::Punct(dot) if dot.as_char() == '.' && ident(tokens, at + 1).is_some() => at += 2,
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                let mut path = vec![first.to_string()];
                at += 1;
                while is_separator(tokens, at)
                    && let Some(segment) = ident(tokens, at + 2)
                {
                    path.push(segment);
                    at += 3;
                }
                // Alone it names an item of this module, or an import.
                if path.len() > 1 {
                    resolve(path, line, module, found);
                }
            }
            // After a type, the next name is not a crate.
            TokenTree::Punct(close) if close.as_char() == '>' && is_separator(tokens, at + 1) => {
                at += 3;
                while ident(tokens, at).is_some() && is_separator(tokens, at + 1) {
                    at += 3;
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
        }
    }
}

/// Reads the tree of a `use`, and returns its end.
fn import(tokens: &[TokenTree], mut at: usize, before: &[String], module: &[String], found: &mut Vec<Found>) -> usize {
    let mut path = before.to_vec();
    let mut line = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(alias)) if alias == "as" => at += 2,
            Some(TokenTree::Ident(segment)) => {
                line = segment.span().start().line;
                path.push(segment.to_string());
                at += 1;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner = trees(group.stream());
                let mut start = 0;
                while start < inner.len() {
                    start = import(&inner, start, &path, module, found) + 1;
                }
                path.clear();
                at += 1;
            }
            Some(TokenTree::Punct(punct)) if matches!(punct.as_char(), ':' | '*') => at += 1,
            // The end of this branch.
            _ => {
                if !path.is_empty() {
                    resolve(path, line, module, found);
                }
                return at;
            }
        }
    }
}

/// The target of a path in a module.
fn resolve(path: Vec<String>, line: usize, module: &[String], found: &mut Vec<Found>) {
    let mut rest = path.as_slice();
    let mut place = match rest.first().map(String::as_str) {
        Some("crate") => Vec::new(),
        Some("self" | "super") => module.to_vec(),
        _ => {
            // `provider/mod.rs` may name its `instance` without `self`.
            found.push(Found { line, inside: false, path });
            return;
        }
    };
    while let Some(step) = rest.first() {
        match step.as_str() {
            "super" => {
                place.pop();
            }
            "crate" | "self" => {}
            _ => break,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    place.extend_from_slice(rest);
    found.push(Found { line, inside: true, path: place });
}

fn ident(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}
