//! What came back from an attempt.
//!
//! That is a response, a network fault, or an error named by a client library.

use std::borrow::Cow;

use super::{ErrorCode, PaceReport};
use crate::json::{Document, Pointer};
use crate::key::{self, IdempotencyKey, KeySyntax};

/// How much of an error body is searched for the error's name.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// What came back from an attempt, if anything.
#[derive(Clone, Copy, Debug)]
pub enum AttemptResponse<'a> {
    /// A complete HTTP response.
    Http(HttpResponse<'a>),
    /// No complete response.
    Network(NetworkFault),
    /// A service error that a client library reports only by name, such as `ThrottlingException`.
    Named(&'a str),
    /// A response with unusable content, such as a model's text that is not JSON.
    UnusableAnswer,
}

/// An HTTP response.
#[derive(Clone, Copy)]
pub struct HttpResponse<'a> {
    /// The status.
    pub status: u16,
    /// The header fields, in order, including repeats.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, or its beginning.
    pub body: &'a [u8],
    /// Whether it echoes our key ([`Echo::read`]).
    pub echo: Echo,
}

crate::debug_only! {
    /// Payloads stay out of logs: only the status and the sizes are shown.
    HttpResponse<'_> as answer { status, headers: answer.headers.len(), body_bytes: answer.body.len(), echo }
}

/// Whether a response echoes our key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Our key.
    Same,
    /// A key that is not ours.
    Other,
    /// No key.
    Absent,
}

impl Echo {
    /// Reads the echo from a response's header fields, under either header name.
    ///
    /// An unreadable key is not ours.
    pub fn read<N, V>(ours: &IdempotencyKey, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        match key::read_as(headers, KeySyntax::AnyString) {
            Ok(None) => Self::Absent,
            Ok(Some(echoed)) if echoed == *ours => Self::Same,
            Ok(Some(_)) | Err(_) => Self::Other,
        }
    }
}

/// Returns whether a complete response with this status proves that the call is no longer in transit.
///
/// A gateway writes 502, 503, 504 and many others above 505 when it has no response of the receiver, and 408, 444, 460 and 499
/// may come from either: behind them the call may still be running.
// SPEC F2.
pub const fn ends_call(status: u16) -> bool {
    matches!(status, 200..=501 | 505) && !matches!(status, 408 | 444 | 460 | 499)
}

/// Why there is no complete response. The first group never reached the receiver's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// The name did not resolve.
    NameNotResolved,
    /// Nothing listens there.
    ConnectRefused,
    /// The connection was not established in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    Tls,
    /// HTTP/2 reported that the stream was not processed (`REFUSED_STREAM`, or `GOAWAY` before it).
    StreamRefused,
    /// Our own limiter or circuit breaker held it back.
    NotSent,
    /// A reused connection was closed before a byte of this request was written.
    ClosedUnused,
    /// The request was sent and no response came in time.
    Timeout,
    /// The connection broke after the request, or part of it, was sent.
    Broken,
    /// The response began and did not end.
    ResponseCut,
}

impl NetworkFault {
    /// Returns whether the receiver's application may have seen the request.
    pub const fn may_have_arrived(self) -> bool {
        match self {
            Self::NameNotResolved
            | Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::Tls
            | Self::StreamRefused
            | Self::NotSent
            | Self::ClosedUnused => false,
            Self::Timeout | Self::Broken | Self::ResponseCut => true,
        }
    }

    /// Returns whether no connection was made, for another reason than a timeout.
    // SPEC D9.
    pub(super) const fn is_connect_failure(self) -> bool {
        matches!(self, Self::NameNotResolved | Self::ConnectRefused | Self::Tls)
    }
}

impl<'a> HttpResponse<'a> {
    fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// An idempotency layer's word for "still in flight".
    // SPEC C6.
    pub(super) fn says_in_flight(&self) -> bool {
        self.status == 202 && self.has_idempotency_status(b"processing")
    }

    /// An idempotency layer's word for "unknown, and held": a retry with the key would not run.
    // SPEC F2.
    pub(super) fn says_held(&self) -> bool {
        matches!(self.status, 500..=599) && self.has_idempotency_status(b"unknown")
    }

