//! Strict reading of requests: query parameters, paging, and the fields of bodies by name and type.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::{
    form::{Form, ListOrder},
    random::RandomStream,
    refusal::ServiceRefusal,
};

/// The query parameters that were not read yet.
#[derive(Debug)]
pub(super) struct Query {
    parameters: BTreeMap<String, String>,
}

impl Query {
    pub(super) fn parse(query: &str) -> Result<Self, ServiceRefusal> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if parameters.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(ServiceRefusal::invalid(format!("{name}: given twice")));
            }
        }
        Ok(Self { parameters })
    }

    pub(super) fn required_string(&mut self, name: &str) -> Result<String, ServiceRefusal> {
        match self.string(name) {
            Some(value) if !value.is_empty() => Ok(value),
            Some(_) | None => Err(ServiceRefusal::invalid(format!("{name}: missing"))),
        }
    }

    pub(super) fn string(&mut self, name: &str) -> Option<String> {
        self.parameters.remove(name)
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, ServiceRefusal> {
        self.string(name)
            .map(|value| {
                value
                    .parse()
                    .map_err(|_| ServiceRefusal::invalid(format!("{name}: expected an integer, got {value:?}")))
            })
            .transpose()
    }

    /// An integer that must be one of the documented values.
    pub(super) fn one_of(&mut self, name: &str, allowed: &[i64]) -> Result<Option<i64>, ServiceRefusal> {
        match self.integer(name)? {
            Some(value) if !allowed.contains(&value) => {
                Err(ServiceRefusal::invalid(format!("{name}: {value} is not one of {allowed:?}")))
            }
            value => Ok(value),
        }
    }

    /// Comma-separated storage classes: 1 RBD, 2 FS, 3 S3.
    pub(super) fn storage_classes(&mut self, name: &str) -> Result<Option<Vec<i64>>, ServiceRefusal> {
        self.string(name)
            .map(|value| {
                value
                    .split(',')
                    .map(|class| match class.trim().parse() {
                        Ok(class @ 1..=3) => Ok(class),
                        Ok(_) | Err(_) => {
                            Err(ServiceRefusal::invalid(format!("{name}: {class:?} is not a storage class")))
                        }
                    })
                    .collect()
            })
            .transpose()
    }

    /// `page` and `page_size`, both required.
    pub(super) fn page(&mut self) -> Result<Page, ServiceRefusal> {
        let mut required =
            |name: &str| self.integer(name)?.ok_or_else(|| ServiceRefusal::invalid(format!("{name}: missing")));
        Page::new(required("page")?, required("page_size")?)
    }

    /// `page` and `page_size`, for a list that returns all without them.
    pub(super) fn optional_page(&mut self) -> Result<Page, ServiceRefusal> {
        match (self.integer("page")?, self.integer("page_size")?) {
            (None, None) => Page::new(1, 0),
            (number, size) => Page::new(number.unwrap_or(1), size.unwrap_or(0)),
        }
    }

    /// Refuses the parameters that were not read.
    pub(super) fn finish(self) -> Result<(), ServiceRefusal> {
        match self.parameters.keys().next() {
            Some(name) => Err(ServiceRefusal::invalid(format!("{name}: unknown parameter"))),
            None => Ok(()),
        }
    }
}

/// The requested page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    number: i64,
    size: i64,
}

impl Page {
    fn new(number: i64, size: i64) -> Result<Self, ServiceRefusal> {
        for (name, value) in [("page", number), ("page_size", size)] {
            if value < 0 {
                return Err(ServiceRefusal::invalid(format!("{name}: {value} is negative")));
            }
        }
        Ok(Self { number, size })
    }

