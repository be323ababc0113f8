//! Every wrong value of every argument: an error on its attribute that contains the rule.

mod cross;
mod values;

use std::fmt::Write;

use crate::support::terraform::{Diagnostic, Workspace, each_workspace};

/// A wrong block of a configuration, and its expected error.
pub(super) struct Case {
    /// The header of the block, with `NAME` for its name.
    header: &'static str,
    /// Its lines.
    lines: Vec<String>,
    /// The attribute on whose line the error is; `None` if the attribute is not set and the error is on the block.
    attribute: Option<String>,
    /// A part of the error's text.
    says: String,
}

const INSTANCE: &str = "resource \"damodel_instance\" \"NAME\"";
const IMAGES: &str = "data \"damodel_public_images\" \"NAME\"";
const PROVIDER: &str = "provider \"damodel\"";
const SPECS: &str = "data \"damodel_specs\" \"NAME\"";

impl Case {
    /// An instance with one wrong argument.
    pub(super) fn instance(attribute: &str, value: &str, says: &str) -> Self {
        Self::instance_with(&[(attribute, value)], Some(attribute), says)
    }

    /// An instance with these arguments changed.
    pub(super) fn instance_with(changed: &[(&str, &str)], attribute: Option<&str>, says: &str) -> Self {
        let usual = [("spec_id", "103"), ("gpu_num", "1"), ("image_id", "902"), ("image_type", "\"public\"")];
        let kept = usual.iter().filter(|(name, _)| changed.iter().all(|(other, _)| other != name));
        let lines = kept.chain(changed).filter(|(_, value)| !value.is_empty());
        Self {
            header: INSTANCE,
            lines: lines.map(|(name, value)| format!("{name} = {value}")).collect(),
            attribute: attribute.map(str::to_owned),
            says: says.to_owned(),
        }
    }

    fn other(header: &'static str, lines: &[&str], attribute: &str, says: &str) -> Self {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Self { header, lines, attribute: Some(attribute.to_owned()), says: says.to_owned() }
    }

    pub(super) fn provider(attribute: &str, value: &str, says: &str) -> Self {
        Self::other(PROVIDER, &[&format!("{attribute} = {value}")], attribute, says)
    }

    pub(super) fn specs(attribute: &str, value: &str, says: &str) -> Self {
        Self::other(SPECS, &[&format!("{attribute} = {value}")], attribute, says)
    }

    pub(super) fn images(attribute: &str, value: &str, says: &str) -> Self {
        Self::other(IMAGES, &[&format!("{attribute} = {value}")], attribute, says)
    }
}

/// A configuration of all cases, and the lines of each.
fn configuration(cases: &[Case]) -> (String, Vec<std::ops::RangeInclusive<u64>>) {
    let mut text = "terraform {\n  required_providers {\n    damodel = { source = \"damodel/damodel\" }\n  }\n}\n\
                    provider \"damodel\" {\n  region = \"cn-east-1\"\n}\n"
        .to_owned();
    let mut spans = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let first = text.lines().count() as u64 + 1;
        writeln!(text, "{} {{", case.header.replace("NAME", &format!("case_{number}"))).unwrap();
        for line in &case.lines {
            writeln!(text, "  {line}").unwrap();
        }
        if case.header == PROVIDER {
            writeln!(text, "  alias = \"case_{number}\"").unwrap();
        }
        writeln!(text, "}}").unwrap();
        spans.push(first..=text.lines().count() as u64);
        if case.header == PROVIDER {
            // Terraform does not validate a provider without resources.
            writeln!(text, "data \"damodel_specs\" \"of_{number}\" {{\n  provider = damodel.case_{number}\n}}")
                .unwrap();
        }
    }
    (text, spans)
}

/// Checks that each case has its error, and that there are no others.
pub(super) fn check(cases: &[Case], ask: impl Fn(&Workspace<'_>) -> Vec<Diagnostic>) {
    each_workspace(|site, workspace| {
        let (text, spans) = configuration(cases);
        workspace.write(&text);
        let said = ask(workspace);
        let mut wrong = Vec::new();
        for (case, span) in cases.iter().zip(&spans) {
            let found: Vec<_> = said
                .iter()
                .filter(|said| said.is_error() && said.line.is_some_and(|line| span.contains(&line)))
                .map(|said| (said.attribute.clone(), said.text()))
                .collect();
            let is_right = found.len() == 1 && found[0].0 == case.attribute && found[0].1.contains(&case.says);
            if !is_right {
                wrong.push(format!(
                    "{:?} should be an error on {:?} with {:?}: {found:#?}",
                    case.lines, case.attribute, case.says
                ));
            }
        }
        let strays: Vec<_> = said
            .iter()
            .filter(|said| {
                said.is_error() && !said.line.is_some_and(|line| spans.iter().any(|span| span.contains(&line)))
            })
            .collect();
        assert!(wrong.is_empty() && strays.is_empty(), "{}\n{strays:#?}", wrong.join("\n"));
        assert_eq!(site.ledger().requests.len(), 0, "the service was asked");
    });
}

/// The diagnostics of `validate`.
pub(super) fn validate(workspace: &Workspace<'_>) -> Vec<Diagnostic> {
    Diagnostic::of_document(&workspace.run(&["validate", "-json"]).stdout)
}

/// The diagnostics of `plan`.
pub(super) fn plan(workspace: &Workspace<'_>) -> Vec<Diagnostic> {
    workspace.try_plan(&[])
}
