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
            attribute: diagnostic.path.as_ref().and_then(path),
        })
        .collect()
}

/// Paths as messages, without those that point at nothing in particular.
pub(in crate::protocol) fn paths(paths: &[Path]) -> Vec<AttributePath> {
    paths.iter().filter_map(path).collect()
}

/// A path as a message; none for the whole, since a path begins with a name.
fn path(path: &Path) -> Option<AttributePath> {
    let [Step::Attribute(_), ..] = path.steps() else {
        return None;
    };
    let steps = path
        .steps()
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
        said.warning_at(Path::to("disks").index(2).key("k"), "S", "D");
        said.error("E", "");
        let messages = diagnostics(said);
        assert_eq!(messages[0].severity, 2);
        let steps = messages[0].attribute.as_ref().unwrap().steps.clone();
        let selectors: Vec<_> = steps.into_iter().flat_map(|step| step.selector).collect();
        assert_eq!(
            selectors,
            [
                Selector::AttributeName("disks".into()),
                Selector::ElementKeyInt(2),
                Selector::ElementKeyString("k".into()),
            ]
        );
        assert_eq!((messages[1].severity, &messages[1].attribute), (1, &None));
    }

    #[test]
    fn the_whole_has_no_path() {
        assert_eq!(paths(&[Path::root(), Path::to("a")]).len(), 1);
    }
}
