//! HTTP/1.1 as bytes: requests that a library would refuse to send, and the responses to them.

use crate::exchange::{ProbeRequest, ProbeResponse};

/// The largest response head that is read.
const MAX_HEAD_BYTES: usize = 64 * 1024;
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

/// A response that has arrived in part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// More bytes are needed.
    Partial,
    /// It is complete.
    Whole(ProbeResponse),
}

/// Reads a response from what has arrived; `is_end` if nothing more will.
pub(crate) fn parse(bytes: &[u8], is_end: bool) -> Result<Parsed, String> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return match bytes {
            _ if MAX_HEAD_BYTES < bytes.len() => Err("the response head is too long".to_owned()),
            [] if is_end => Err("the connection was closed without a response".to_owned()),
            _ if is_end => Err("the response head is not complete".to_owned()),
            _ => Ok(Parsed::Partial),
        };
    };
    let (status, headers) = head(&bytes[..end])?;
    let rest = &bytes[end + 4..];
    if status / 100 == 1 {
        return parse(rest, is_end);
    }
    let response = |body: &[u8]| {
        Ok(Parsed::Whole(ProbeResponse { status, headers: headers.clone(), body: body.to_vec() }))
    };
    let field = |name: &str| {
        let mut found = headers.iter().filter(|(found, _)| found.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| String::from_utf8_lossy(value).trim().to_ascii_lowercase())
    };
    if matches!(status, 204 | 304) {
        return response(b"");
    }
    if field("transfer-encoding").is_some_and(|coding| coding.ends_with("chunked")) {
        return match dechunked(rest)? {
            Some(body) => response(&body),
            None if is_end => Err("the response body is not complete".to_owned()),
            None => bounded(rest),
        };
    }
    match field("content-length").map(|length| length.parse::<usize>()) {
        Some(Err(_)) => Err("the response has an invalid Content-Length".to_owned()),
        Some(Ok(length)) if length <= rest.len() => response(&rest[..length]),
        Some(Ok(_)) if is_end => Err("the response body is not complete".to_owned()),
        None if is_end => response(rest),
        Some(Ok(_)) | None => bounded(rest),
    }
}

fn bounded(rest: &[u8]) -> Result<Parsed, String> {
    if MAX_BODY_BYTES < rest.len() {
        Err("the response is too large".to_owned())
    } else {
        Ok(Parsed::Partial)
    }
}

type Head = (u16, Vec<(String, Vec<u8>)>);

fn head(bytes: &[u8]) -> Result<Head, String> {
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let line = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let status = status.ok_or("this is not an HTTP/1.1 response")?;
    let field = |line: &[u8]| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((String::from_utf8_lossy(&line[..colon]).into_owned(), line[colon + 1..].trim_ascii().to_vec()))
    };
    Ok((status, lines.filter_map(field).collect()))
}

/// Returns the body of a chunked response; `None` if its end has not arrived.
fn dechunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    loop {
        let Some(end) = find(rest, b"\r\n") else { return Ok(None) };
        let size = String::from_utf8_lossy(&rest[..end]);
        let size = size.split(';').next().unwrap_or_default().trim();
        let size =
            usize::from_str_radix(size, 16).map_err(|_| "the response has an invalid chunk".to_owned())?;
        rest = &rest[end + 2..];
        if size == 0 {
            // Trailers are not read; their end is the end of the response.
            let is_end = rest.starts_with(b"\r\n") || find(rest, b"\r\n\r\n").is_some();
            return Ok(is_end.then_some(body));
        }
        let Some(chunk) = rest.get(..size) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(after) = rest.get(size + 2..) else { return Ok(None) };
        rest = after;
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, is_end: bool) -> (u16, String) {
        match parse(text.as_bytes(), is_end) {
            Ok(Parsed::Whole(response)) => (response.status, String::from_utf8(response.body).unwrap()),
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
            assert_eq!(parse(part, false), Ok(Parsed::Partial), "{end}");
            assert!(parse(part, true).is_err(), "{end}");
        }
        assert!(parse(b"SSH-2.0-x\r\n\r\n", false).is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", false).is_err());
    }
}
