//! A Markdown page, with the parts that the tests check.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) length: usize,
    pub(super) front_matter: String,
    /// The targets of links: headings, in the form of the sites that show the page, and explicit anchors.
    pub(super) anchors: BTreeSet<String>,
    pub(super) links: Vec<String>,
    pub(super) blocks: Vec<Block>,
}

/// A fenced code block.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub(super) language: String,
    pub(super) text: String,
    /// The file of the repository that it shows, named by the comment before it.
    pub(super) file: Option<String>,
}

/// The element to which the text of the next events belongs.
enum Within {
    Block(Block),
    FrontMatter,
    Heading(String),
    Nothing,
}

impl Page {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut page = Self {
            path: path.to_owned(),
            length: text.len(),
            front_matter: String::new(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            text: String::new(),
        };
        page.fill(&text);
        page.text = text;
        page
    }

    fn fill(&mut self, text: &str) {
        let mut within = Within::Nothing;
        let mut comment = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
        for event in Parser::new_ext(text, options) {
            match event {
                Event::Start(Tag::MetadataBlock(_)) => within = Within::FrontMatter,
                Event::Start(Tag::Heading { .. }) => within = Within::Heading(String::new()),
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.into_string(),
                        CodeBlockKind::Indented => panic!("{}: an indented code block", self.path.display()),
                    };
                    within = Within::Block(Block { language, text: String::new(), file: comment.take() });
                }
                Event::Start(Tag::Link { dest_url, .. }) => self.links.push(dest_url.into_string()),
                Event::Html(html) | Event::InlineHtml(html) => {
                    self.anchors.extend(
                        html.split("<a id=\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned),
                    );
                    let file = html.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                    comment = file.filter(|file| file.starts_with("examples/")).map(str::to_owned);
                }
                Event::Text(text) | Event::Code(text) => match &mut within {
                    Within::Block(block) => block.text.push_str(&text),
                    Within::FrontMatter => self.front_matter.push_str(&text),
                    Within::Heading(heading) => heading.push_str(&text),
                    Within::Nothing => {}
                },
                Event::End(TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::MetadataBlock(_)) => {
                    match std::mem::replace(&mut within, Within::Nothing) {
                        Within::Block(block) => self.blocks.push(block),
                        Within::Heading(heading) => drop(self.anchors.insert(slug(&heading))),
                        Within::FrontMatter | Within::Nothing => {}
                    }
                }
                _ => {}
            }
        }
    }
}

/// The anchor of a heading: lower case, hyphens for spaces, and without punctuation.
fn slug(heading: &str) -> String {
    let letters = heading.to_lowercase();
    let letters = letters.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect()
}
