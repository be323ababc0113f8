//! Sources: what a plural data source, a singular one and a list resource read of one kind of object. Each row is a
//! value with the attributes of the columns.

use std::{ops::ControlFlow, sync::Arc};

use futures_util::{StreamExt as _, future::BoxFuture, stream};
use regex::Regex;

use super::{ProviderClient, StepContext, errors::Failure, words::title};
use crate::{
    api::{self, Code, InstanceStatus, Listing},
    framework::{
        DataSource, Diagnostic, Diagnostics, ListResource, ListSender, Listed, Outcome, Path, Private, Result, Schema,
        Type, Value,
        schema::{Attribute, AttributeType, Nesting, Requirement, Selection, Validator},
    },
    review::rules::and_more,
};

/// The number of objects that an error lists.
const LISTED: usize = 20;

/// The number of concurrent requests for details.
const AT_ONCE: usize = 8;

/// Arguments that identify an object: one that is found by them is found, even if others may be missing.
const IDENTIFIERS: [&str; 2] = ["id", "uid"];

/// Reads the rows that a configuration may want, in a stable order.
pub(super) type ReadRows = for<'a> fn(&'a Value, &'a StepContext) -> BoxFuture<'a, RowsOrError>;

/// The rows of a list, or the diagnostic for its error.
pub(super) type RowsOrError = Result<ListedRows, Diagnostic>;

/// The rows of a list.
#[derive(Debug)]
pub(super) struct ListedRows {
    rows: Vec<Value>,
    /// The error of a list in which rows may be missing.
    gap: Option<Diagnostic>,
}

impl ListedRows {
    /// Reads the rows of a list. `nouns` are its objects in the plural.
    pub(super) fn read<T>(
        listing: Result<Arc<Listing<T>>, api::Error>,
        nouns: &str,
        config: &Value,
        rows: impl FnOnce(&[T]) -> Vec<Value>,
    ) -> RowsOrError {
        let listing = listing.map_err(|error| {
            let failure = Failure { error: &error, tried: format!("list the {nouns}"), now: String::new() };
            failure.diagnostic(|name| !config.attribute(name).is_null())
        })?;
        let gap = listing.gap().map(|gap| {
            let detail = format!(
                "The service's list of {nouns} is incomplete: {gap}. A list that lacks objects would make Terraform \
                 destroy what depends on them, so it is not used. Run the plan again."
            );
            Diagnostic::error(format!("Cannot list the {nouns}: the list is incomplete"), detail)
        });
        Ok(Self { rows: rows(&listing.records), gap })
    }

    /// Rows that no list needed.
    pub(super) fn known(rows: Vec<Value>) -> Self {
        Self { rows, gap: None }
    }

    /// All rows.
    fn complete(self) -> Result<Vec<Value>, Diagnostic> {
        self.gap.map_or(Ok(self.rows), Err)
    }
}

/// Reads the attributes of an object that its list lacks.
pub(super) type ReadRest = for<'a> fn(&'a Value, &'a StepContext) -> BoxFuture<'a, Result<Value, api::Error>>;

/// What is read of one kind of object.
#[derive(Debug)]
pub(super) struct Source {
    /// The type in HCL.
    pub(super) type_name: &'static str,
    /// The description, in Markdown.
    pub(super) description: &'static str,
    /// The attributes of a row, all computed.
    pub(super) columns: Vec<Attribute>,
    /// The arguments.
    pub(super) filters: Vec<Filter>,
    /// Reads the rows.
    pub(super) list: ReadRows,
}

