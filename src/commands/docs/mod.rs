//! `terraform-provider-damodel docs`: generates docs/ in the registry's layout from the schemas and the examples
//! (plugin protocol, documentation layout).
//!
//! A page is a list of paragraphs. Their content comes from the schema that the core gets too, so a new resource needs
//! no code here. Guides are written by hand and not changed.

mod page;
mod schema;

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use clap::Parser;

use self::{
    page::{Examples, MARK, PageKind},
    schema::Links,
};
use super::Failure;
use crate::{
    framework::{Ends, Server},
    provider::{Damodel, Environment},
};

/// Writes the registry's documentation from the schemas and the examples.
///
/// Run it in the root of the repository.
///
/// Exit codes: 0 the pages were written, or are current; 1 a page cannot be written or, with --check, is not current; 2
/// wrong usage.
#[derive(Clone, Debug, Parser)]
#[command(name = "docs", hide = true)]
pub struct Arguments {
    /// Fails when the documentation is not current, and writes nothing.
    #[arg(long)]
    pub check: bool,
    /// The folder of the documentation. Its guides are written by hand and not changed.
    #[arg(long, default_value = "docs", value_name = "DIR")]
    pub dir: PathBuf,
    /// The folder of the examples that the pages show.
    #[arg(long, default_value = "examples", value_name = "DIR")]
    pub examples: PathBuf,
}

/// Writes the documentation, or checks that it is current.
///
/// # Errors
///
/// If a file cannot be read or written, or if checked documentation is not current.
pub async fn run(arguments: Arguments) -> Result<(), Failure> {
    let server = Server::new(Damodel::new(Environment::default()), Ends::default());
    let pages = pages(&server, &Examples::new(arguments.examples))?;
    let folder = Folder::new(arguments.dir);
    let differences = folder.differences(&pages)?;
    let described: Vec<String> = differences.iter().map(Difference::to_string).collect();
    if arguments.check {
        if differences.is_empty() {
            return Ok(());
        }
        let differences = listed(&described);
        return Err(Failure::new(format!(
            "the documentation is not current: {differences}. Run `terraform-provider-damodel docs`"
        )));
    }
    for difference in &differences {
        folder.correct(difference, &pages)?;
    }
    let said = format!("{} pages, {} changed\n", pages.len(), described.len());
    io::stdout().write_all(said.as_bytes()).map_err(Failure::terminal)
}

/// All pages, by their path in the folder.
fn pages(server: &Server<Damodel>, examples: &Examples) -> Result<BTreeMap<PathBuf, String>, Failure> {
    let mut pages = BTreeMap::from([(PathBuf::from("index.md"), page::index_page(server, examples)?)]);
    for kind in PageKind::ALL {
        let links = match kind {
            PageKind::RESOURCE => Links::of_a_resource(),
            _ => Links::of_others(server.registry().of(PageKind::RESOURCE.offered)),
        };
        for entry in server.registry().of(kind.offered) {
            pages.insert(
                kind.path(entry.name),
                page::page(kind, entry.name, &entry.schema, entry.identity.as_ref(), &links, examples)?,
            );
        }
    }
    for (name, signature) in server.registry().signatures() {
        pages.insert(page::function_path(name), page::function_page(name, signature, examples)?);
    }
    Ok(pages)
}

fn listed(differences: &[String]) -> String {
    differences.join(", ")
}

/// The folder of the documentation.
#[derive(Debug)]
struct Folder(PathBuf);

/// A difference of a file in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Difference {
    /// Its content differs.
    Changed(PathBuf),
    /// It is missing.
    Missing(PathBuf),
    /// It was generated, and no schema generates it now.
    Orphaned(PathBuf),
}

