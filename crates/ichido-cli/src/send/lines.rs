//! Reads lines from a file or from standard input.
//!
//! Guarantee: at most [`MAX_LINE_BYTES`] bytes of a line are in memory. A longer line is skipped and reported.
//! Waiting for the next line can be cancelled and resumed without losing data.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

use super::line::MAX_LINE_BYTES;

/// Reads lines.
pub(super) struct LineReader {
    from: Box<dyn AsyncBufRead + Send + Unpin>,
    /// The part of the next line that has been read.
    partial: Vec<u8>,
    is_too_long: bool,
    /// The number of lines read.
    count: u64,
    /// The number of bytes read.
    bytes: u64,
}

/// A line with its number, starting at 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputLine {
    pub(super) number: u64,
    /// The text without its line break; `None` if the line is too long.
    pub(super) text: Option<Vec<u8>>,
    /// The bytes read up to the end of this line.
    pub(super) bytes: u64,
}

impl LineReader {
    pub(super) fn new(from: impl AsyncBufRead + Send + Unpin + 'static) -> Self {
        Self { from: Box::new(from), partial: Vec::new(), is_too_long: false, count: 0, bytes: 0 }
    }

    /// Returns the next line that is not blank; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let found = self.from.fill_buf().await?;
            let (is_end, line_break) = (found.is_empty(), found.iter().position(|byte| *byte == b'\n'));
            let piece = &found[..line_break.unwrap_or(found.len())];
            let room = MAX_LINE_BYTES - self.partial.len();
            self.is_too_long |= room < piece.len();
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            let used = piece.len() + usize::from(line_break.is_some());
            self.from.consume(used);
            self.bytes += used as u64;
            if line_break.is_none() && !is_end {
                continue;
            }
            if let Some(line) = self.take(is_end) {
                return Ok(Some(line));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    /// Completes a line; `None` if it is blank, or empty at the end.
    fn take(&mut self, is_end: bool) -> Option<InputLine> {
        let (mut text, is_too_long) =
            (std::mem::take(&mut self.partial), std::mem::take(&mut self.is_too_long));
        if !is_end || !text.is_empty() {
            self.count += 1;
        }
        if text.last() == Some(&b'\r') {
            text.pop();
        }
        let is_blank = !is_too_long && text.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then(|| InputLine {
            number: self.count,
            text: (!is_too_long).then_some(text),
            bytes: self.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::io::BufReader;

    use super::*;

    async fn all(input: &[u8], buffer: usize) -> Vec<(u64, Option<String>)> {
        let mut lines = LineReader::new(BufReader::with_capacity(buffer, Cursor::new(input.to_vec())));
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push((line.number, line.text.map(|text| String::from_utf8(text).unwrap())));
        }
        found
    }

    #[tokio::test]
    async fn blank_lines_count_in_line_numbers() {
        let line = |number, text: &str| (number, Some(text.to_owned()));
        for buffer in [1, 3, 4096] {
            assert_eq!(
                all(b"a\n\n b\r\n\t\r\nlast", buffer).await,
                [line(1, "a"), line(3, " b"), line(5, "last")]
            );
            assert_eq!(all(b"a\n", buffer).await, [line(1, "a")]);
            assert_eq!(all(b"", buffer).await, []);
            assert_eq!(all(b"\n\n", buffer).await, []);
        }
    }

    #[tokio::test]
    async fn too_long_line_is_skipped() {
        let long = [vec![b'x'; MAX_LINE_BYTES + 1], b"\nafter".to_vec()].concat();
        assert_eq!(all(&long, 8192).await, [(1, None), (2, Some("after".to_owned()))]);
        let fits = vec![b'x'; MAX_LINE_BYTES];
        let found = all(&fits, 8192).await;
        assert_eq!(found[0].1.as_ref().map(String::len), Some(MAX_LINE_BYTES));
    }
}
