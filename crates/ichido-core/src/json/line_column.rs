//! Places in a text, as a person counts them.

use std::fmt;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line; a line ends with a line feed.
    pub line: usize,
    /// How many characters of the line stand before the place, plus one.
    pub column: usize,
}

impl LineColumn {
    /// The place of the byte at `position`; the place after the end for any position beyond it.
    pub fn of(text: &[u8], position: usize) -> Self {
        let before = &text[..position.min(text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let line = before.split(|byte| *byte == b'\n').count();
        // Bytes that go on with a character do not begin one.
        let characters = before[line_start..].iter().filter(|byte| !matches!(byte, 0x80..=0xbf)).count();
        Self { line, column: characters + 1 }
    }
}

/// `line:column`, as compilers print it and editors read it.
impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}