impl Folder {
    fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// All differences. Files that this program did not generate are ignored.
    fn differences(&self, pages: &BTreeMap<PathBuf, String>) -> Result<Vec<Difference>, Failure> {
        let mut differences = Vec::new();
        for (path, page) in pages {
            match self.read(path) {
                Ok(text) if text == *page => {}
                Ok(_) => differences.push(Difference::Changed(path.clone())),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    differences.push(Difference::Missing(path.clone()));
                }
                Err(error) => return Err(Failure::reading(self.0.join(path).display(), error)),
            }
        }
        for path in self.files(Path::new(""))?.into_iter().filter(|path| !pages.contains_key(path)) {
            let text = self.read(&path).map_err(|error| Failure::reading(self.0.join(&path).display(), error))?;
            if text.contains(MARK) {
                differences.push(Difference::Orphaned(path));
            }
        }
        Ok(differences)
    }

    /// Corrects a difference.
    fn correct(&self, difference: &Difference, pages: &BTreeMap<PathBuf, String>) -> Result<(), Failure> {
        let path = self.0.join(difference.path());
        let corrected = match pages.get(difference.path()) {
            Some(page) => {
                path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, page.as_bytes()))
            }
            None => fs::remove_file(&path),
        };
        corrected.map_err(|error| Failure::writing(path.display(), error))
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.0.join(path))
    }

    /// All Markdown files below a folder of this one, in order.
    fn files(&self, below: &Path) -> Result<Vec<PathBuf>, Failure> {
        let folder = self.0.join(below);
        let failed = |error| Failure::reading(folder.display(), error);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = below.join(entry.file_name());
            if entry.file_type().map_err(failed)?.is_dir() {
                files.extend(self.files(&path)?);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }
}

impl Difference {
    fn path(&self) -> &Path {
        match self {
            Self::Changed(path) | Self::Missing(path) | Self::Orphaned(path) => path,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self {
            Self::Changed(_) => "differs",
            Self::Missing(_) => "is missing",
            Self::Orphaned(_) => "describes a resource that no longer exists",
        };
        write!(formatter, "{} {how}", self.path().display())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        page::{self, Examples, PageKind},
        schema::{self, Links},
    };
    use crate::framework::{
        Schema, Type,
        schema::{Attribute, AttributeType, Block, Nesting},
    };

    #[test]
    fn a_line_says_how_a_value_is_kept() {
        let secret = Attribute::optional("key", Type::list(Type::map(Type::Bool)), "The key.").sensitive().write_only();
        let line = schema::line(&secret);
        assert!(line.starts_with("- `key` (List of Map of Boolean, Sensitive, [Write-only](https://"), "{line}");
        assert!(line.ends_with(") The key."), "{line}");
    }

    #[test]
    fn further_paragraphs_stay_in_their_line() {
        let attribute = Attribute::computed("it", Type::String, "First.\n\nSecond\nline.");
        assert_eq!(schema::line(&attribute), "- `it` (String) First.\n\n  Second\n  line.");
    }

    #[test]
    fn groups_and_nested_lists_are_the_registrys() {
        let deep = vec![Attribute::required("x", Type::Bool, "X.")];
        let inner = vec![
            Attribute::required("size", Type::Number, "Size."),
            Attribute::optional("deep", AttributeType::Nested(Nesting::List, deep), "Deep."),
        ];
        let timeouts = Block {
            name: "timeouts".into(),
            description: "Timeouts.".to_owned(),
            attributes: vec![Attribute::optional("create", Type::String, "Create.")],
        };
        let mut schema = Schema::new(
            "A thing.",
            vec![
                Attribute::computed("id", Type::String, "The id."),
                Attribute::optional("disks", AttributeType::Nested(Nesting::List, inner), "Disks."),
                Attribute::required("name", Type::String, "The name."),
            ],
        );
        schema.blocks.push(timeouts);
        let expected = "## Schema

### Required

- `name` (String) The name.

### Optional

- `disks` (Attributes List) Disks. (see [below for nested schema](#nestedatt--disks))
- `timeouts` (Block, Optional) Timeouts. (see [below for nested schema](#nestedblock--timeouts))

### Read-Only

- `id` (String) The id.

<a id=\"nestedatt--disks\"></a>
### Nested Schema for `disks`

Required:

- `size` (Number) Size.

Optional:

- `deep` (Attributes List) Deep. (see [below for nested schema](#nestedatt--disks--deep))

<a id=\"nestedatt--disks--deep\"></a>
### Nested Schema for `disks.deep`

Required:

- `x` (Boolean) X.

<a id=\"nestedblock--timeouts\"></a>
### Nested Schema for `timeouts`

Optional:

- `create` (String) Create.
";
        assert_eq!(page::text(&schema::section(&schema, &Links::of_a_resource())), expected);
    }

    #[test]
    fn a_thing_without_its_example_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let examples = Examples::new(folder.path().to_owned());
        let kind = PageKind::RESOURCE;
        let (schema, links) = (Schema::new("A thing.", vec![]), Links::of_a_resource());
        let error = page::page(kind, "damodel_thing", &schema, None, &links, &examples).unwrap_err();
        let said = error.to_string().replace('\\', "/");
        assert!(said.ends_with("resources/damodel_thing/resource.tf"), "{said}");
        assert_eq!(kind.path("damodel_thing"), std::path::Path::new("resources/thing.md"));
    }
}