/// An argument of a source.
#[derive(Debug)]
pub(super) enum Filter {
    /// A column that is also an argument, which must match exactly.
    Exact(&'static str),
    /// An argument that a column must satisfy.
    On(&'static str, MakeTest, Attribute),
    /// An argument that [`Source::list`] reads.
    Read(Attribute),
}

/// Makes the test of a column from the configured value.
pub(super) type MakeTest = fn(&Value) -> RowTest;

/// Whether a column's value satisfies a filter. A null value does not.
pub(super) type RowTest = Box<dyn Fn(&Value) -> bool + Send>;

/// The value must be equal.
pub(super) fn equal(wanted: &Value) -> RowTest {
    let wanted = wanted.clone();
    Box::new(move |own| *own == wanted)
}

/// The value must be at least this.
pub(super) fn at_least(least: &Value) -> RowTest {
    let least = least.clone();
    Box::new(move |own| *own >= least)
}

/// The value must be at most this.
pub(super) fn at_most(most: &Value) -> RowTest {
    let most = most.clone();
    Box::new(move |own| !own.is_null() && *own <= most)
}

/// The filter of a column by a regular expression.
pub(super) fn pattern(column: &'static str, name: &'static str, description: &str) -> Filter {
    let pattern = Attribute::optional(name, Type::String, description).validate(Validator::regular_expression());
    Filter::On(column, matching, pattern)
}

/// The text must match this regular expression.
fn matching(pattern: &Value) -> RowTest {
    let pattern = pattern.as_str().and_then(|pattern| Regex::new(pattern).ok());
    Box::new(move |own| pattern.as_ref().zip(own.as_str()).is_some_and(|(pattern, text)| pattern.is_match(text)))
}

/// The text must contain this part, in upper or lower case.
pub(super) fn containing(part: &Value) -> RowTest {
    let part = part.as_str().unwrap_or_default().to_lowercase();
    Box::new(move |own| own.as_str().is_some_and(|text| text.to_lowercase().contains(&part)))
}

/// If this is true, the value must be true.
pub(super) fn true_if(wanted: &Value) -> RowTest {
    let wanted = *wanted == Value::Bool(true);
    Box::new(move |own| !wanted || *own == Value::Bool(true))
}

impl Filter {
    fn name(&self) -> &str {
        match self {
            Self::Exact(name) => name,
            Self::On(_, _, attribute) | Self::Read(attribute) => &attribute.name,
        }
    }

    /// The tested column, and its test; `None` if the filter is not set or not tested.
    fn test(&self, config: &Value) -> Option<(&'static str, RowTest)> {
        let (column, rule): (_, MakeTest) = match self {
            Self::Exact(name) => (*name, equal),
            Self::On(column, rule, _) => (*column, *rule),
            Self::Read(_) => return None,
        };
        let wanted = config.attribute(self.name());
        (!wanted.is_null() && !wanted.is_unknown()).then(|| (column, rule(wanted)))
    }
}

impl Source {
    /// The arguments. `exact` is the requirement of columns that are arguments too.
    fn arguments(&self, exact: Requirement) -> impl Iterator<Item = Attribute> {
        self.filters.iter().filter_map(move |filter| match filter {
            Filter::Exact(name) => {
                let mut column = self.columns.iter().find(|column| *column.name == **name)?.clone();
                column.requirement = exact;
                column.description.push_str(" As an argument it must match exactly.");
                Some(column)
            }
            Filter::On(_, _, attribute) | Filter::Read(attribute) => Some(attribute.clone()),
        })
    }

    /// The rows that satisfy all filters.
    pub(super) fn accepted(&self, config: &Value, rows: &[Value]) -> Vec<Value> {
        let tests: Vec<_> = self.filters.iter().filter_map(|filter| filter.test(config)).collect();
        let accepts = |row: &&Value| tests.iter().all(|(column, test)| test(row.attribute(column)));
        rows.iter().filter(accepts).cloned().collect()
    }

    /// A row with the columns only.
    fn row(&self, row: &Value) -> Value {
        Value::object(self.columns.iter().map(|column| (column.name.clone(), row.attribute(&column.name).clone())))
    }
}

/// The name of an object in an error: its id and its name.
pub(super) fn numbered(row: &Value) -> String {
    let text = |name| row.attribute(name).as_str().unwrap_or_default();
    format!("{} {:?}", text("id"), text("name"))
}

/// The texts of a configured list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let elements = if let Value::List(elements) = list { elements.as_slice() } else { &[] };
    elements.iter().filter_map(Value::as_str)
}

/// The text of a configured value.
pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A configured truth value.
pub(super) fn flag(value: &Value) -> Option<bool> {
    if let Value::Bool(flag) = value { Some(*flag) } else { None }
}

/// The data source of all objects that match.
#[derive(Debug)]
pub(super) struct Plural {
    pub(super) source: Source,
    /// The attribute with the rows.
    pub(super) rows: &'static str,
    /// Its description.
    pub(super) rows_description: &'static str,
}

impl DataSource for Plural {
    type Client = ProviderClient;
    type Model = Value;

