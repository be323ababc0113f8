//! Strict reading of request bodies: each field by name and type, nothing unknown, no null where a value is documented.

use serde_json::{Map, Value};

use super::errors::Refusal;

/// The fields of a JSON object that were not read yet.
#[derive(Debug)]
pub(super) struct Fields {
    /// What the messages put before a field's name: "" or `exist_disks[0].`.
    prefix: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The body of a request, which the document calls JSON.
    pub(super) fn of_body(content_type: Option<&str>, body: &[u8]) -> Result<Self, Refusal> {
        let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::invalid(format!("Content-Type: expected application/json, got {media_type:?}")));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Self { prefix: String::new(), map }),
            Ok(other) => Err(Refusal::invalid(format!("body: expected an object, got {}", kind(&other)))),
            Err(error) => Err(Refusal::invalid(format!("body: no JSON: {error}"))),
        }
    }

    pub(super) fn required_string(&mut self, name: &str) -> Result<String, Refusal> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        self.take(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn required_integer(&mut self, name: &str) -> Result<i64, Refusal> {
        self.integer(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        self.take(name, "an integer", Value::as_i64)
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, Refusal> {
        self.take(name, "a boolean", Value::as_bool)
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, Refusal> {
        self.take(name, "a number", Value::as_f64)
    }

    /// An object, as fields of its own.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, Refusal> {
        let map = self.take(name, "an object", |value| value.as_object().cloned())?;
        Ok(map.map(|map| Self { prefix: format!("{}{name}.", self.prefix), map }))
    }

    pub(super) fn array(&mut self, name: &str) -> Result<Vec<Value>, Refusal> {
        Ok(self.take(name, "an array", |value| value.as_array().cloned())?.unwrap_or_default())
    }

    /// The objects of an array, each as fields of its own.
    pub(super) fn objects(&mut self, name: &str) -> Result<Vec<Self>, Refusal> {
        let prefix = format!("{}{name}", self.prefix);
        self.array(name)?
            .into_iter()
            .enumerate()
            .map(|(index, element)| match element {
                Value::Object(map) => Ok(Self { prefix: format!("{prefix}[{index}]."), map }),
                other => Err(Refusal::invalid(format!("{prefix}[{index}]: expected an object, got {}", kind(&other)))),
            })
            .collect()
    }

    /// A refusal that names a field of this object.
    pub(super) fn invalid(&self, name: &str, problem: &str) -> Refusal {
        Refusal::invalid(format!("{}{name}: {problem}", self.prefix))
    }

    /// Refuses what was not read.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        match self.map.keys().next() {
            Some(name) => Err(Refusal::invalid(format!("{}{name}: unknown field", self.prefix))),
            None => Ok(()),
        }
    }

    fn take<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        match self.map.remove(name) {
            None => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(self.invalid(name, &format!("expected {expected}, got {}", kind(&value)))),
            },
        }
    }

    fn missing(&self, name: &str) -> Refusal {
        self.invalid(name, "missing")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "an array",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
        Value::Number(number) if number.is_i64() || number.is_u64() => "an integer out of range",
        Value::Number(_) => "a number that is no integer",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Read {
        count: Option<i64>,
        name: Option<String>,
        flag: Option<bool>,
    }

    fn read(body: &str) -> Result<Read, Refusal> {
        let mut fields = Fields::of_body(Some("application/json; charset=utf-8"), body.as_bytes())?;
        let read =
            Read { count: fields.integer("count")?, name: fields.string("name")?, flag: fields.boolean("flag")? };
        fields.finish()?;
        Ok(read)
    }

    #[test]
    fn what_is_documented_is_read() {
        assert_eq!(
            read(r#"{"count":3,"name":"a","flag":true}"#),
            Ok(Read { count: Some(3), name: Some("a".to_owned()), flag: Some(true) })
        );
        assert_eq!(read("{}"), Ok(Read { count: None, name: None, flag: None }));
    }

    #[rstest]
    #[case(r#"{"count":"3"}"#, "count: expected an integer, got a string")]
    #[case(r#"{"count":3.0}"#, "count: expected an integer, got a number that is no integer")]
    #[case(r#"{"count":99999999999999999999}"#, "count: expected an integer")]
    #[case(r#"{"count":null}"#, "count: expected an integer, got null")]
    #[case(r#"{"name":7}"#, "name: expected a string, got an integer")]
    #[case(r#"{"flag":1}"#, "flag: expected a boolean, got an integer")]
    #[case(r#"{"colour":"red"}"#, "colour: unknown field")]
    #[case("[]", "body: expected an object, got an array")]
    #[case("{", "body: no JSON")]
    fn what_is_not_documented_is_refused(#[case] body: &str, #[case] message: &str) {
        let refusal = read(body).unwrap_err();
        assert_eq!(refusal.code.number(), 100_002);
        assert!(refusal.message.starts_with(message), "{}", refusal.message);
    }

    #[test]
    fn a_body_that_is_not_called_json_is_refused() {
        let refusal = Fields::of_body(Some("text/plain"), b"{}").unwrap_err();
        assert!(refusal.message.starts_with("Content-Type"), "{}", refusal.message);
    }
}
