//! Which elements of two sets belong together. Sets have no keys, so that only the values can tell.

use super::value::Value;

/// For each element, its counterpart in a set; null for one that has none.
pub(super) fn counterparts<'a>(
    elements: &[Value],
    set: &'a Value,
    agrees: &dyn Fn(&Value, &Value) -> bool,
) -> Vec<&'a Value> {
    let Value::Set(others) = set else {
        return vec![&Value::Null; elements.len()];
    };
    matching(elements, others, agrees)
        .into_iter()
        .map(|found| found.and_then(|index| others.get(index)).unwrap_or(&Value::Null))
        .collect()
}

/// For each element the index of its own counterpart, so that as many as possible have one (augmenting paths). Where two want the
/// same, the one that is equal has it, else the one that says more: an element that leaves all to the provider would agree with any.
pub(super) fn matching(
    elements: &[Value],
    others: &[Value],
    agrees: &dyn Fn(&Value, &Value) -> bool,
) -> Vec<Option<usize>> {
    let candidates: Vec<Vec<usize>> = elements
        .iter()
        .map(|element| {
            let equal = others.iter().enumerate().filter(|(_, other)| element == *other);
            let agreeing = others.iter().enumerate().filter(|(_, other)| element != *other && agrees(element, other));
            equal.chain(agreeing).map(|(index, _)| index).collect()
        })
        .collect();
    let mut owners = vec![None; others.len()];
    let mut order: Vec<usize> = (0..elements.len()).collect();
    order.sort_by_key(|&index| {
        let element = elements.get(index);
        let is_equal = element.is_some_and(|element| others.contains(element));
        (!is_equal, element.map_or(0, open_parts))
    });
    for element in order {
        augment(element, &candidates, &mut owners, &mut vec![false; others.len()]);
    }
    let mut found = vec![None; elements.len()];
    for (index, owner) in owners.into_iter().enumerate() {
        if let Some(slot) = owner.and_then(|owner: usize| found.get_mut(owner)) {
            *slot = Some(index);
        }
    }
    found
}

/// How many parts are null.
fn open_parts(value: &Value) -> usize {
    match value {
        Value::Null => 1,
        Value::List(elements) | Value::Set(elements) | Value::Tuple(elements) => elements.iter().map(open_parts).sum(),
        Value::Map(elements) | Value::Object(elements) => elements.values().map(open_parts).sum(),
        Value::Bool(_) | Value::Dynamic(_) | Value::Number(_) | Value::String(_) | Value::Unknown => 0,
    }
}

/// Finds a counterpart for one element, moving others to another of theirs where that is needed.
fn augment(element: usize, candidates: &[Vec<usize>], owners: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    for &candidate in candidates.get(element).into_iter().flatten() {
        let Some(seen_before) = seen.get_mut(candidate) else {
            continue;
        };
        if std::mem::replace(seen_before, true) {
            continue;
        }
        let free = match owners.get(candidate).copied().flatten() {
            None => true,
            Some(owner) => augment(owner, candidates, owners, seen),
        };
        if let (true, Some(slot)) = (free, owners.get_mut(candidate)) {
            *slot = Some(element);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_moves_over_for_one_that_has_no_other_choice() {
        let elements = [Value::Null, Value::from("x")];
        let others = [Value::from("x"), Value::from("y")];
        let agrees = |element: &Value, other: &Value| element.is_null() || element == other;
        assert_eq!(matching(&elements, &others, &agrees), [Some(1), Some(0)]);
    }

    #[test]
    fn an_element_that_agrees_with_any_takes_none_from_its_equal() {
        let elements = [Value::Null, Value::from("x")];
        let agrees = |element: &Value, other: &Value| element.is_null() || element == other;
        let found = matching(&elements, &["x".into()], &agrees);
        assert_eq!(found, [None, Some(0)]);
    }

    #[test]
    fn what_agrees_with_nothing_has_no_counterpart() {
        let elements = [Value::from("a"), Value::from("b")];
        let set = Value::set(vec!["b".into(), "c".into()]);
        let found = counterparts(&elements, &set, &|a, b| a == b);
        assert_eq!(found, [&Value::Null, &Value::from("b")]);
    }
}
