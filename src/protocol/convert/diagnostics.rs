use crate::{
    framework::{Diagnostics, Path, Severity, Step},
    protocol::tfplugin6::{
        AttributePath, Diagnostic, attribute_path, attribute_path::step::Selector, diagnostic::Severity as WireSeverity,
    },
};

/// Diagnostics as messages. The severity is always set: the core drops those without one in silence
/// (plugin protocol, field notes).
pub(in crate::protocol) fn diagnostics(diagnostics: Diagnostics) -> Vec<Diagnostic> {
    diagnostics
        .into_iter()
        .map(|diagnostic| Diagnostic {
            severity: match diagnostic.severity {
                Severity::Error => WireSeverity::Error,
                Severity::Warning => WireSeverity::Warning,
            }
            .into(),
            summary: diagnostic.summary,
            detail: diagnostic.detail,
            attribute: diagnostic.path.as_ref().and_then(|whole| path(found_by_the_core(whole.steps()))),
        })
        .collect()
}

/// As much of a path as the core finds in a configuration: it knows the elements of an attribute, and shows the head of the whole
/// block for anything within one (plugin protocol, messages).
fn found_by_the_core(steps: &[Step]) -> &[Step] {
    let element = steps.iter().position(|step| !matches!(step, Step::Attribute(_)));
    element.and_then(|element| steps.get(..=element)).unwrap_or(steps)
}

/// Paths as messages, without those that point at nothing in particular.
pub(in crate::protocol) fn paths(paths: &[Path]) -> Vec<AttributePath> {
    paths.iter().filter_map(|whole| path(whole.steps())).collect()
}

/// A path as a message; none for the whole, since a path begins with a name.
fn path(steps: &[Step]) -> Option<AttributePath> {
    let [Step::Attribute(_), ..] = steps else {
        return None;
    };
    let steps = steps
        .iter()
        .map(|step| attribute_path::Step {
            selector: Some(match step {
                Step::Attribute(name) => Selector::AttributeName(name.clone()),
                Step::Index(index) => Selector::ElementKeyInt(*index),
                Step::Key(key) => Selector::ElementKeyString(key.clone()),
            }),
        })
        .collect();
    Some(AttributePath { steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_has_its_severity_and_path() {
        let mut said = Diagnostics::new();
        said.warning_at(Path::to("disks").index(2).attribute("size"), "S", "D");
        said.error("E", "");
        let messages = diagnostics(said);
        assert_eq!(messages[0].severity, 2);
        let steps = messages[0].attribute.as_ref().unwrap().steps.clone();
        let selectors: Vec<_> = steps.into_iter().flat_map(|step| step.selector).collect();
        assert_eq!(
            selectors,
            [Selector::AttributeName("disks".into()), Selector::ElementKeyInt(2)],
            "the core shows an element, and not what is in it"
        );
        assert_eq!((messages[1].severity, &messages[1].attribute), (1, &None));
    }

    #[test]
    fn the_whole_has_no_path() {
        assert_eq!(paths(&[Path::root(), Path::to("a")]).len(), 1);
    }
}
