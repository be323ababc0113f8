//! The possible requests of a create.

use std::iter;

use crate::api::Creation;

/// The possible requests of a create, in order of preference. Usually one; several if stock and price decide.
#[derive(Debug, Clone)]
pub struct Choices<C> {
    first: C,
    others: Vec<C>,
}

impl<C: Creation> Choices<C> {
    /// Several choices, the preferred one first.
    #[must_use]
    pub fn new(first: C, others: Vec<C>) -> Self {
        Self { first, others }
    }

    /// The choice with this index. Fields that do not differ between choices are read from the first one.
    pub(super) fn at(&self, place: usize) -> &C {
        self.iter().nth(place).unwrap_or(&self.first)
    }

    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// The candidate names of the choices that have one.
    pub(super) fn candidates(&self) -> Vec<String> {
        self.iter().filter_map(Creation::candidate).collect()
    }

    /// The index of the choice with this name.
    pub(super) fn place_of(&self, candidate: Option<&str>) -> Option<usize> {
        let candidate = candidate?;
        self.iter().position(|choice| choice.candidate().as_deref() == Some(candidate))
    }

    fn iter(&self) -> impl Iterator<Item = &C> {
        iter::once(&self.first).chain(&self.others)
    }
}

impl<C> From<C> for Choices<C> {
    fn from(only: C) -> Self {
        Self { first: only, others: Vec::new() }
    }
}
