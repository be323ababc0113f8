//! What a configuration calls a thing.

use std::collections::{BTreeMap, BTreeSet};

use unicode_normalization::UnicodeNormalization;

use super::{Kind, draft::Draft};

/// Longest label made of a name.
const LONGEST: usize = 60;

/// Gives every draft a label that no other of its kind has, nor anything that is configured already (resource types
/// with labels). Things of the same name are told apart by their ids, so that a label does not depend on what else is
/// adopted with which filter, as long as names differ.
///
/// Returns the addresses that would have been given and are taken, beside those that were given instead.
pub(super) fn name(drafts: &mut [Draft], configured: &BTreeSet<(String, String)>) -> Vec<Namesake> {
    let is_configured = |kind: Kind, label: &str| configured.contains(&(kind.type_name().to_owned(), label.to_owned()));
    let mut namesakes = Vec::new();
    let mut of_this_name: BTreeMap<(Kind, String), usize> = BTreeMap::new();
    for draft in drafts.iter() {
        *of_this_name.entry((draft.kind, label(draft.kind, &draft.name, &draft.id))).or_default() += 1;
    }
    let mut taken: BTreeSet<(Kind, String)> = BTreeSet::new();
    for draft in drafts {
        let plain = label(draft.kind, &draft.name, &draft.id);
        let has_namesake = is_configured(draft.kind, &plain);
        let is_alone = of_this_name.get(&(draft.kind, plain.clone())) == Some(&1) && !has_namesake;
        let wanted = if is_alone { plain.clone() } else { format!("{plain}_{}", words(&draft.id)) };
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let is_free =
            |label: &String| !taken.contains(&(draft.kind, label.clone())) && !is_configured(draft.kind, label);
        let free = [wanted.clone()].into_iter().chain(numbered).find(is_free);
        draft.label = free.unwrap_or(wanted);
        taken.insert((draft.kind, draft.label.clone()));
        if has_namesake {
            namesakes.push(Namesake {
                given: draft.address(),
                taken: format!("{}.{plain}", draft.kind.type_name()),
                id: draft.id.clone(),
            });
        }
    }
    namesakes
}

/// A thing whose name is that of something which is configured already. It may be the same thing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Namesake {
    pub(super) given: String,
    pub(super) taken: String,
    pub(super) id: String,
}

/// A name in the manner of the field: lower case with underscores. What has no such form is called by its id.
fn label(kind: Kind, name: &str, id: &str) -> String {
    let of_name = words(name);
    let label = if of_name.is_empty() { words(id) } else { of_name };
    if label.starts_with(|first: char| first.is_ascii_alphabetic()) {
        label
    } else {
        format!("{}_{label}", kind.prefix())
    }
}

/// The letters and digits of ASCII in a text, or of what it is made of (an é is an e), with one underscore for all
/// between.
fn words(text: &str) -> String {
    let mut words = String::new();
    for character in text.nfkd().filter(|character| !is_mark(*character)) {
        if character.is_ascii_alphanumeric() {
            words.push(character.to_ascii_lowercase());
        } else if !words.is_empty() && !words.ends_with('_') {
            words.push('_');
        }
        if words.len() == LONGEST {
            break;
        }
    }
    words.trim_end_matches('_').to_owned()
}

fn is_mark(character: char) -> bool {
    unicode_normalization::char::is_combining_mark(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(things: &[(Kind, &str, &str)]) -> Vec<String> {
        labels_beside(&[], things)
    }

    fn labels_beside(configured: &[(&str, &str)], things: &[(Kind, &str, &str)]) -> Vec<String> {
        let configured = configured.iter().map(|(kind, label)| ((*kind).to_owned(), (*label).to_owned())).collect();
        let mut drafts: Vec<Draft> = things
            .iter()
            .map(|(kind, name, id)| Draft {
                kind: *kind,
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                label: String::new(),
                arguments: Vec::new(),
                untold: Vec::new(),
            })
            .collect();
        name(&mut drafts, &configured);
        drafts.into_iter().map(|draft| draft.label).collect()
    }

    #[test]
    fn a_label_is_the_name_as_far_as_it_can_be() {
        for (name, expected) in [
            ("Trainer-01", "trainer_01"),
            ("  a\"b ${oops}\n", "a_b_oops"),
            ("Café", "cafe"),
            ("4090", "instance_4090"),
            ("_x_", "x"),
            ("训练", "ins_0a1b"),
            ("🙂", "ins_0a1b"),
            ("", "ins_0a1b"),
        ] {
            assert_eq!(labels(&[(Kind::Instance, name, "ins-0a1b")]), [expected], "{name}");
        }
        assert_eq!(labels(&[(Kind::CloudDisk, "数据", "801")]), ["disk_801"]);
        assert_eq!(labels(&[(Kind::Instance, &"x".repeat(500), "ins-1")]), ["x".repeat(60)]);
    }

    #[test]
    fn things_of_one_name_are_told_apart() {
        let (disk, instance) = (Kind::CloudDisk, Kind::Instance);
        assert_eq!(labels(&[(disk, "a", "1"), (disk, "A", "2"), (instance, "a", "ins-1")]), ["a_1", "a_2", "a"]);
        assert_eq!(labels(&[(disk, "a", "1"), (disk, "a 1", "7"), (disk, "a", "2")]), ["a_1", "a_1_2", "a_2"]);
    }

    #[test]
    fn what_is_configured_keeps_its_label() {
        let things = [(Kind::Instance, "Monthly", "ins-1"), (Kind::CloudDisk, "monthly", "801")];
        assert_eq!(labels_beside(&[("damodel_instance", "monthly")], &things), ["monthly_ins_1", "monthly"]);
        let both = [("damodel_instance", "monthly"), ("damodel_instance", "monthly_ins_1"), ("other", "monthly")];
        assert_eq!(labels_beside(&both, &things), ["monthly_ins_1_2", "monthly"]);
    }

    proptest! {
        #[test]
        fn every_label_is_an_identifier_and_its_own(names in prop::collection::vec("\\PC{0,8}|[aA _-]{0,3}|.{0,4}", 0..12)) {
            let ids: Vec<String> = (0..names.len()).map(|number| number.to_string()).collect();
            let things: Vec<_> =
                names.iter().zip(&ids).map(|(name, id)| (Kind::CloudDisk, name.as_str(), id.as_str())).collect();
            let labels = labels(&things);
            for label in &labels {
                prop_assert!(label.starts_with(|first: char| first.is_ascii_lowercase()), "{label}");
                prop_assert!(label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{label}");
            }
            prop_assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len());
        }
    }
}
