//! Tables for people: columns as wide as their widest text.

use ichido_core::text::visible;

/// A table with its head. Control characters and invisible ones are shown as escapes, so that what a client sent cannot steer a terminal.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let shown = |row: [String; N]| row.map(|text| visible(&text));
    let all: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows.map(shown)).collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in &all {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(text, width)| format!("{text:width$}")).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_control_characters_are_escaped() {
        let rows = [["a".to_owned(), "long".to_owned()], ["bcd".to_owned(), "\u{1b}[2J".to_owned()]];
        assert_eq!(table(["X", "Y"], rows.into_iter()), "X    Y\na    long\nbcd  \\u{1b}[2J\n");
    }
}