    fn type_name(&self) -> &'static str {
        self.source.type_name
    }

    fn schema(&self) -> Schema {
        let rows = AttributeType::Nested(Nesting::List, self.source.columns.clone());
        let rows = Attribute::computed(self.rows, rows, self.rows_description);
        Schema::new(self.source.description, self.source.arguments(Requirement::Optional).chain([rows]).collect())
    }

    async fn read(&self, mut config: Value, context: StepContext) -> Result<Outcome<Value>> {
        let rows = (self.source.list)(&config, &context).await.and_then(ListedRows::complete)?;
        let rows = self.source.accepted(&config, &rows);
        config.set_attribute(self.rows, Value::List(rows.iter().map(|row| self.source.row(row)).collect()));
        Ok(Outcome::present(config, Private::default()))
    }
}

/// The data source of one object.
#[derive(Debug)]
pub(super) struct Singular {
    pub(super) source: Source,
    /// The object, as a noun.
    pub(super) noun: &'static str,
    /// The arguments that must be set.
    pub(super) needs: Needs,
    /// What is done about several matches.
    pub(super) takes: Takes,
    /// The name of an object in an error.
    pub(super) label: fn(&Value) -> String,
    /// Reads the attributes that the list lacks.
    pub(super) rest: Option<ReadRest>,
}

/// The arguments of a singular data source that must be set.
#[derive(Debug)]
pub(super) enum Needs {
    /// At least one of these.
    Any(&'static [&'static str]),
    /// None.
    Nothing,
    /// One of these, and only one.
    One(&'static [&'static str]),
}

