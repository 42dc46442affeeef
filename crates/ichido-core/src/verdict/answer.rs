//! What was seen of a try: an answer, a fault of the network, or an error that a client library named.

use std::borrow::Cow;

use super::{ErrorCode, PaceReport};
use crate::json::{Document, Pointer};
use crate::key::{self, IdempotencyKey};

/// The most of an error body that is looked into for the error's name.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// What came back from a try, or did not.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An HTTP response, whole.
    Answer(Answer<'a>),
    /// No response, or not a whole one.
    Network(NetworkFault),
    /// A service error that a client library reports by name alone, such as `ThrottlingException`.
    Named(&'a str),
    /// A response whose content is not what was asked for, such as a model's text that is no JSON.
    UnusableAnswer,
}

/// An HTTP response.
#[derive(Clone, Copy)]
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// The header fields, in order, repeats included.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, or its beginning.
    pub body: &'a [u8],
    /// Whether it carries our key back ([`Echo::of`]).
    pub echo: Echo,
}

crate::debug_only! {
    /// Payloads stay out of logs: only the status and the sizes are shown.
    Answer<'_> as answer { status, headers: answer.headers.len(), body_bytes: answer.body.len(), echo }
}

/// Whether an answer carries our key back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Our key.
    Same,
    /// A key, and not ours.
    Other,
    /// No key.
    Absent,
}

impl Echo {
    /// What an answer's header fields say, under either name of the header. A key that cannot be read is not ours.
    pub fn of<N, V>(ours: &IdempotencyKey, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<str>,
        V: AsRef<[u8]>,
    {
        match key::read(headers) {
            Ok(None) => Self::Absent,
            Ok(Some(echoed)) if echoed == *ours => Self::Same,
            Ok(Some(_)) | Err(_) => Self::Other,
        }
    }
}

/// Why there is no whole answer. The first group never reached the receiver's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// The name did not resolve.
    NameNotResolved,
    /// Nobody listens there.
    ConnectRefused,
    /// The connection did not come about in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    Tls,
    /// HTTP/2 said that the stream was not processed (`REFUSED_STREAM`, or `GOAWAY` before it).
    StreamRefused,
    /// Our own limiter or circuit breaker held it back.
    HeldBack,
    /// The connection was kept from an earlier call, and closed before a byte of this one was written.
    ClosedUnused,
    /// The request went out, and no answer came in time.
    Timeout,
    /// The connection broke after the request, or part of it, went out.
    Broken,
    /// The answer began and did not end.
    AnswerCut,
}

impl NetworkFault {
    /// Whether the receiver's application may have seen the request.
    pub const fn may_have_arrived(self) -> bool {
        match self {
            Self::NameNotResolved
            | Self::ConnectRefused
            | Self::ConnectTimeout
            | Self::Tls
            | Self::StreamRefused
            | Self::HeldBack
            | Self::ClosedUnused => false,
            Self::Timeout | Self::Broken | Self::AnswerCut => true,
        }
    }
}

impl<'a> Answer<'a> {
    fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// An idempotency layer's word for "still in flight".
    // SPEC C6.
    pub(super) fn says_in_flight(&self) -> bool {
        self.status == 202
            && self
                .header("idempotency-status")
                .is_some_and(|value| value.trim_ascii().eq_ignore_ascii_case(b"processing"))
    }
}

impl Seen<'_> {
    /// What it tells of the destination, given the code of the row that took it.
    pub(super) fn report(&self, code: Option<ErrorCode>) -> Option<PaceReport> {
        match self {
            _ if code == Some(ErrorCode::RateLimited) => Some(PaceReport::Throttled),
            Self::Answer(Answer { status: 200..=499, .. }) | Self::UnusableAnswer => {
                Some(PaceReport::Success)
            }
            Self::Answer(Answer { status: 500..=599, .. }) => Some(PaceReport::Failure),
            // Held back by our own limiter: it would hear its own echo, and open a circuit over it. A connection
            // that was closed while nobody used it says nothing of the next one.
            Self::Network(NetworkFault::HeldBack | NetworkFault::ClosedUnused) | Self::Answer(_) => None,
            Self::Network(_) => Some(PaceReport::Failure),
            Self::Named(_) => report_of_name(code),
        }
    }
}

/// A library that names the error keeps the status to itself, so the code must do.
const fn report_of_name(code: Option<ErrorCode>) -> Option<PaceReport> {
    match code {
        Some(ErrorCode::RateLimited) => Some(PaceReport::Throttled),
        Some(ErrorCode::NetworkTimeout | ErrorCode::Broker5xx) => Some(PaceReport::Failure),
        // No answer leads to the last one.
        Some(ErrorCode::Unknown | ErrorCode::WorkerDied) => None,
        None
        | Some(
            ErrorCode::BadRequest
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

impl<'a> Seen<'a> {
    pub(super) const fn answer(&self) -> Option<&Answer<'a>> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Network(_) | Self::Named(_) | Self::UnusableAnswer => None,
        }
    }

    /// Every name that the error goes by.
    pub(super) fn names(&self) -> Vec<Cow<'a, str>> {
        match self {
            Self::Named(name) => vec![Cow::Borrowed(bare_name(name))],
            Self::Answer(answer) if 400 <= answer.status => answer.names(),
            Self::Answer(_) | Self::Network(_) | Self::UnusableAnswer => Vec::new(),
        }
    }
}

/// Where services put the name of an error, the most telling first.
const NAME_POINTERS: [&str; 7] =
    ["/error/details/error_code", "/error/code", "/error/type", "/error", "/code", "/__type", "/type"];

impl<'a> Answer<'a> {
    /// The most telling name that the service gives the error, if this is one and it names it.
    pub fn error_name(&self) -> Option<Cow<'a, str>> {
        if self.status < 400 { None } else { self.names().into_iter().next() }
    }

    fn names(&self) -> Vec<Cow<'a, str>> {
        let mut names = Vec::new();
        if let Some(Ok(name)) = self.header("x-amzn-errortype").map(std::str::from_utf8) {
            names.push(Cow::Borrowed(bare_name(name)));
        }
        // A body that is no JSON, or too large, simply names nothing: the status still speaks.
        let Ok(document) = Document::parse(self.body, BODY_BYTES_MAX) else {
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

/// `com.amazon#ThrottlingException:http://…` is `ThrottlingException`.
fn bare_name(name: &str) -> &str {
    let name = name.rsplit_once('#').map_or(name, |(_, name)| name);
    name.split_once(':').map_or(name, |(name, _)| name).trim()
}
