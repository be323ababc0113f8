//! Tables of columns: what is only read of an object stands in one line for each attribute, from which follow the
//! schema, the reading, and the fields that may be logged.

use bigdecimal::BigDecimal;
use serde_json::Value as Json;

use super::words::time;
use crate::{
    api::Lenient,
    framework::{Type, Value, schema::Attribute, value::Number},
};

/// One column: an attribute, and the field of the service from which it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    name: &'static str,
    field: &'static str,
    kind: Kind,
    description: &'static str,
    is_logged: bool,
}

/// What a column holds, and how it is read.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Decimal,
    Flag,
    /// A whole number as text.
    Id,
    /// Whether a whole number is above zero.
    IsPositive,
    Text,
    Texts,
    /// Unix seconds as text.
    Time,
    Whole,
    /// A whole number that stands for a word.
    Word(fn(i64) -> String),
}

pub(super) const fn decimal(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Decimal, description)
}

pub(super) const fn flag(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Flag, description)
}

pub(super) const fn id(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Id, description)
}

pub(super) const fn is_positive(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::IsPositive, description)
}

pub(super) const fn text(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Text, description)
}

pub(super) const fn texts(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Texts, description)
}

pub(super) const fn moment(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Time, description)
}

pub(super) const fn whole(name: &'static str, description: &'static str) -> Column {
    Column::new(name, Kind::Whole, description)
}

pub(super) const fn word(name: &'static str, of: fn(i64) -> String, description: &'static str) -> Column {
    Column::new(name, Kind::Word(of), description)
}

impl Column {
    const fn new(name: &'static str, kind: Kind, description: &'static str) -> Self {
        Self { name, field: name, kind, description, is_logged: false }
    }

    /// Reads a field that does not have the attribute's name.
    pub(super) const fn of_field(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }

    /// Allows the field's value in logs.
    pub(super) const fn logged(mut self) -> Self {
        self.is_logged = true;
        self
    }

    fn read(&self, record: &Json) -> Value {
        let json = record.get(self.field).unwrap_or(&Json::Null);
        let value: Option<Value> = match self.kind {
            Kind::Decimal => BigDecimal::read(json).map(|number| Value::Number(Number::from(number))),
            Kind::Flag => bool::read(json).map(Value::from),
            Kind::Id => i64::read(json).map(|number| number.to_string().into()),
            Kind::IsPositive => i64::read(json).map(|number| (number > 0).into()),
            Kind::Text => String::read(json).map(Value::from),
            Kind::Texts => {
                let texts = Vec::<String>::read(json).unwrap_or_default();
                Some(Value::List(texts.into_iter().map(Value::from).collect()))
            }
            Kind::Time => time(i64::read(json)).map(Value::from),
            Kind::Whole => i64::read(json).map(Value::from),
            Kind::Word(of) => i64::read(json).map(|number| of(number).into()),
        };
        value.unwrap_or_default()
    }
}

/// The attributes of the columns, all computed.
pub(super) fn attributes(columns: &[Column]) -> Vec<Attribute> {
    let computed = |column: &Column| Attribute::computed(column.name, type_of(column.kind), column.description);
    columns.iter().map(computed).collect()
}

fn type_of(kind: Kind) -> Type {
    match kind {
        Kind::Decimal | Kind::Whole => Type::Number,
        Kind::Flag | Kind::IsPositive => Type::Bool,
        Kind::Id | Kind::Text | Kind::Time | Kind::Word(_) => Type::String,
        Kind::Texts => Type::list(Type::String),
    }
}

/// The attributes of a resource that are only reported: those of the columns that are no arguments.
pub(super) fn reported(columns: &[Column], arguments: &[Attribute]) -> Vec<Attribute> {
    let is_argument = |column: &Attribute| arguments.iter().any(|argument| argument.name == column.name);
    attributes(columns).into_iter().filter(|column| !is_argument(column)).collect()
}

/// The row of a record.
pub(super) fn row(columns: &[Column], record: &Json) -> Value {
    Value::object(columns.iter().map(|column| (column.name, column.read(record))))
}

/// The names of the fields that may be logged.
pub(super) fn logged(columns: &[Column]) -> impl Iterator<Item = &'static str> {
    columns.iter().filter(|column| column.is_logged).map(|column| column.field)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// What makes no sense for the kind is null, never an error.
    #[rstest]
    #[case::decimal(decimal("a", "").of_field("f"), json!("1.50"), Value::Number("1.5".parse().unwrap()))]
    #[case::flag(flag("a", "").of_field("f"), json!(1), true.into())]
    #[case::id(id("a", "").of_field("f"), json!(7.0), "7".into())]
    #[case::is_positive(is_positive("a", "").of_field("f"), json!("3"), true.into())]
    #[case::text(text("a", "").of_field("f"), json!(3), "3".into())]
    #[case::time(moment("a", "").of_field("f"), json!(1_700_000_000), "2023-11-14T22:13:20Z".into())]
    #[case::whole(whole("a", "").of_field("f"), json!("3"), 3.into())]
    #[case::word(word("a", crate::provider::words::storage_class, "").of_field("f"), json!(9), "unknown(9)".into())]
    fn a_column_is_read_leniently(#[case] column: Column, #[case] sent: Json, #[case] read: Value) {
        assert_eq!(row(&[column], &json!({ "f": sent })).attribute("a"), &read);
        for absent in [json!({}), json!({ "f": null }), json!({ "f": "" }), json!({ "f": {} }), json!([])] {
            assert!(row(&[column], &absent).attribute("a").is_null(), "{absent}");
        }
    }

    #[test]
    fn a_list_is_never_null() {
        let read = |sent: Json| row(&[texts("a", "").of_field("f")], &sent).attribute("a").clone();
        assert_eq!(read(json!({ "f": ["x", 1, null] })), Value::List(vec!["x".into(), "1".into()]));
        assert_eq!(read(json!({})), Value::List(vec![]));
    }
}
