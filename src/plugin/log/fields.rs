//! The fields of an event or a span, as JSON.

use std::{error::Error, fmt};

use serde_json::{Map, Number, Value};
use tracing::field::{Field, Visit};

use crate::plugin::error::with_causes;

/// Collects fields under the names they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        // What names a span for OpenTelemetry, or is its status, says nothing new here.
        if field.name().starts_with("otel.") {
            return;
        }
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinities.
        let number = Number::from_f64(value).map(Value::Number);
        self.put(field, number.unwrap_or_else(|| value.to_string().into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        // The core reads numbers as floats.
        self.put(field, value.to_string().into());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, value.to_string().into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, with_causes(value).into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
