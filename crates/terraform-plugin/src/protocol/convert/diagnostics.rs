//! Diagnostics as messages.

use crate::{
    framework::{Diagnostics, Path, PathStep, Severity, timeouts::TIMEOUTS},
    protocol::tfplugin6::{
        AttributePath, Diagnostic, attribute_path, attribute_path::step::Selector, diagnostic::Severity as WireSeverity,
    },
};

/// Diagnostics as messages. The severity is always set: the core silently drops diagnostics without one (plugin
/// protocol, field notes).
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
            attribute: diagnostic.path.as_ref().and_then(|whole| path(&found_by_every_core(whole.steps()))),
        })
        .collect()
}

/// A path in a form that every core can locate in a configuration (plugin protocol, Messages).
///
/// Terraform up to 1.14 and OpenTofu support three forms: a name, a name with one index, and a name within a block.
/// They find an attribute of an object by key, like an element of a map; as a name it would be looked up at the top of
/// the resource. Newer cores follow a whole path, as far as there is something to follow. So a deeper path is whole,
/// and then begins again up to its second step: newer cores stop where the whole ends, and the others look at the last
/// two steps only (tfdiags, contextual.go).
fn found_by_every_core(steps: &[PathStep]) -> Vec<PathStep> {
    let by_key = |step: &PathStep| match step {
        PathStep::Attribute(name) => PathStep::Key(name.clone()),
        other => other.clone(),
    };
    match steps {
        [PathStep::Attribute(block), ..] if block == TIMEOUTS => steps.to_vec(),
        [first, second] => vec![first.clone(), by_key(second)],
        [first, second, ..] => [steps, &[first.clone(), by_key(second)]].concat(),
        _ => steps.to_vec(),
    }
}

/// Paths as messages, without those of the whole object.
pub(in crate::protocol) fn paths(paths: &[Path]) -> Vec<AttributePath> {
    paths.iter().filter_map(|whole| path(whole.steps())).collect()
}

/// A path as a message; `None` for the whole object, because a path begins with a name.
fn path(steps: &[PathStep]) -> Option<AttributePath> {
    let [PathStep::Attribute(_), ..] = steps else {
        return None;
    };
    let steps = steps
        .iter()
        .map(|step| attribute_path::Step {
            selector: Some(match step {
                PathStep::Attribute(name) => Selector::AttributeName(name.clone()),
                PathStep::Index(index) => Selector::ElementKeyInt(*index),
                PathStep::Key(key) => Selector::ElementKeyString(key.clone()),
            }),
        })
        .collect();
    Some(AttributePath { steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_has_its_severity() {
        let mut said = Diagnostics::new();
        said.warning_at(Path::to("disks"), "S", "D");
        said.error("E", "");
        let messages = diagnostics(said);
        assert_eq!((messages[0].severity, messages[1].severity, &messages[1].attribute), (2, 1, &None));
    }

    #[test]
    fn a_path_has_the_form_that_every_core_finds() {
        let found = |whole: Path| found_by_every_core(whole.steps());
        let steps = |whole: Path| whole.steps().to_vec();
        assert_eq!(found(Path::to("port")), steps(Path::to("port")));
        assert_eq!(found(Path::to("ssh").attribute("port")), steps(Path::to("ssh").key("port")));
        let deep = Path::to("ssh").attribute("bastion").attribute("port");
        assert_eq!(found(deep.clone()), steps(deep.attribute("ssh").key("bastion")));
        let size = Path::to("disks").index(2).attribute("size");
        assert_eq!(found(size.clone()), steps(size.attribute("disks").index(2)));
        let create = Path::to(TIMEOUTS).attribute("create");
        assert_eq!(found(create.clone()), steps(create));
    }

    #[test]
    fn the_whole_has_no_path() {
        assert_eq!(paths(&[Path::root(), Path::to("a")]).len(), 1);
    }
}