    /// The paged object of records that come in ascending order of id. Page 0 is read as page 1; size 0 is all of them.
    pub(super) fn of(self, mut records: Vec<Value>, form: &Form, random: &mut RandomStream) -> Value {
        let total = records.len();
        let asked = usize::try_from(self.size).unwrap_or(usize::MAX);
        let cap = form.page_cap.map_or(usize::MAX, |cap| usize::try_from(cap).unwrap_or(usize::MAX).max(1));
        let size = match asked {
            0 if form.page_cap_for_all => total.clamp(1, cap),
            0 => total.max(1),
            _ => asked.min(cap),
        };
        match form.order {
            ListOrder::Ascending | ListOrder::Shuffled => {}
            ListOrder::Descending => records.reverse(),
            ListOrder::ShuffledAcrossPages => random.shuffle(&mut records),
        }
        let number = usize::try_from(self.number).unwrap_or(usize::MAX).max(1);
        let mut data: Vec<Value> = records.into_iter().skip((number - 1).saturating_mul(size)).take(size).collect();
        if form.order == ListOrder::Shuffled {
            random.shuffle(&mut data);
        }
        let reported = if form.page_size_as_asked || asked == 0 { asked } else { size };
        json!({ "total": total, "page": self.number, "page_size": reported, "total_page": total.div_ceil(size),
            "data": data })
    }
}

/// A list without pages, in the chosen order.
pub(super) fn unpaged(mut records: Vec<Value>, form: &Form, random: &mut RandomStream) -> Value {
    match form.order {
        ListOrder::Ascending => {}
        ListOrder::Descending => records.reverse(),
        ListOrder::Shuffled | ListOrder::ShuffledAcrossPages => random.shuffle(&mut records),
    }
    Value::Array(records)
}

