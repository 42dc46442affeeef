//! HTTP/1.1 as bytes: requests that a library would refuse to send, and the responses to them.

use crate::exchange::{ProbeRequest, ProbeResponse};

/// The largest response head that is read.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How many header lines a response may have.
pub(crate) const MAX_HEADERS: usize = 256;
/// How many responses such as 100 may come before the one that counts.
const MAX_INTERIM: usize = 16;
/// The longest line that begins a chunk.
const MAX_CHUNK_LINE_BYTES: usize = 4 * 1024;
/// The largest response body that is kept.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Returns a request as bytes.
pub(crate) fn request_bytes(request: &ProbeRequest, host: &str) -> Vec<u8> {
    let mut bytes =
        format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", request.method, request.target).into_bytes();
    for (name, value) in &request.headers {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    if !request.body.is_empty() || request.method != "GET" {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", request.body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"Connection: close\r\n\r\n");
    bytes.extend_from_slice(&request.body);
    bytes
}

/// Reads a response from what has arrived, each byte once.
#[derive(Debug, Default)]
pub(crate) struct ResponseParser {
    /// What has arrived and is not read yet.
    pub(crate) bytes: Vec<u8>,
    /// How much of it was searched for the end of the head.
    searched: usize,
    /// Responses such as 100 before the one that counts.
    interim: usize,
    head: Option<Head>,
    /// The parts of a chunked body so far.
    chunks: Vec<u8>,
}

/// A response head, and where its body ends.
#[derive(Debug)]
struct Head {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    end: BodyEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEnd {
    Length(usize),
    LastChunk,
    Connection,
}

impl ResponseParser {
    /// Whether a head has begun that has not ended.
    pub(crate) const fn is_in_head(&self) -> bool {
        self.head.is_none() && !self.bytes.is_empty()
    }

    /// Reads on; returns the response once it is complete. `is_end` if nothing more will arrive.
    pub(crate) fn advance(&mut self, is_end: bool) -> Result<Option<ProbeResponse>, String> {
        while self.head.is_none() {
            if !self.read_head()? {
                return match self.bytes.len() {
                    0 if is_end => Err("the connection was closed without a response".to_owned()),
                    _ if is_end => Err("the response head is not complete".to_owned()),
                    _ => Ok(None),
                };
            }
        }
        let Some(end) = self.head.as_ref().map(|head| head.end) else { return Ok(None) };
        let is_whole = match end {
            BodyEnd::Length(length) => length <= self.bytes.len(),
            BodyEnd::LastChunk => self.read_chunks()?,
            BodyEnd::Connection => is_end,
        };
        if MAX_BODY_BYTES < self.bytes.len().max(self.chunks.len()) {
            return Err(format!("the response body has more than {MAX_BODY_BYTES} bytes"));
        }
        match (is_whole, self.head.take()) {
            (true, Some(Head { status, headers, .. })) => {
                if let BodyEnd::Length(length) = end {
                    self.bytes.truncate(length);
                }
                let body = if end == BodyEnd::LastChunk { &mut self.chunks } else { &mut self.bytes };
                Ok(Some(ProbeResponse { status, headers, body: std::mem::take(body) }))
            }
            (_, head) => {
                self.head = head;
                if is_end { Err("the response body is not complete".to_owned()) } else { Ok(None) }
            }
        }
    }

    /// Reads a head; `false` if its end has not arrived.
    fn read_head(&mut self) -> Result<bool, String> {
        let found = find(&self.bytes[self.searched..], b"\r\n\r\n").map(|end| self.searched + end);
        if MAX_HEAD_BYTES < found.unwrap_or(self.bytes.len()) {
            return Err(format!("the response head has more than {MAX_HEAD_BYTES} bytes"));
        }
        let Some(end) = found else {
            self.searched = self.bytes.len().saturating_sub(3);
            return Ok(false);
        };
        let head = head(&self.bytes[..end])?;
        self.bytes.drain(..end + 4);
        self.searched = 0;
        if head.status / 100 == 1 {
            self.interim += 1;
            if MAX_INTERIM < self.interim {
                return Err(format!("more than {MAX_INTERIM} interim responses, such as {}", head.status));
            }
        } else {
            self.head = Some(head);
        }
        Ok(true)
    }

    /// Reads the chunks that have arrived; `true` after the last one.
    fn read_chunks(&mut self) -> Result<bool, String> {
        let mut at = 0;
        let is_last = loop {
            let rest = &self.bytes[at..];
            let Some(end) = find(rest, b"\r\n") else {
                break if MAX_CHUNK_LINE_BYTES < rest.len() {
                    Err("the response has an invalid chunk".to_owned())
                } else {
                    Ok(false)
                };
            };
            let size = String::from_utf8_lossy(&rest[..end]);
            let size = size.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                break Err("the response has an invalid chunk".to_owned());
            };
            let rest = &rest[end + 2..];
            if size == 0 {
                // Trailers are not read; their end is the end of the response.
                break Ok(rest.starts_with(b"\r\n") || find(rest, b"\r\n\r\n").is_some());
            }
            if MAX_BODY_BYTES < self.chunks.len().saturating_add(size) {
                break Err(format!("the response body has more than {MAX_BODY_BYTES} bytes"));
            }
            let Some(chunk) = rest.get(..size + 2) else { break Ok(false) };
            self.chunks.extend_from_slice(&chunk[..size]);
            at += end + 2 + size + 2;
        };
        self.bytes.drain(..at);
        is_last
    }
}

fn head(bytes: &[u8]) -> Result<Head, String> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or("this is not an HTTP/1.1 response")?;
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((String::from_utf8_lossy(&line[..colon]).into_owned(), line[colon + 1..].trim_ascii().to_vec()))
    };
    let headers: Vec<(String, Vec<u8>)> = lines.filter_map(field).take(MAX_HEADERS + 1).collect();
    if MAX_HEADERS < headers.len() {
        return Err(format!("the response has more than {MAX_HEADERS} header lines"));
    }
    let field = |name: &str| {
        let mut found = headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| String::from_utf8_lossy(value).trim().to_ascii_lowercase())
    };
    let end = match field("content-length").map(|length| length.parse::<usize>()) {
        _ if matches!(status, 204 | 304) => BodyEnd::Length(0),
        _ if field("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked")) => {
            BodyEnd::LastChunk
        }
        Some(Err(_)) => return Err("the response has an invalid Content-Length".to_owned()),
        Some(Ok(length)) if MAX_BODY_BYTES < length => {
            return Err(format!("the response body has more than {MAX_BODY_BYTES} bytes"));
        }
        Some(Ok(length)) => BodyEnd::Length(length),
        None => BodyEnd::Connection,
    };
    Ok(Head { status, headers, end })
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], is_end: bool) -> Result<Option<ProbeResponse>, String> {
        ResponseParser { bytes: bytes.to_vec(), ..ResponseParser::default() }.advance(is_end)
    }

    fn whole(text: &str, is_end: bool) -> (u16, String) {
        match parse(text.as_bytes(), is_end) {
            Ok(Some(response)) => (response.status, String::from_utf8(response.body).unwrap()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_kind_of_body_is_read() {
        assert_eq!(
            whole("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nokxx", false),
            (201, "ok".to_owned())
        );
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=1\r\nc\r\n0\r\n\r\n";
        assert_eq!(whole(chunked, false), (200, "abc".to_owned()));
        assert_eq!(whole("HTTP/1.0 200 OK\r\n\r\nall", true), (200, "all".to_owned()));
        assert_eq!(
            whole("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", false),
            (204, String::new())
        );
    }

    #[test]
    fn an_incomplete_response_is_partial_or_an_error() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
        for end in 0..whole.len() {
            let part = &whole.as_bytes()[..end];
            assert_eq!(parse(part, false), Ok(None), "{end}");
            assert!(parse(part, true).is_err(), "{end}");
        }
        assert!(parse(b"SSH-2.0-x\r\n\r\n", false).is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false).is_err());
    }

    #[test]
    fn a_response_may_arrive_byte_by_byte() {
        for text in [
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nx: y\r\n\r\n",
        ] {
            let mut parser = ResponseParser::default();
            let (last, before) = text.as_bytes().split_last().unwrap();
            for byte in before {
                parser.bytes.push(*byte);
                assert_eq!(parser.advance(false), Ok(None));
            }
            parser.bytes.push(*last);
            let response = parser.advance(false).unwrap().unwrap();
            assert_eq!((response.status, &*response.body), (201, &b"ok"[..]));
        }
    }

    #[test]
    fn a_response_has_limits() {
        let ok = "HTTP/1.1 200 OK\r\n";
        let cases = [
            ("HTTP/1.1 102 Processing\r\n\r\n".repeat(100_000), "more than 16 interim responses"),
            (format!("{ok}{}\r\n", "a: b\r\n".repeat(1_000)), "more than 256 header lines"),
            (format!("{ok}a: {}", "b".repeat(MAX_HEAD_BYTES)), "the response head has more than 65536 bytes"),
            (
                format!("{ok}Content-Length: 99999999999\r\n\r\n"),
                "the response body has more than 4194304 bytes",
            ),
            (format!("{ok}\r\n{}", "x".repeat(MAX_BODY_BYTES + 1)), "the response body has more than"),
            (
                format!("{ok}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
                "the response body has more",
            ),
            (format!("{ok}Transfer-Encoding: chunked\r\n\r\n{}", "1".repeat(5_000)), "an invalid chunk"),
        ];
        for (text, why) in cases {
            let error = parse(text.as_bytes(), false).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
