//! The response to bytes that are rejected before they form a request.
//!
//! The parser writes its own response last: a status without a body. This module replaces it with a response that has
//! the same status and the server's header fields and body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use tokio::io::AsyncWrite;

use super::MalformedRequest;

/// The parser's status lines with their meaning, and the field that marks its empty body.
const STATUS_LINES: [(&[u8], MalformedRequest); 4] = [
    (b"HTTP/1.1 400 Bad Request\r\n", MalformedRequest::Head),
    (b"HTTP/1.0 400 Bad Request\r\n", MalformedRequest::Head),
    (b"HTTP/1.1 431 Request Header Fields Too Large\r\n", MalformedRequest::HeadTooLarge),
    (b"HTTP/1.0 431 Request Header Fields Too Large\r\n", MalformedRequest::HeadTooLarge),
];
const NO_BODY: &[u8] = b"content-length: 0\r\n";

/// Replaces the parser's own response with the server's.
pub(super) struct RefusalWriter {
    response: Response<Bytes>,
    /// The complete response and its written length, once the parser has started its own.
    answer: Option<(Vec<u8>, usize)>,
}

impl RefusalWriter {
    pub(super) fn new(response: Response<Bytes>) -> Self {
        Self { response, answer: None }
    }

    /// Writes the parser's bytes, but replaces its own response.
    pub(super) fn poll_write(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(start) = find_parser_response(bytes) else { return Pin::new(stream).poll_write(cx, bytes) };
        // The bytes before it belong to the response to another request.
        if 0 < start {
            return Pin::new(stream).poll_write(cx, &bytes[..start]);
        }
        let (answer, written) = self.answer.get_or_insert_with(|| (full_response(bytes, &self.response), 0));
        while *written < answer.len() {
            match ready!(Pin::new(&mut *stream).poll_write(cx, &answer[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *written += count,
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }
}

/// Returns the meaning of these bytes if they are a response as the parser writes its own.
pub(super) fn parser_fault(bytes: &[u8]) -> Option<MalformedRequest> {
    let (_, fault) = STATUS_LINES.into_iter().find(|(line, _)| bytes.starts_with(line))?;
    (find_parser_response(bytes) == Some(0)).then_some(fault)
}

/// Finds where the parser's own response begins.
///
/// The parser writes it last and in one piece. A response that was split is left unchanged.
fn find_parser_response(bytes: &[u8]) -> Option<usize> {
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let last = |(line, _): (&[u8], _)| bytes.windows(line.len()).rposition(|part| part == line);
    let start = STATUS_LINES.into_iter().filter_map(last).max()?;
    no_body(&bytes[start..]).map(|_| start)
}

fn no_body(head: &[u8]) -> Option<usize> {
    head.windows(NO_BODY.len()).position(|part| part == NO_BODY)
}

/// Combines the parser's head with the server's header fields and body.
fn full_response(head: &[u8], response: &Response<Bytes>) -> Vec<u8> {
    let split_at = no_body(head).unwrap_or(head.len());
    let mut answer = head[..split_at].to_vec();
    for (name, value) in response.headers() {
        answer.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    answer.extend(format!("content-length: {}\r\n", response.body().len()).bytes());
    answer.extend(&head[(split_at + NO_BODY.len()).min(head.len())..]);
    answer.extend(response.body());
    answer
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const OWN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

    async fn written(parts: &[&[u8]], room: usize) -> Vec<u8> {
        let response =
            Response::builder().header("content-type", "text/plain").body(Bytes::from_static(b"two lengths"));
        let mut refusal = RefusalWriter::new(response.expect("a response"));
        let (mut near, mut far) = tokio::io::duplex(room);
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            tokio::io::AsyncReadExt::read_to_end(&mut far, &mut read).await.expect("it is read");
            read
        });
        for part in parts {
            let mut left = *part;
            while !left.is_empty() {
                let count =
                    poll_fn(|cx| refusal.poll_write(&mut near, cx, left)).await.expect("it is written");
                left = &left[count..];
            }
        }
        drop(near);
        reading.await.expect("it is read")
    }

    #[tokio::test]
    async fn parser_errors_get_the_servers_problem_body() {
        let said = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 11\r\nconnection: close\r\n\r\ntwo lengths";
        for room in [1, 10, 1_000] {
            assert_eq!(written(&[OWN], room).await, said, "{room} at a time");
        }
        let before = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".as_slice();
        assert_eq!(
            written(&[&[before, OWN].concat()], 1_000).await,
            [before, said].concat(),
            "after what was before"
        );
    }

    #[test]
    fn parser_responses_are_recognized() {
        let too_large = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(parser_fault(OWN), Some(MalformedRequest::Head));
        assert_eq!(parser_fault(too_large), Some(MalformedRequest::HeadTooLarge));
        assert_eq!(parser_fault(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"), None);
        assert_eq!(parser_fault(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}"), None);
        assert_eq!(parser_fault(&[b"x".as_slice(), OWN].concat()), None);
    }

    #[tokio::test]
    async fn responses_of_the_server_are_unchanged() {
        for other in [
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}".as_slice(),
            b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\n\r\n\r\n",
        ] {
            assert_eq!(written(&[other], 1_000).await, other);
        }
    }
}
