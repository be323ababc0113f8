//! Paths to attributes.

use std::fmt;

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into an attribute of an object, by name.
    Attribute(String),
    /// Into an element of a list, counted from 0.
    Index(i64),
    /// Into an element of a map, by key.
    Key(String),
}

impl Step {
    /// Into an element of a list.
    pub fn index(index: usize) -> Self {
        Self::Index(i64::try_from(index).unwrap_or(i64::MAX))
    }
}

/// The way from a whole configuration to the part that a diagnostic speaks of. Sets have no steps: a path stops at the
/// set (plugin protocol, messages).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Step>);

impl Path {
    /// The whole.
    pub fn root() -> Self {
        Self::default()
    }

    /// An attribute of the whole.
    pub fn to(name: &str) -> Self {
        Self::root().attribute(name)
    }

    /// One step further, into an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Self {
        self.step(Step::Attribute(name.to_owned()))
    }

    /// One step further, into an element of a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::index(index))
    }

    /// One step further, into an element of a map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// The steps, from the whole on.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

/// As a person writes it in HCL: `new_disks[0].size_gb`.
impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Attribute(name) if position == 0 => formatter.write_str(name)?,
                Step::Attribute(name) => write!(formatter, ".{name}")?,
                Step::Index(index) => write!(formatter, "[{index}]")?,
                Step::Key(key) => write!(formatter, "[{key:?}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_hcl() {
        let path = Path::to("new_disks").index(0).attribute("labels").key("a b");
        assert_eq!(path.to_string(), r#"new_disks[0].labels["a b"]"#);
    }
}
