//! Checks byte by byte where each HTTP/1.1 request ends, before the parser sees it.
//!
//! Guarantee: a connection that two readers could split into different requests is rejected at the first ambiguous
//! byte. That covers `Content-Length` together with `Transfer-Encoding`, lengths that differ or are not numbers, an
//! encoding other than `chunked`, a folded header line, white space before a colon, a line that ends without a
//! carriage return, and a chunk with a malformed size or end.
//!
//! hyper resolves some of these silently (it drops the `Content-Length` beside a `Transfer-Encoding`), and a service
//! that gets the request can no longer tell. Therefore the bytes are checked as they arrive. After the HTTP/2 preface
//! nothing is checked, because its frames carry their own lengths.

/// How much of a header line is kept for inspection. Any honest `Content-Length` or `Transfer-Encoding` fits.
const MAX_LINE_KEPT_BYTES: usize = 256;
/// The longest line with a chunk size and its extensions.
const MAX_CHUNK_LINE_BYTES: usize = 256;
/// The maximum number of digits of a chunk size that fits a u64.
const MAX_CHUNK_DIGITS: usize = 16;
/// The maximum size of trailers, which nobody reads.
const MAX_TRAILER_BYTES: usize = 8 * 1024;
/// The first line of the HTTP/2 preface, which no HTTP/1.1 request begins with.
const HTTP2_FIRST_LINE: &[u8] = b"PRI * HTTP/2.0";

/// The framing state of one connection.
#[derive(Debug, Default)]
pub struct Framing {
    position: Position,
    head: HeadFraming,
    line: LineBuffer,
    heads_seen: u64,
}

/// Why, and before which byte, a connection is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedBytes {
    /// How many of the given bytes are still valid.
    pub good: usize,
    /// The reason.
    pub fault: FramingError,
}

/// Why the framing of a connection is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The body has both a length and an encoding.
    #[error("both Content-Length and Transfer-Encoding")]
    LengthAndEncoding,
    /// There are different lengths.
    #[error("different Content-Length values")]
    LengthsDiffer,
    /// A length is not a number.
    #[error("a Content-Length that is not a number")]
    LengthNoNumber,
    /// The transfer coding is not supported.
    #[error("a Transfer-Encoding other than chunked")]
    EncodingUnknown,
    /// A header line is folded.
    #[error("a header line that begins with white space")]
    FoldedLine,
    /// Readers treat this space differently.
    #[error("white space before a header's colon")]
    SpaceBeforeColon,
    /// Readers treat this line ending differently.
    #[error("a line that ends without a carriage return")]
    BareLineFeed,
    /// A chunk has no valid size.
    #[error("a chunk with an invalid size")]
    ChunkSize,
    /// A chunk does not end where its size says.
    #[error("a chunk that does not end where its size says")]
    ChunkEnd,
    /// The trailers are too long.
    #[error("trailers of more than 8 KiB")]
    TrailersTooLong,
}

/// The position in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    /// Before or inside a head, line by line.
    #[default]
    Head,
    /// Inside a body or a chunk with `left` bytes to go.
    Data {
        left: u64,
        then: AfterData,
    },
    /// After the data of a chunk, before its CR and its LF.
    ChunkCr,
    ChunkLf,
    /// Inside the line with a chunk size.
    ChunkSize,
    /// Inside the lines after the last chunk.
    Trailers {
        left: usize,
    },
    /// HTTP/2: nothing is checked.
    Http2,
}

/// The part after the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterData {
    Head,
    ChunkCr,
}

/// The framing fields of the current head.
#[derive(Clone, Copy, Debug, Default)]
struct HeadFraming {
    started: bool,
    length: Option<u64>,
    chunked: bool,
}

/// The start of the current line.
#[derive(Debug, Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    len: usize,
    after_cr: bool,
}