    fn has_idempotency_status(&self, word: &[u8]) -> bool {
        let status = self.header("idempotency-status");
        status.is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(word))
    }
}

impl AttemptResponse<'_> {
    /// Returns what it says about the destination, given the code of the matching row.
    pub(super) fn report(&self, code: Option<ErrorCode>) -> Option<PaceReport> {
        match self {
            _ if code == Some(ErrorCode::RateLimited) => Some(PaceReport::Throttled),
            Self::Http(HttpResponse { status: 200..=499, .. }) | Self::UnusableAnswer => {
                Some(PaceReport::Success)
            }
            Self::Http(HttpResponse { status: 500..=599, .. }) => Some(PaceReport::Failure),
            // Our own limiter held it back: reporting it would open a circuit over our own action. A connection that
            // was closed while idle says nothing about the next one.
            Self::Network(NetworkFault::NotSent | NetworkFault::ClosedUnused) | Self::Http(_) => None,
            Self::Network(_) => Some(PaceReport::Failure),
            Self::Named(_) => report_of_name(code),
        }
    }
}

/// A library that names the error hides the status, so the code must do.
const fn report_of_name(code: Option<ErrorCode>) -> Option<PaceReport> {
    match code {
        Some(ErrorCode::RateLimited) => Some(PaceReport::Throttled),
        Some(ErrorCode::NetworkTimeout | ErrorCode::ConnectFailed | ErrorCode::Broker5xx) => {
            Some(PaceReport::Failure)
        }
        // No response has the last code.
        Some(ErrorCode::Unknown | ErrorCode::WorkerDied) => None,
        None
        | Some(
            ErrorCode::BadRequest
            | ErrorCode::Redirected
            | ErrorCode::Gone
            | ErrorCode::Unauthorized
            | ErrorCode::ConflictProcessed
            | ErrorCode::InProgress
            | ErrorCode::QuotaSpent
            | ErrorCode::AnswerUnusable
            | ErrorCode::KeyNotEchoed
            | ErrorCode::KeyConflict,
        ) => Some(PaceReport::Success),
    }
}

impl<'a> AttemptResponse<'a> {
    pub(super) const fn answer(&self) -> Option<&HttpResponse<'a>> {
        match self {
            Self::Http(answer) => Some(answer),
            Self::Network(_) | Self::Named(_) | Self::UnusableAnswer => None,
        }
    }

    /// Returns every name of the error.
    pub(super) fn names(&self) -> Vec<Cow<'a, str>> {
        match self {
            Self::Named(name) => vec![Cow::Borrowed(bare_name(name))],
            Self::Http(answer) if 400 <= answer.status => answer.names(),
            Self::Http(_) | Self::Network(_) | Self::UnusableAnswer => Vec::new(),
        }
    }
}

/// Where services put the name of an error, the most specific first.
const NAME_POINTERS: [&str; 7] =
    ["/error/details/error_code", "/error/code", "/error/type", "/error", "/code", "/__type", "/type"];

impl<'a> HttpResponse<'a> {
    /// Returns the most specific name that the service gives the error, if any.
    pub fn error_name(&self) -> Option<Cow<'a, str>> {
        if self.status < 400 { None } else { self.names().into_iter().next() }
    }

    fn names(&self) -> Vec<Cow<'a, str>> {
        let mut names = Vec::new();
        if let Some(Ok(name)) = self.header("x-amzn-errortype").map(std::str::from_utf8) {
            names.push(Cow::Borrowed(bare_name(name)));
        }
        // A body that is not JSON, or too large, names nothing: the status decides.
        let Ok(document) = Document::parse(self.body, MAX_BODY_BYTES) else {
            return names;
        };
        for pointer in NAME_POINTERS {
            let Ok(pointer) = Pointer::parse(pointer) else {
                continue;
            };
            if let Some(name) = document.at(&pointer).and_then(|value| value.as_str().map(Cow::into_owned)) {
                names.push(Cow::Owned(bare_name(&name).to_owned()));
            }
        }
        names
    }
}

/// Reduces `com.amazon#ThrottlingException:http://…` to `ThrottlingException`.
fn bare_name(name: &str) -> &str {
    let name = name.rsplit_once('#').map_or(name, |(_, name)| name);
    name.split_once(':').map_or(name, |(name, _)| name).trim()
}
