//! Machines whose specification the apply chooses (`candidates`).

use serde::Serialize;

use super::values::{Seen, Values, told};

/// What an apply chooses a machine from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Candidates {
    /// How many there are.
    pub count: usize,
    /// Each, in order of preference, as far as it may be shown.
    pub options: Vec<String>,
    /// The one that is chosen, once that is known.
    pub choice: Option<String>,
}

impl Candidates {
    /// Those of an instance; none when it names its specification itself.
    pub(super) fn of(instance: &Values) -> Option<Self> {
        let candidates = instance.elements("candidates");
        (!candidates.is_empty()).then(|| Self {
            count: candidates.len(),
            options: candidates
                .iter()
                .map(|candidate| written(candidate).unwrap_or_else(|| "(sensitive)".to_owned()))
                .collect(),
            choice: written(instance),
        })
    }
}

/// A specification with its number of GPUs and its region: `2 × gpu.a1 in region-1`; none while it is open which one.
fn written(values: &Values) -> Option<String> {
    let spec = match (values.text(&["spec_type"]), values.number(&["spec_id"])) {
        (Some(spec), _) => spec.to_owned(),
        (None, Some(id)) => format!("spec_id {id}"),
        (None, None) => return None,
    };
    let count = values.number(&["gpu_num"]).map(|count| format!("{count} \u{d7} ")).unwrap_or_default();
    let region = match values.at(&["region"]) {
        Seen::Null => String::new(),
        Seen::Known(region) => format!(" in {}", region.as_str().unwrap_or_default()),
        seen => format!(" in {}", told(seen)),
    };
    Some(format!("{count}{spec}{region}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_choice_is_told_once_it_is_known() {
        let instance = json!({"candidates": [
            {"spec_id": 101, "spec_type": null, "region": null, "gpu_num": 1},
            {"spec_id": null, "spec_type": "gpu.b", "region": "r2", "gpu_num": 2}
        ], "spec_type": "gpu.b", "region": "r2", "gpu_num": 2});
        let known = Candidates::of(&Values::new(Some(&instance), None, None)).unwrap();
        assert_eq!(known.options, ["1 \u{d7} spec_id 101", "2 \u{d7} gpu.b in r2"]);
        assert_eq!((known.count, known.choice.as_deref()), (2, Some("2 \u{d7} gpu.b in r2")));
        let open = json!({"spec_type": true, "spec_id": true, "region": true});
        let mut instance = instance;
        instance["spec_type"] = json!(null);
        assert_eq!(Candidates::of(&Values::new(Some(&instance), Some(&open), None)).unwrap().choice, None);
        assert_eq!(Candidates::of(&Values::new(Some(&json!({"candidates": []})), None, None)), None);
    }
}
