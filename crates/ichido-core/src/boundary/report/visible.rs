//! Words of a file or a path, for a terminal.

/// The text with everything escaped that a terminal would obey or not show: control characters, line breaks, marks that
/// turn the direction of writing, spaces without width.
pub fn visible(text: &str) -> String {
    let mut shown = String::new();
    // Quotes and backslashes are escaped by the library too, for the sake of source code; here they only disturb.
    for piece in text.split_inclusive(['"', '\'', '\\']) {
        let end = piece.chars().next_back().filter(|end| ['"', '\'', '\\'].contains(end));
        let words = end.and_then(|end| piece.strip_suffix(end)).unwrap_or(piece);
        shown.extend(words.escape_debug());
        shown.extend(end);
    }
    shown
}
