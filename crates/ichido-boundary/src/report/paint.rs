//! Colours for terminals.

use ichido_core::text::paint::Paint;

/// Colours the headings and labels of a report, without changing its text.
pub fn colourized(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    // Only headings start at the margin with a rule's id; text from files is indented.
    let (colour, split) = match line {
        _ if line.starts_with("error ICH-") => (Paint::Red, line.find(':')),
        _ if line.starts_with("warning ICH-") => (Paint::Yellow, line.find(':')),
        _ if line.starts_with("allowed ICH-") => (Paint::Faint, line.find(':')),
        _ if line.starts_with("  ") => (Paint::Faint, line.find(':').map(|colon| colon + 1)),
        _ => return line.to_owned(),
    };
    let (head, rest) = line.split_at(split.unwrap_or(0));
    format!("{}{rest}", colour.on(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "error ICH-B002: A key: needed\n  where: a.json:1:2 (/http)\n  what:  error ICH-B001: \
                          not me\n  help:  Do.\n\nwarning ICH-B090: Logs\n\n1 file: 1 error, 1 warning\n";

    #[test]
    fn only_headings_and_labels_are_coloured() {
        let coloured = colourized(REPORT);
        assert!(coloured.starts_with("\u{1b}[1;31merror ICH-B002\u{1b}[0m: A key: needed\n"), "{coloured}");
        assert!(coloured.contains("\u{1b}[2m  what:\u{1b}[0m  error ICH-B001: not me\n"), "{coloured}");
        assert!(coloured.contains("\u{1b}[1;33mwarning ICH-B090\u{1b}[0m: Logs\n"), "{coloured}");
        assert!(coloured.ends_with("\n\n1 file: 1 error, 1 warning\n"), "{coloured}");
    }

    #[test]
    fn colouring_keeps_every_word() {
        let codes = ["\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[2m", "\u{1b}[0m"];
        let bare = codes.iter().fold(colourized(REPORT), |text, code| text.replace(code, ""));
        assert_eq!(bare, REPORT);
    }
}
