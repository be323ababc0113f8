//! The table that `pending` prints.

const HEADINGS: [&str; 8] = ["ENTRY", "KIND", "NAME SENT", "PHASE", "AGE", "UID", "STATUS", "WHAT TO DO"];

/// A line of the table.
#[derive(Debug)]
pub(super) struct Row(pub(super) [String; 8]);

/// The rows below their headings, each column as wide as it must be.
pub(super) fn print(rows: &[Row]) -> String {
    let headings = Row(HEADINGS.map(str::to_owned));
    let lines: Vec<Row> = [&headings].into_iter().chain(rows).map(Row::printable).collect();
    let mut widths = [0; 8];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(&line.0) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells = line.0.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

impl Row {
    /// What a service or a file says may hold what a terminal obeys.
    fn printable(&self) -> Self {
        let clean = |cell: &String| cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        Self(self.0.each_ref().map(clean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_obeyed_by_no_terminal() {
        let row = Row(["instance-1", "instance", "a\u{1b}[2J", "sent", "2m", "-", "ok", "do"].map(str::to_owned));
        let text = print(&[row]);
        let expected = "ENTRY       KIND      NAME SENT  PHASE  AGE  UID  STATUS  WHAT TO DO\n\
                        instance-1  instance  a\u{fffd}[2J      sent   2m   -    ok      do\n";
        assert_eq!(text, expected);
    }
}
