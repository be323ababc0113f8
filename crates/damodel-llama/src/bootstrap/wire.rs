//! The lines of a report, and their values.

use std::{collections::HashMap, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::kinds::Malformed;

/// The prefix of each line of a report, which distinguishes it from the output of the login.
const MARK: &str = "damodel-report/1 ";

/// The value that is a record: its variables are values themselves.
const RECORD: &str = "record";

/// The values of a report, by their names; those of records have the names of the program's variables.
#[derive(Debug, Default)]
pub(super) struct ReportValues(HashMap<String, String>);

impl ReportValues {
    /// A value; `None` if it is empty.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether there is such a value, empty or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(super) fn is_yes(&self, key: &str) -> bool {
        self.text(key) == Some("yes")
    }

    pub(super) fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, Malformed> {
        let unknown = |_| Malformed::Value { key: key.to_owned() };
        self.text(key).map(|value| value.parse().map_err(unknown)).transpose()
    }

    /// The values whose names have a prefix, by the rest of the names.
    pub(super) fn beginning(&self, prefix: &str) -> HashMap<String, String> {
        let values = self.0.iter();
        values.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone()))).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for ReportValues {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'a str)>>(values: T) -> Self {
        Self(values.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }
}

/// The values of the last report in the text, and whether it is whole. A value is plain after `=`, and base64 after
/// `:` and in the lines up to the next one of the report.
pub(super) fn read(text: &str) -> (ReportValues, bool) {
    let mut values = HashMap::new();
    let (mut has_end, mut is_sound) = (false, true);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(line) = line.strip_prefix(MARK) else { continue };
        match line.split_once(['=', ':']) {
            None => {
                has_end = line == "end";
                if line == "begin" {
                    values.clear();
                    is_sound = true;
                }
            }
            Some((key, value)) => {
                let is_plain = line.as_bytes().get(key.len()) == Some(&b'=');
                let mut value = value.to_owned();
                if !is_plain {
                    while let Some(more) = lines.next_if(|line| !line.starts_with(MARK)) {
                        value.push_str(more);
                    }
                    let decoded = STANDARD.decode(value);
                    is_sound &= decoded.is_ok();
                    value = String::from_utf8_lossy(&decoded.unwrap_or_default()).into_owned();
                }
                if key == RECORD {
                    let variables = assignments(&value);
                    is_sound &= variables.is_some();
                    values.extend(variables.unwrap_or_default());
                } else {
                    values.insert(key.to_owned(), value);
                }
            }
        }
    }
    (ReportValues(values), has_end && is_sound)
}

/// The assignments of a record: `name='value'`, where a quote in the value is `'\''`. `None` if the record is
/// incomplete.
pub(super) fn assignments(record: &str) -> Option<Vec<(String, String)>> {
    let mut rest = record.strip_suffix("# end\n")?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (name, quoted) = rest.split_once("='")?;
        let mut value = String::new();
        let mut after = quoted;
        loop {
            let (part, next) = after.split_once('\'')?;
            value.push_str(part);
            match next.strip_prefix("\\''") {
                Some(more) => {
                    value.push('\'');
                    after = more;
                }
                None => {
                    rest = next.strip_prefix('\n')?;
                    break;
                }
            }
        }
        found.push((name.to_owned(), value));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_the_shell_wrote_it() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let read = assignments("a='it'\\''s\nb='\\'''\nb=''\n# end\n");
        assert_eq!(read, Some(pairs(&[("a", "it's\nb='"), ("b", "")])));
        for cut in ["a='b'\n", "a='b\n# end\n", "a=\0# end\n", "", "a='b'# end\n"] {
            assert_eq!(assignments(cut), None, "{cut:?}");
        }
        assert_eq!(assignments("# end\n"), Some(Vec::new()));
    }
}
