//! Selection of one object among many, for the singular data sources. None or several matches is an error that lists
//! the objects.

use crate::framework::Diagnostic;

/// The number of objects that an error lists.
const LISTED: usize = 20;

/// The selection of one object.
pub(super) struct Selection<T> {
    /// The noun of the objects, in the singular.
    pub(super) what: &'static str,
    /// The handling of several matches.
    pub(super) takes: Takes<T>,
    /// The name of an object in an error.
    pub(super) label: fn(&T) -> String,
}

/// The handling of several matches.
pub(super) enum Takes<T> {
    /// The one with the latest time, in Unix seconds.
    MostRecent(fn(&T) -> Option<i64>),
    /// Several matches are an error.
    TheOnlyOne,
}

impl<T> Selection<T> {
    /// The selected object.
    pub(super) fn one<'a>(&self, all: &'a [T], matches: impl Fn(&T) -> bool) -> Result<&'a T, Diagnostic> {
        let found: Vec<&T> = all.iter().filter(|object| matches(object)).collect();
        match (found.as_slice(), &self.takes) {
            ([], _) => {
                let all: Vec<&T> = all.iter().collect();
                Err(Diagnostic::error(
                    format!("No {} matches", self.what),
                    format!("Available: {}.", self.listed(&all)),
                ))
            }
            ([one], _) => Ok(one),
            (several, Takes::MostRecent(time)) => several
                .iter()
                .copied()
                .max_by_key(|object| time(object))
                .ok_or_else(|| Diagnostic::error(format!("No {} matches", self.what), "")),
            (several, Takes::TheOnlyOne) => Err(Diagnostic::error(
                format!("Several {}s match", self.what),
                format!("These match: {}. Select one by its id, or narrow the filters.", self.listed(several)),
            )),
        }
    }

    fn listed(&self, objects: &[&T]) -> String {
        let names: Vec<String> = objects.iter().take(LISTED).map(|object| (self.label)(object)).collect();
        match objects.len() {
            0 => "none".to_owned(),
            more if more > LISTED => format!("{} and {} more", names.join(", "), more - LISTED),
            _ => names.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(takes: Takes<i64>) -> Selection<i64> {
        Selection { what: "number", takes, label: |number| number.to_string() }
    }

    #[test]
    fn one_is_found_and_none_or_several_are_listed() {
        let only = choice(Takes::TheOnlyOne);
        assert_eq!(only.one(&[1, 2], |number| *number == 2).unwrap(), &2);
        assert!(only.one(&[1, 2], |_| false).unwrap_err().detail.contains("1, 2"));
        assert!(only.one(&[1, 2, 3], |number| *number > 1).unwrap_err().detail.contains("2, 3"));
        let recent = choice(Takes::MostRecent(|number| Some(*number)));
        assert_eq!(recent.one(&[1, 3, 2], |_| true).unwrap(), &3);
    }
}