/// What is done about several matches.
#[derive(Debug)]
pub(super) enum Takes {
    /// If this argument is true, the first is taken; otherwise they are an error.
    First(&'static str),
    /// If this argument is true, the one with the latest time is taken: the first of these columns that is known;
    /// otherwise they are an error.
    MostRecent(&'static str, &'static [&'static str]),
    /// They are an error.
    TheOnlyOne,
}

impl Singular {
    /// The row of the object that matches.
    fn choose(&self, config: &Value, rows: &[Value]) -> Result<Value, Diagnostic> {
        let mut found = self.source.accepted(config, rows);
        let is_set = |argument: &str| *config.attribute(argument) == Value::Bool(true);
        match self.takes {
            Takes::First(argument) if is_set(argument) => found.truncate(1),
            Takes::MostRecent(argument, times) if is_set(argument) => {
                let time = |row: &Value| times.iter().find_map(|time| row.attribute(time).as_str().map(str::to_owned));
                found = found.into_iter().max_by_key(time).into_iter().collect();
            }
            _ => {}
        }
        let way_out = match self.takes {
            Takes::First(_) => "Narrow the filters, or set sort_by and first = true.",
            Takes::MostRecent(..) => "Select one by its id, narrow the filters, or set most_recent = true.",
            Takes::TheOnlyOne => "Select one by its id, or narrow the filters.",
        };
        match found.len() {
            0 => Err(Diagnostic::error(
                format!("No {} matches", self.noun),
                format!("Available: {}.", self.labels(rows)),
            )),
            1 => Ok(found.swap_remove(0)),
            _ => Err(Diagnostic::error(
                format!("Several {}s match", self.noun),
                format!("These match: {}. {way_out}", self.labels(&found)),
            )),
        }
    }

    fn labels(&self, rows: &[Value]) -> String {
        let labels: Vec<String> = rows.iter().take(LISTED).map(self.label).collect();
        match rows.len() {
            0 => "none".to_owned(),
            more if more > LISTED => format!("{} {}", labels.join(", "), and_more(more - LISTED)),
            _ => labels.join(", "),
        }
    }

    async fn read(&self, config: &Value, context: &StepContext) -> Result<Value, Diagnostic> {
        let ListedRows { rows, gap } = (self.source.list)(config, context).await?;
        let row = match gap {
            None => self.choose(config, &rows)?,
            Some(gap) if IDENTIFIERS.iter().all(|id| config.attribute(id).is_null()) => return Err(gap),
            Some(gap) => self.choose(config, &rows).map_err(|_| gap)?,
        };
        match self.rest {
            Some(rest) => rest(&row, context).await.map_err(|error| unread(self.noun, &row, &error)),
            None => Ok(row),
        }
    }
}

/// The diagnostic for an object whose attributes could not be read.
fn unread(noun: &str, row: &Value, error: &api::Error) -> Diagnostic {
    let id = row.attribute("id").as_str();
    let tried = format!("read {}", title(noun, row.attribute("name").as_str(), id));
    Failure { error, tried, now: String::new() }.on_instance(id.unwrap_or_default()).whole()
}

impl DataSource for Singular {
    type Client = ProviderClient;
    type Model = Value;

    fn type_name(&self) -> &'static str {
        self.source.type_name
    }

    fn schema(&self) -> Schema {
        let is_argument = |name: &str| self.source.filters.iter().any(|filter| filter.name() == name);
        let results = self.source.columns.iter().filter(|column| !is_argument(&column.name)).cloned();
        let arguments = self.source.arguments(Requirement::OptionalComputed);
        let schema = Schema::new(self.source.description, arguments.chain(results).collect());
        let paths = |names: &[&str]| names.iter().map(|name| Path::to(name)).collect::<Vec<_>>();
        match self.needs {
            Needs::Nothing => schema,
            Needs::Any(names) => schema.select(Selection::at_least_one_of(paths(names))),
            Needs::One(names) => schema.select(Selection::exactly_one_of(paths(names))),
        }
    }

    async fn read(&self, mut config: Value, context: StepContext) -> Result<Outcome<Value>> {
        let row = self.read(&config, &context).await?;
        for column in &self.source.columns {
            config.set_attribute(&column.name, row.attribute(&column.name).clone());
        }
        Ok(Outcome::present(config, Private::default()))
    }
}

/// The list resource, for `terraform query`. Its rows are states of the resource.
#[derive(Debug)]
pub(super) struct ListAll {
    pub(super) source: Source,
    /// The object, as a noun.
    pub(super) noun: &'static str,
    /// Reads the attributes that the list lacks.
    pub(super) rest: Option<ReadRest>,
}

impl ListAll {
    /// The state of a listed object; `None` if it has disappeared since the list was read.
    async fn state(&self, row: Value, context: &StepContext) -> Result<Option<Value>, Diagnostic> {
        let Some(rest) = self.rest else { return Ok(Some(row)) };
        match rest(&row, context).await {
            Ok(state) if state.attribute("status").as_str() == Some(InstanceStatus::Released.as_str()) => Ok(None),
            Ok(state) => Ok(Some(state)),
            Err(error) if error.code() == Some(Code::InstanceNotExistOrNoPrivilege) => Ok(None),
            Err(error) => Err(unread(self.noun, &row, &error)),
        }
    }
}

impl ListResource for ListAll {
    type Client = ProviderClient;
    type Model = Value;
    type Resource = Value;

    fn type_name(&self) -> &'static str {
        self.source.type_name
    }

    fn schema(&self) -> Schema {
        Schema::new(self.source.description, self.source.arguments(Requirement::Optional).collect())
    }

    async fn list(&self, config: Value, mut found: ListSender<'_, Value>, context: StepContext) -> Result<Diagnostics> {
        let rows = (self.source.list)(&config, &context).await.and_then(ListedRows::complete)?;
        let rows = self.source.accepted(&config, &rows);
        let whole = found.wants_state();
        let states = rows.into_iter().take(found.wanted()).map(|row| async {
            let name = row.attribute("name").as_str().or_else(|| row.attribute("id").as_str());
            let display_name = name.unwrap_or_default().to_owned();
            let state = if whole { self.state(row, &context).await? } else { Some(row) };
            Ok::<_, Diagnostic>(state.map(|state| Listed { display_name, state }))
        });
        let mut states = stream::iter(states).buffered(AT_ONCE);
        while let Some(listed) = states.next().await {
            if let Some(listed) = listed?
                && let ControlFlow::Break(()) = found.send(listed).await
            {
                break;
            }
        }
        Ok(Diagnostics::new())
    }
}
