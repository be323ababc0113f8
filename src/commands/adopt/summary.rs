//! What `adopt` reports at its end.

use std::{fmt, path::PathBuf};

use super::{Kind, draft::Draft, inventory::LeftOut, label::Namesake};
use crate::provider::ADDRESS;

/// What was written, and what to do next.
#[derive(Debug)]
pub(super) struct Summary {
    directory: PathBuf,
    pub(super) drafts: Vec<Draft>,
    /// The names of the files.
    pub(super) files: Vec<String>,
    /// Whether the configuration there requires providers, and this one not.
    pub(super) lacks_requirement: bool,
    /// Things that are called like what is configured there already.
    pub(super) namesakes: Vec<Namesake>,
    pub(super) left_out: Vec<LeftOut>,
    /// How many things were left out because they have no region.
    pub(super) without_region: usize,
}

impl Summary {
    /// Of nothing yet.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            drafts: Vec::new(),
            files: Vec::new(),
            lacks_requirement: false,
            namesakes: Vec::new(),
            left_out: Vec::new(),
            without_region: 0,
        }
    }

    fn counts(&self) -> String {
        let count = |kind: Kind| (kind, self.drafts.iter().filter(|draft| draft.kind == kind).count());
        let some = Kind::asked(&[]).into_iter().map(count).filter(|(_, count)| *count > 0);
        some.map(|(kind, count)| counted(count, kind.noun())).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display();
        if self.drafts.is_empty() {
            writeln!(formatter, "Nothing to adopt: the account has nothing that was asked for. No file was written.")?;
        } else {
            writeln!(formatter, "Wrote {} to {directory}: {}.", self.counts(), self.files.join(", "))?;
        }
        for draft in self.drafts.iter().filter(|draft| !draft.untold.is_empty()) {
            let names: Vec<&str> = draft.untold.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            writeln!(formatter, "{}: the service never tells {names}; write what is true there.", draft.address())?;
        }
        for Namesake { given, taken, id } in &self.namesakes {
            writeln!(
                formatter,
                "{given}: {taken} is in the configuration already. If that is {} too, remove the new one before the \
                 apply.",
                printable(id)
            )?;
        }
        if self.without_region > 0 {
            let things = counted(self.without_region, "thing");
            writeln!(formatter, "Left out {things} of no known region, since --region was given.")?;
        }
        for left in &self.left_out {
            writeln!(formatter, "Left out {} {}: {}", left.kind.noun(), printable(&left.id), printable(&left.why))?;
        }
        if self.lacks_requirement {
            writeln!(
                formatter,
                "Add damodel = {{ source = \"{ADDRESS}\" }} to the required_providers that are there."
            )?;
        }
        if !self.drafts.is_empty() {
            let number = self.drafts.len();
            writeln!(
                formatter,
                "\nNext, in {directory}:\n  terraform init\n  terraform plan    # {number} to import, 0 to add, 0 to \
                 change, 0 to destroy\n  terraform apply\nAfter that, imports.tf can go."
            )?;
        }
        Ok(())
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// What a service says may hold what a terminal obeys.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_told_and_obeyed_by_no_terminal() {
        let left = LeftOut { kind: Kind::CloudDisk, id: "801".to_owned(), why: "size\u{1b}[2J".to_owned() };
        let summary =
            Summary { left_out: vec![left], without_region: 2, ..Summary::new(PathBuf::from("out")) }.to_string();
        let expected = "Nothing to adopt: the account has nothing that was asked for. No file was written.\n\
                        Left out 2 things of no known region, since --region was given.\n\
                        Left out cloud disk 801: size\u{fffd}[2J\n";
        assert_eq!(summary, expected);
    }
}