impl Framing {
    /// Checks the next bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), RejectedBytes> {
        let mut index = 0;
        while index < bytes.len() {
            match self.position {
                Position::Http2 => return Ok(()),
                Position::Data { left, then } => {
                    let here = u64::try_from(bytes.len() - index).unwrap_or(u64::MAX).min(left);
                    index += usize::try_from(here).unwrap_or(usize::MAX);
                    self.position = match then {
                        _ if here < left => Position::Data { left: left - here, then },
                        AfterData::Head => Position::Head,
                        AfterData::ChunkCr => Position::ChunkCr,
                    };
                }
                Position::Head
                | Position::ChunkCr
                | Position::ChunkLf
                | Position::ChunkSize
                | Position::Trailers { .. } => {
                    self.byte(bytes[index]).map_err(|fault| RejectedBytes { good: index, fault })?;
                    index += 1;
                }
            }
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) -> Result<(), FramingError> {
        match self.position {
            Position::ChunkCr if byte == b'\r' => self.position = Position::ChunkLf,
            Position::ChunkLf if byte == b'\n' => self.position = Position::ChunkSize,
            Position::ChunkCr | Position::ChunkLf => return Err(FramingError::ChunkEnd),
            Position::Head => {
                if self.line.take(byte)? {
                    self.head_line()?;
                    self.line = LineBuffer::default();
                }
            }
            Position::ChunkSize => {
                let whole = self.line.take(byte)?;
                if MAX_CHUNK_LINE_BYTES < self.line.len {
                    return Err(FramingError::ChunkSize);
                }
                if whole {
                    self.position =
                        after_chunk_size(chunk_size(&self.line.bytes).ok_or(FramingError::ChunkSize)?);
                    self.line = LineBuffer::default();
                }
            }
            Position::Trailers { left } => {
                let left = left.checked_sub(1).ok_or(FramingError::TrailersTooLong)?;
                self.position = Position::Trailers { left };
                if self.line.take(byte)? {
                    if self.line.len == 0 {
                        self.position = Position::Head;
                    }
                    self.line = LineBuffer::default();
                }
            }
            Position::Data { .. } | Position::Http2 => (),
        }
        Ok(())
    }

    /// Processes one complete line of a head.
    fn head_line(&mut self) -> Result<(), FramingError> {
        let line = &self.line.bytes;
        match (self.head.started, self.line.len) {
            // Empty lines before a request are skipped, as hyper does.
            (false, 0) => {}
            (false, _) if self.heads_seen == 0 && line == HTTP2_FIRST_LINE => {
                self.heads_seen = 1;
                self.position = Position::Http2;
            }
            (false, _) => self.head.started = true,
            (true, 0) => {
                self.position = self.head.body();
                self.heads_seen += 1;
                self.head = HeadFraming::default();
            }
            (true, len) => self.head.field(line, line.len() < len)?,
        }
        Ok(())
    }
}

impl LineBuffer {
    /// Adds one byte. Returns `true` when the line is complete.
    fn take(&mut self, byte: u8) -> Result<bool, FramingError> {
        if byte == b'\n' {
            return if self.after_cr { Ok(true) } else { Err(FramingError::BareLineFeed) };
        }
        if self.after_cr {
            // A carriage return inside a line does not end it here; the parser rejects it.
            self.keep(b'\r');
            self.after_cr = false;
        }
        if byte == b'\r' {
            self.after_cr = true;
        } else {
            self.keep(byte);
        }
        Ok(false)
    }

    fn keep(&mut self, byte: u8) {
        self.len += 1;
        if self.bytes.len() < MAX_LINE_KEPT_BYTES {
            self.bytes.push(byte);
        }
    }
}

impl HeadFraming {
    fn field(&mut self, line: &[u8], is_cut: bool) -> Result<(), FramingError> {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(FramingError::FoldedLine);
        }
        // The parser rejects a line without a colon. A name longer than the buffer is not one of ours.
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(()) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if matches!(name.last(), Some(b' ' | b'\t')) {
            return Err(FramingError::SpaceBeforeColon);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = if is_cut { None } else { number(value, 10) }.ok_or(FramingError::LengthNoNumber)?;
            if self.length.is_some_and(|before| before != length) {
                return Err(FramingError::LengthsDiffer);
            }
            self.length = Some(length);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if is_cut || self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingError::EncodingUnknown);
            }
            self.chunked = true;
        }
        if self.chunked && self.length.is_some() { Err(FramingError::LengthAndEncoding) } else { Ok(()) }
    }

    fn body(self) -> Position {
        match self.length {
            _ if self.chunked => Position::ChunkSize,
            Some(left @ 1..) => Position::Data { left, then: AfterData::Head },
            Some(0) | None => Position::Head,
        }
    }
}

fn after_chunk_size(size: u64) -> Position {
    match size {
        0 => Position::Trailers { left: MAX_TRAILER_BYTES },
        left => Position::Data { left, then: AfterData::ChunkCr },
    }
}

/// Parses a chunk size. White space is rejected, because readers treat it differently.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?;
    if MAX_CHUNK_DIGITS < digits.len() { None } else { number(digits, 16) }
}

