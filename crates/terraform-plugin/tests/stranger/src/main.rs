//! A provider of notes, which are files in a folder.

use std::{fs, io::ErrorKind, path::PathBuf, process::ExitCode, sync::Arc};

use serde::{Deserialize, Serialize};
use terraform_plugin::{
    Program,
    framework::{
        Attr, ConfigureContext, Create, Diagnostics, Outcome, Private, Provider, Registry, Resource, Result, Schema,
        State, StepContext, Type, Update,
        schema::{Attribute, Replacement, Validator},
    },
    serve,
};

fn main() -> ExitCode {
    serve(Notes, Program { name: "notes", version: env!("CARGO_PKG_VERSION"), address: "example/notes" })
}

struct Notes;

#[derive(Clone, Serialize, Deserialize)]
struct Folder {
    folder: Attr<String>,
}

impl Provider for Notes {
    type Client = PathBuf;
    type Model = Folder;

    fn schema(&self) -> Schema {
        Schema::new("Notes in files.", vec![Attribute::required("folder", Type::String, "Where they are.")])
    }

    fn registry(&self) -> Registry<PathBuf> {
        Registry::new().resource(NoteResource)
    }

    async fn configure(&self, config: Folder, _: ConfigureContext<'_>) -> Result<(Arc<PathBuf>, Diagnostics)> {
        Ok((Arc::new(config.folder.into_known().unwrap_or_default().into()), Diagnostics::new()))
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Note {
    name: Attr<String>,
    text: Attr<String>,
}

impl Note {
    fn path(&self, context: &StepContext<PathBuf>) -> PathBuf {
        context.client.join(self.name.as_str().unwrap_or_default())
    }
}

struct NoteResource;

impl Resource for NoteResource {
    type Client = PathBuf;
    type Model = Note;

    fn type_name(&self) -> &'static str {
        "notes_note"
    }

    fn schema(&self) -> Schema {
        let name = Attribute::required("name", Type::String, "The name of the file.").replaces(Replacement::Always);
        let name = name.validate(Validator::text("a name without a slash", |name| !name.contains('/')));
        Schema::new("A note.", vec![name, Attribute::required("text", Type::String, "What it says.")])
    }

    async fn create(&self, change: Create<Note>, context: StepContext<PathBuf>) -> Result<Outcome<Note>> {
        fs::write(change.planned.path(&context), change.planned.text.as_str().unwrap_or_default())?;
        Ok(Outcome::present(change.planned, change.private))
    }

    async fn read(&self, current: State<Note>, context: StepContext<PathBuf>) -> Result<Outcome<Note>> {
        match fs::read_to_string(current.state.path(&context)) {
            Ok(text) => Ok(Outcome::present(Note { text: text.into(), ..current.state }, current.private)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Outcome::absent()),
            Err(error) => Err(error.into()),
        }
    }

    async fn update(&self, change: Update<Note>, context: StepContext<PathBuf>) -> Result<Outcome<Note>> {
        fs::write(change.planned.path(&context), change.planned.text.as_str().unwrap_or_default())?;
        Ok(Outcome::present(change.planned, change.private))
    }

    async fn delete(&self, current: State<Note>, context: StepContext<PathBuf>) -> Result<Outcome<Note>> {
        fs::remove_file(current.state.path(&context))?;
        Ok(Outcome::absent())
    }

    async fn import(&self, id: &str, _: StepContext<PathBuf>) -> Result<Outcome<Note>> {
        Ok(Outcome::present(Note { name: id.into(), text: Attr::Null }, Private::default()))
    }
}
