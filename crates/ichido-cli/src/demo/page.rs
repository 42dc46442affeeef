//! Formats the scenario for a terminal of common width.

/// The maximum line width, unless a single word is wider.
const MAX_WIDTH: usize = 100;
/// The indentation of a chapter's lines.
const INDENT: &str = "   ";

/// Formats a paragraph of a chapter. Continuation lines are indented by two more.
pub(super) fn paragraph(text: &str) -> String {
    let mut out = String::from(INDENT);
    let mut width = INDENT.len();
    // Spaces are kept, so columns stay aligned; a line is broken only if it is too long.
    for (index, word) in text.split(' ').enumerate() {
        let more = word.chars().count() + usize::from(0 < index);
        if MAX_WIDTH < width + more && 0 < index {
            out.push('\n');
            out.push_str(INDENT);
            out.push_str("  ");
            width = INDENT.len() + 2;
        } else if 0 < index {
            out.push(' ');
            width += 1;
        }
        out.push_str(word);
        width += word.chars().count();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_stay_unchanged_and_long_ones_wrap_between_words() {
        assert_eq!(paragraph("order-1:   buy"), "   order-1:   buy");
        let long = ["word"; 60].join(" ");
        let shown = paragraph(&long);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.len() <= MAX_WIDTH), "{shown}");
        assert!(lines[1..].iter().all(|line| line.starts_with("     word")), "{shown}");
        assert_eq!(shown.split_whitespace().count(), 60);
        let wide = "x".repeat(200);
        assert_eq!(paragraph(&wide), format!("   {wide}"));
    }
}
