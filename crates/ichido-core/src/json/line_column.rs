//! Positions in a text, as people count them.

use std::fmt;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line; it ends with a line feed.
    pub line: usize,
    /// The number of characters in the line before the position, plus one.
    pub column: usize,
}

impl LineColumn {
    /// Returns the line and column of the byte at `position`.
    ///
    /// Any position beyond the end gives those of the end.
    pub fn new(text: &[u8], position: usize) -> Self {
        let before = &text[..position.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let line = before.split(|byte| *byte == b'\n').count();
        // Continuation bytes do not begin a character.
        let characters = before[line_start..].iter().filter(|byte| !matches!(byte, 0x80..=0xbf)).count();
        Self { line, column: characters + 1 }
    }
}

/// Formats `line:column`, as compilers print it and editors read it.
impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