/// Parses digits only: no sign, no list, no white space.
fn number(text: &[u8], radix: u32) -> Option<u64> {
    if !text.iter().all(|byte| char::from(*byte).is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(text).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes at once and one by one; both must agree.
    fn take(bytes: &[u8]) -> Result<Framing, RejectedBytes> {
        let mut whole = Framing::default();
        let at_once = whole.take(bytes).map(|()| whole);
        let mut single = Framing::default();
        let one_by_one = bytes.iter().enumerate().try_for_each(|(index, byte)| {
            single.take(&[*byte]).map_err(|refused| RejectedBytes { good: index, fault: refused.fault })
        });
        assert_eq!(at_once.as_ref().err(), one_by_one.as_ref().err());
        at_once
    }

    fn fault(request: &str) -> Option<FramingError> {
        take(request.as_bytes()).err().map(|refused| refused.fault)
    }

    #[test]
    fn valid_pipelined_requests_pass() {
        let stream = concat!(
            "\r\nPOST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nGET ",
            "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n",
            "3\r\n\r\n\n\r\nA;ext=\"1\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
            "GET /c HTTP/1.1\r\nHost: x\r\nX-Long: ",
        );
        let stream = format!("{stream}{}\r\n\r\n", "y".repeat(2_000));
        let framing = take(stream.as_bytes()).expect("nothing to refuse");
        assert_eq!(framing.heads_seen, 3);
        assert_eq!(framing.position, Position::Head);
    }

    #[test]
    fn each_ambiguous_framing_is_rejected() {
        let post = "POST / HTTP/1.1\r\nHost: x\r\n";
        for (rest, expected) in [
            ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", FramingError::LengthAndEncoding),
            ("Transfer-Encoding: chunked\r\ncontent-length: 3\r\n\r\n", FramingError::LengthAndEncoding),
            ("Content-Length: 3\r\nContent-Length: 4\r\n\r\n", FramingError::LengthsDiffer),
            ("Content-Length: 3, 3\r\n\r\n", FramingError::LengthNoNumber),
            ("Content-Length: +3\r\n\r\n", FramingError::LengthNoNumber),
            ("Content-Length: \r\n\r\n", FramingError::LengthNoNumber),
            ("Content-Length: 99999999999999999999\r\n\r\n", FramingError::LengthNoNumber),
            ("Transfer-Encoding: gzip, chunked\r\n\r\n", FramingError::EncodingUnknown),
            ("Transfer-Encoding: identity\r\n\r\n", FramingError::EncodingUnknown),
            ("Transfer-Encoding: xchunked\r\n\r\n", FramingError::EncodingUnknown),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingError::EncodingUnknown,
            ),
            ("X: a\r\n b\r\n\r\n", FramingError::FoldedLine),
            ("X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n", FramingError::FoldedLine),
            ("Transfer-Encoding : chunked\r\n\r\n", FramingError::SpaceBeforeColon),
            ("X: a\nTransfer-Encoding: chunked\r\n\r\n", FramingError::BareLineFeed),
            ("Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", FramingError::BareLineFeed),
            ("Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", FramingError::ChunkSize),
            ("Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n", FramingError::ChunkSize),
            ("Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n", FramingError::ChunkSize),
            ("Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n", FramingError::ChunkSize),
            ("Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n", FramingError::ChunkSize),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", FramingError::ChunkEnd),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\rx", FramingError::ChunkEnd),
        ] {
            assert_eq!(fault(&format!("{post}{rest}")), Some(expected), "{rest:?}");
        }
    }

    #[test]
    fn endless_lines_and_trailers_are_rejected() {
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let extension = format!("{chunked}3;{}", "x".repeat(MAX_CHUNK_LINE_BYTES));
        assert_eq!(fault(&extension), Some(FramingError::ChunkSize));
        let trailers = format!("{chunked}0\r\nx: {}", "y".repeat(MAX_TRAILER_BYTES));
        assert_eq!(fault(&trailers), Some(FramingError::TrailersTooLong));
        let length = format!("POST / HTTP/1.1\r\nContent-Length: {}7\r\n", "0".repeat(MAX_LINE_KEPT_BYTES));
        assert_eq!(fault(&length), Some(FramingError::LengthNoNumber));
    }

    #[test]
    fn bytes_before_the_ambiguous_one_are_valid() {
        let head = b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n";
        let refused = take(head).expect_err("both");
        assert_eq!(refused.good, head.len() - 1, "all but the line feed that would end the line");
    }

    #[test]
    fn http2_is_not_checked_after_its_preface() {
        let framing = take(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\n").expect("frames are not ours");
        assert_eq!(framing.heads_seen, 1);
        let late =
            b"GET / HTTP/1.1\r\n\r\nPRI * HTTP/2.0\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n";
        assert!(take(late).is_err(), "only the very first line changes the protocol");
    }
}