/// The fields of a JSON object that were not read yet.
#[derive(Debug)]
pub(super) struct Fields {
    /// The prefix of field names in messages: "" or `exist_disks[0].`.
    prefix: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The body of a request, which the document calls JSON.
    pub(super) fn of_body(content_type: Option<&str>, body: &[u8]) -> Result<Self, ServiceRefusal> {
        let media_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(ServiceRefusal::invalid(format!(
                "Content-Type: expected application/json, got {media_type:?}"
            )));
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => Ok(Self { prefix: String::new(), map }),
            Ok(other) => Err(ServiceRefusal::invalid(format!("body: expected an object, got {}", kind(&other)))),
            Err(error) => Err(ServiceRefusal::invalid(format!("body: not JSON: {error}"))),
        }
    }

    pub(super) fn required_string(&mut self, name: &str) -> Result<String, ServiceRefusal> {
        self.string(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, ServiceRefusal> {
        self.take(name, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn required_integer(&mut self, name: &str) -> Result<i64, ServiceRefusal> {
        self.integer(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, ServiceRefusal> {
        self.take(name, "an integer", Value::as_i64)
    }

    pub(super) fn boolean(&mut self, name: &str) -> Result<Option<bool>, ServiceRefusal> {
        self.take(name, "a boolean", Value::as_bool)
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, ServiceRefusal> {
        self.take(name, "a number", Value::as_f64)
    }

    /// An object, as fields of its own.
    pub(super) fn object(&mut self, name: &str) -> Result<Option<Self>, ServiceRefusal> {
        let map = self.take(name, "an object", |value| value.as_object().cloned())?;
        Ok(map.map(|map| Self { prefix: format!("{}{name}.", self.prefix), map }))
    }

    pub(super) fn array(&mut self, name: &str) -> Result<Vec<Value>, ServiceRefusal> {
        Ok(self.take(name, "an array", |value| value.as_array().cloned())?.unwrap_or_default())
    }

    /// The objects of an array, each as fields of its own.
    pub(super) fn objects(&mut self, name: &str) -> Result<Vec<Self>, ServiceRefusal> {
        let prefix = format!("{}{name}", self.prefix);
        self.array(name)?
            .into_iter()
            .enumerate()
            .map(|(index, element)| match element {
                Value::Object(map) => Ok(Self { prefix: format!("{prefix}[{index}]."), map }),
                other => {
                    Err(ServiceRefusal::invalid(format!("{prefix}[{index}]: expected an object, got {}", kind(&other))))
                }
            })
            .collect()
    }

    /// A refusal that names a field of this object.
    pub(super) fn invalid(&self, name: &str, problem: &str) -> ServiceRefusal {
        ServiceRefusal::invalid(format!("{}{name}: {problem}", self.prefix))
    }

    /// Refuses the fields that were not read.
    pub(super) fn finish(self) -> Result<(), ServiceRefusal> {
        match self.map.keys().next() {
            Some(name) => Err(ServiceRefusal::invalid(format!("{}{name}: unknown field", self.prefix))),
            None => Ok(()),
        }
    }

    fn take<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, ServiceRefusal> {
        match self.map.remove(name) {
            None => Ok(None),
            Some(value) => match read(&value) {
                Some(read) => Ok(Some(read)),
                None => Err(self.invalid(name, &format!("expected {expected}, got {}", kind(&value)))),
            },
        }
    }

    fn missing(&self, name: &str) -> ServiceRefusal {
        self.invalid(name, "missing")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "an array",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
        Value::Number(number) if number.is_i64() || number.is_u64() => "an integer out of range",
        Value::Number(_) => "a number that is not an integer",
        Value::Object(_) => "an object",
        Value::String(_) => "a string",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn ids(page: &Value) -> Vec<i64> {
        page["data"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
    }

    fn page(query: &str, form: &str, sequence: u64) -> Result<Value, ServiceRefusal> {
        let mut query = Query::parse(query)?;
        let page = query.page()?;
        query.finish()?;
        Ok(page.of((1..=5).map(Value::from).collect(), &form.parse().unwrap(), &mut RandomStream::new(7, sequence)))
    }

    #[rstest]
    #[case("page=1&page_size=2", "", &[1, 2], 2, 3)]
    #[case("page=0&page_size=2", "", &[1, 2], 2, 3)]
    #[case("page=3&page_size=2", "", &[5], 2, 3)]
    #[case("page=4&page_size=2", "", &[], 2, 3)]
    #[case("page=1&page_size=0", "", &[1, 2, 3, 4, 5], 0, 1)]
    #[case("page=1&page_size=0", "page_cap=2", &[1, 2, 3, 4, 5], 0, 1)]
    #[case("page=2&page_size=50", "page_cap=2", &[3, 4], 2, 3)]
    #[case("page=2&page_size=50", "page_cap=2,page_size_as_asked", &[3, 4], 50, 3)]
    #[case("page=1&page_size=2", "order=descending", &[5, 4], 2, 3)]
    fn pages_are_cut(
        #[case] query: &str,
        #[case] form: &str,
        #[case] data: &[i64],
        #[case] size: i64,
        #[case] pages: i64,
    ) {
        let page = page(query, form, 1).unwrap();
        assert_eq!(ids(&page), data);
        assert_eq!((&page["total"], &page["page_size"], &page["total_page"]), (&json!(5), &json!(size), &json!(pages)));
    }

    #[test]
    fn a_shuffle_differs_by_request_and_keeps_the_page() {
        let orders: Vec<Vec<i64>> =
            (0..8).map(|sequence| ids(&page("page=1&page_size=4", "order=shuffled", sequence).unwrap())).collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
        for mut order in orders {
            order.sort_unstable();
            assert_eq!(order, [1, 2, 3, 4]);
        }
    }

    #[rstest]
    #[case("page_size=2", "page: missing")]
    #[case("page=1&page_size=-2", "page_size: -2 is negative")]
    #[case("page=one&page_size=2", "page: expected an integer")]
    #[case("page=1&page=2&page_size=2", "page: given twice")]
    #[case("page=1&page_size=2&colour=red", "colour: unknown parameter")]
    fn wrong_paging_is_refused(#[case] query: &str, #[case] message: &str) {
        let refusal = page(query, "", 1).unwrap_err();
        assert_eq!(refusal.code.number(), 100_002);
        assert!(refusal.message.starts_with(message), "{}", refusal.message);
    }
}
