//! The requests that a create may be made by, in order of preference.

use crate::api::create::Creation;

/// The possible requests of a create, in order of preference. Usually one; several if stock and price decide.
#[derive(Debug, Clone)]
pub struct Choices<C> {
    first: C,
    others: Vec<C>,
}

impl<C: Creation> Choices<C> {
    /// Several, the preferred one first.
    #[must_use]
    pub fn new(first: C, others: Vec<C>) -> Self {
        Self { first, others }
    }

    /// The preferred one; what does not differ between them may be taken from it.
    pub(super) fn preferred(&self) -> &C {
        &self.first
    }

    /// One by its place.
    pub(super) fn at(&self, place: usize) -> &C {
        self.iter().nth(place).unwrap_or(&self.first)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// Their names, where they have some.
    pub(super) fn candidates(&self) -> Vec<String> {
        self.iter().filter_map(Creation::candidate).collect()
    }

    /// The place of the one with this name.
    pub(super) fn place_of(&self, candidate: Option<&str>) -> Option<usize> {
        let candidate = candidate?;
        self.iter().position(|choice| choice.candidate().as_deref() == Some(candidate))
    }

    fn iter(&self) -> impl Iterator<Item = &C> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl<C> From<C> for Choices<C> {
    fn from(only: C) -> Self {
        Self { first: only, others: Vec::new() }
    }
}
