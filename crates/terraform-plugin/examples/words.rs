//! A provider of words, which shows all that a provider needs.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use terraform_plugin::{
    Program,
    framework::{
        Attr, ConfigureContext, Create, DataSource, Diagnostic, Diagnostics, Function, FunctionError, Outcome,
        Parameter, Private, Provider, Registry, Resource, Result, Schema, Signature, State, StepContext, Type, Update,
        schema::{Attribute, Validator},
    },
    serve,
};

fn main() -> ExitCode {
    serve(Acme::default(), Program { name: "acme", version: env!("CARGO_PKG_VERSION"), address: "acme/acme" })
}

/// A provider of words, which its service remembers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acme(Arc<Words>);

/// The service: words by their ids.
#[derive(Debug, Default)]
pub(crate) struct Words(Mutex<BTreeMap<String, String>>);

impl Words {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments of the provider: it has none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NoArguments {}

impl Provider for Acme {
    type Client = Words;
    type Model = NoArguments;

    fn schema(&self) -> Schema {
        Schema::new("Remembers words.", vec![])
    }

    fn registry(&self) -> Registry<Words> {
        Registry::new().resource(WordResource).data_source(WordsSource).function(Shout)
    }

    async fn configure(&self, _: NoArguments, _: ConfigureContext<'_>) -> Result<(Arc<Words>, Diagnostics)> {
        Ok((Arc::clone(&self.0), Diagnostics::new()))
    }
}

/// A word in a configuration, a plan or a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Word {
    id: Attr<String>,
    text: Attr<String>,
}

struct WordResource;

impl Resource for WordResource {
    type Client = Words;
    type Model = Word;

    fn type_name(&self) -> &'static str {
        "acme_word"
    }

    fn schema(&self) -> Schema {
        let text = Attribute::required("text", Type::String, "The word; it can be changed.");
        let text = text.validate(Validator::text("one word", |text| !text.contains(' ')));
        Schema::new("A word.", vec![Attribute::computed("id", Type::String, "The number of the word."), text])
    }

    async fn create(&self, change: Create<Word>, context: StepContext<Words>) -> Result<Outcome<Word>> {
        let mut words = context.client.all();
        let id = (words.len() + 1).to_string();
        words.insert(id.clone(), change.planned.text.as_str().unwrap_or_default().to_owned());
        Ok(Outcome::present(Word { id: id.into(), ..change.planned }, Private::default()))
    }

    async fn read(&self, current: State<Word>, context: StepContext<Words>) -> Result<Outcome<Word>> {
        Ok(match context.client.all().get(current.state.id.as_str().unwrap_or_default()) {
            Some(text) => Outcome::present(Word { text: text.clone().into(), ..current.state }, current.private),
            None => Outcome::absent(),
        })
    }

    async fn update(&self, change: Update<Word>, context: StepContext<Words>) -> Result<Outcome<Word>> {
        let mut words = context.client.all();
        let word = words.get_mut(change.prior.id.as_str().unwrap_or_default());
        let word = word.ok_or_else(|| Diagnostic::error("The word is gone", "Another plan shows what is left."))?;
        *word = change.planned.text.as_str().unwrap_or_default().to_owned();
        Ok(Outcome::present(change.planned, change.private))
    }

    async fn delete(&self, current: State<Word>, context: StepContext<Words>) -> Result<Outcome<Word>> {
        context.client.all().remove(current.state.id.as_str().unwrap_or_default());
        Ok(Outcome::absent())
    }

    async fn import(&self, id: &str, _: StepContext<Words>) -> Result<Outcome<Word>> {
        // The refresh that follows reads the rest.
        Ok(Outcome::present(Word { id: id.into(), text: Attr::Null }, Private::default()))
    }
}

/// All words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AllWords {
    texts: Attr<Vec<String>>,
}

struct WordsSource;

impl DataSource for WordsSource {
    type Client = Words;
    type Model = AllWords;

    fn type_name(&self) -> &'static str {
        "acme_words"
    }

    fn schema(&self) -> Schema {
        Schema::new("All words.", vec![Attribute::computed("texts", Type::list(Type::String), "The words.")])
    }

    async fn read(&self, _: AllWords, context: StepContext<Words>) -> Result<Outcome<AllWords>> {
        let texts = context.client.all().values().cloned().collect::<Vec<_>>();
        Ok(Outcome::present(AllWords { texts: texts.into() }, Private::default()))
    }
}

struct Shout;

/// The arguments of [`Shout`].
#[derive(Debug, Deserialize)]
pub(crate) struct Shouted {
    text: String,
}

impl Function for Shout {
    type Arguments = Shouted;
    type Output = String;

    fn name(&self) -> &'static str {
        "shout"
    }

    fn signature(&self) -> Signature {
        Signature {
            summary: "Shouts a word".to_owned(),
            description: "Turns a word into capital letters.".to_owned(),
            parameters: vec![Parameter::new("text", Type::String, "The word.")],
            returns: Type::String,
        }
    }

    fn call(&self, Shouted { text }: Shouted) -> Result<String, FunctionError> {
        Ok(text.to_uppercase())
    }
}
