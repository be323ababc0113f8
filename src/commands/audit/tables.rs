//! The list for people: a table for a terminal, or one of Markdown.

use std::fmt::Write as _;

use bigdecimal::{BigDecimal, RoundingMode};
use jiff::SignedDuration;

use super::holders::{Audit, Holder, Object};
use crate::review::{code, visible};

const TITLES: [&str; 9] = ["KIND", "ID", "NAME", "REGION", "STATUS", "AGE", "HOURLY", "MONTHLY", "HELD BY"];

/// The columns that are numbers.
const NUMBERS: [usize; 2] = [6, 7];

/// The longest text in a cell, in characters.
const LONGEST: usize = 100;

/// For a terminal.
pub(super) fn plain(audit: &Audit) -> String {
    let mut rows = vec![TITLES.map(str::to_owned)];
    rows.extend(sorted(audit).into_iter().map(|object| row(object, |text| visible(text, LONGEST))));
    let mut widths = [0; TITLES.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if NUMBERS.contains(&column) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    let _ = writeln!(text, "\n{}", summary(audit));
    for missing in &audit.missing {
        let [id, address, source] = [&missing.id, &missing.address, &missing.source].map(|text| visible(text, LONGEST));
        let _ = writeln!(
            text,
            "Missing: {address} in {source} holds {} {id}, which the account lacks.",
            missing.kind.noun()
        );
    }
    text
}

/// For a comment.
pub(super) fn markdown(audit: &Audit) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("## Account audit\n\n{}\n\n", summary(audit));
    text.push_str(&line(&TITLES.map(str::to_lowercase)));
    let rule = |column: usize| if NUMBERS.contains(&column) { "---:" } else { "---" }.to_owned();
    text.push_str(&line(&(0..TITLES.len()).map(rule).collect::<Vec<_>>()));
    for object in sorted(audit) {
        text.push_str(&line(&row(object, code)));
    }
    if !audit.missing.is_empty() {
        let _ = write!(text, "\n### Missing in the account ({})\n\n", audit.missing.len());
        text.push_str(&line(&["kind", "id", "address", "state"].map(str::to_owned)));
        text.push_str(&line(&["---"; 4].map(str::to_owned)));
        for missing in &audit.missing {
            let [id, address, source] = [&missing.id, &missing.address, &missing.source].map(|text| code(text));
            text.push_str(&line(&[missing.kind.noun().to_owned(), id, address, source]));
        }
    }
    text
}

/// What several addresses hold, a line each.
pub(super) fn duplicates(audit: &Audit) -> impl Iterator<Item = String> {
    audit.duplicates.iter().map(|duplicate| {
        let place = |place: &super::holders::Place| {
            format!("{} in {}", visible(&place.address, LONGEST), visible(&place.source, LONGEST))
        };
        let places: Vec<String> = duplicate.holders.iter().map(place).collect();
        let id = visible(&duplicate.id, LONGEST);
        format!("{} {id} is held more than once: {}", duplicate.kind.noun(), places.join(", "))
    })
}

/// What nobody holds before everything else.
fn sorted(audit: &Audit) -> Vec<&Object> {
    let mut objects: Vec<&Object> = audit.objects.iter().collect();
    objects.sort_by_key(|object| object.holder);
    objects
}

fn row(object: &Object, shown: impl Fn(&str) -> String) -> [String; 9] {
    let known =
        |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map_or_else(|| "-".to_owned(), &shown);
    let price = |price: &Option<BigDecimal>, digits: i64| {
        price.as_ref().map_or_else(|| "-".to_owned(), |price| rounded(price, digits))
    };
    let age = |seconds: i64| format!("{:#}", SignedDuration::from_secs(seconds));
    let holder = match object.holder {
        Holder::Nobody => "nobody".to_owned(),
        Holder::Pending => format!("pending in {}", known(&object.source)),
        Holder::State => format!("{} in {}", known(&object.address), known(&object.source)),
    };
    [
        object.kind.noun().to_owned(),
        shown(&object.id),
        known(&object.name),
        known(&object.region),
        known(&object.status),
        object.age_seconds.map_or_else(|| "-".to_owned(), age),
        price(&object.hourly, 4),
        price(&object.monthly, 2),
        holder,
    ]
}

fn rounded(price: &BigDecimal, digits: i64) -> String {
    price.with_scale_round(digits, RoundingMode::HalfUp).to_plain_string()
}

fn summary(audit: &Audit) -> String {
    let sum = |holder: Option<Holder>| {
        let meant = audit.objects.iter().filter(|object| holder.is_none_or(|holder| object.holder == holder));
        let count = meant.clone().count();
        let monthly: BigDecimal = meant.filter_map(|object| object.monthly.as_ref()).sum();
        let objects = if count == 1 { "object" } else { "objects" };
        format!("{count} {objects} ({} a month)", rounded(&monthly, 2))
    };
    format!(
        "{} in the account; held by nobody: {}. Cloud disks and images have no known price.",
        sum(None),
        sum(Some(Holder::Nobody))
    )
}
