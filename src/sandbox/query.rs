//! Strict reading of query parameters, and the paging of lists.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    errors::Refusal,
    form::{Form, Order},
    random::Random,
};

/// The query parameters that were not read yet.
#[derive(Debug)]
pub(super) struct Query {
    parameters: BTreeMap<String, String>,
}

impl Query {
    pub(super) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if parameters.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(Refusal::invalid(format!("{name}: given twice")));
            }
        }
        Ok(Self { parameters })
    }

    pub(super) fn required_string(&mut self, name: &str) -> Result<String, Refusal> {
        match self.string(name) {
            Some(value) if !value.is_empty() => Ok(value),
            Some(_) | None => Err(Refusal::invalid(format!("{name}: missing"))),
        }
    }

    pub(super) fn string(&mut self, name: &str) -> Option<String> {
        self.parameters.remove(name)
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<Option<i64>, Refusal> {
        self.string(name)
            .map(|value| {
                value.parse().map_err(|_| Refusal::invalid(format!("{name}: expected an integer, got {value:?}")))
            })
            .transpose()
    }

    /// An integer that must be one of those documented.
    pub(super) fn one_of(&mut self, name: &str, allowed: &[i64]) -> Result<Option<i64>, Refusal> {
        match self.integer(name)? {
            Some(value) if !allowed.contains(&value) => {
                Err(Refusal::invalid(format!("{name}: {value} is not one of {allowed:?}")))
            }
            value => Ok(value),
        }
    }

    /// Comma-separated storage classes: 1 RBD, 2 FS, 3 S3.
    pub(super) fn storage_classes(&mut self, name: &str) -> Result<Option<Vec<i64>>, Refusal> {
        self.string(name)
            .map(|value| {
                value
                    .split(',')
                    .map(|class| match class.trim().parse() {
                        Ok(class @ 1..=3) => Ok(class),
                        Ok(_) | Err(_) => Err(Refusal::invalid(format!("{name}: {class:?} is no storage class"))),
                    })
                    .collect()
            })
            .transpose()
    }

    /// `page` and `page_size`, both required.
    pub(super) fn page(&mut self) -> Result<Page, Refusal> {
        let mut required = |name: &str| self.integer(name)?.ok_or_else(|| Refusal::invalid(format!("{name}: missing")));
        Page::new(required("page")?, required("page_size")?)
    }

    /// `page` and `page_size`, where a list without either returns all.
    pub(super) fn optional_page(&mut self) -> Result<Page, Refusal> {
        match (self.integer("page")?, self.integer("page_size")?) {
            (None, None) => Page::new(1, 0),
            (number, size) => Page::new(number.unwrap_or(1), size.unwrap_or(0)),
        }
    }

    /// Refuses what was not read.
    pub(super) fn finish(self) -> Result<(), Refusal> {
        match self.parameters.keys().next() {
            Some(name) => Err(Refusal::invalid(format!("{name}: unknown parameter"))),
            None => Ok(()),
        }
    }
}

/// The page asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    number: i64,
    size: i64,
}

impl Page {
    fn new(number: i64, size: i64) -> Result<Self, Refusal> {
        for (name, value) in [("page", number), ("page_size", size)] {
            if value < 0 {
                return Err(Refusal::invalid(format!("{name}: {value} is negative")));
            }
        }
        Ok(Self { number, size })
    }

    /// The paged object of records that come in ascending order of id. Page 0 is read as page 1; size 0 is all of them.
    pub(super) fn of(self, mut records: Vec<Value>, form: &Form, random: &mut Random) -> Value {
        let total = records.len();
        let asked = usize::try_from(self.size).unwrap_or(usize::MAX);
        let cap = form.page_cap.map_or(usize::MAX, |cap| usize::try_from(cap).unwrap_or(usize::MAX).max(1));
        let size = match asked {
            0 if form.page_cap_for_all => total.clamp(1, cap),
            0 => total.max(1),
            _ => asked.min(cap),
        };
        match form.order {
            Order::Ascending | Order::Shuffled => {}
            Order::Descending => records.reverse(),
            Order::ShuffledAcrossPages => random.shuffle(&mut records),
        }
        let number = usize::try_from(self.number).unwrap_or(usize::MAX).max(1);
        let mut data: Vec<Value> = records.into_iter().skip((number - 1).saturating_mul(size)).take(size).collect();
        if form.order == Order::Shuffled {
            random.shuffle(&mut data);
        }
        let reported = if form.page_size_as_asked || asked == 0 { asked } else { size };
        json!({ "total": total, "page": self.number, "page_size": reported, "total_page": total.div_ceil(size), "data": data })
    }
}

/// A list without pages, in the chosen order.
pub(super) fn unpaged(mut records: Vec<Value>, form: &Form, random: &mut Random) -> Value {
    match form.order {
        Order::Ascending => {}
        Order::Descending => records.reverse(),
        Order::Shuffled | Order::ShuffledAcrossPages => random.shuffle(&mut records),
    }
    Value::Array(records)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn ids(page: &Value) -> Vec<i64> {
        page["data"].as_array().unwrap().iter().map(|id| id.as_i64().unwrap()).collect()
    }

    fn page(query: &str, form: &str, sequence: u64) -> Result<Value, Refusal> {
        let mut query = Query::parse(query)?;
        let page = query.page()?;
        query.finish()?;
        Ok(page.of((1..=5).map(Value::from).collect(), &form.parse().unwrap(), &mut Random::new(7, sequence)))
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
    #[case("page=1", "page_size: missing")]
    #[case("page=-1&page_size=2", "page: -1 is negative")]
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
