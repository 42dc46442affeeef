//! What the probe sends and what it recorded.

use crate::target::Command;

/// A request to send, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRequest {
    /// What it is for, such as "the retry".
    pub purpose: &'static str,
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header lines, in order. Values may be any bytes: some rules send invalid ones.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
    /// Where the connection is cut.
    pub cut: Cut,
    /// When it is sent again.
    pub patience: Patience,
}

/// When a request is sent again, as an honest client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Never: whatever comes back counts.
    Once,
    /// While the target does not respond, or says that it is too busy.
    UntilAnswered,
    /// The same, and while the target says that the action is in flight.
    UntilDone,
}

/// Where the probe cuts the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nowhere.
    Never,
    /// After connecting, before a byte is sent.
    BeforeRequest,
    /// In the middle of the body.
    InRequest,
    /// After the request, before a byte of the response is read.
    AfterRequest,
    /// After the first bytes of the response.
    InResponse,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResponse {
    /// The status.
    pub status: u16,
    /// The header lines, in order.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, up to a limit.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A response.
    Response(ProbeResponse),
    /// The probe cut the connection.
    Cut,
    /// The target closed the connection before a complete response: why.
    Closed(String),
    /// No complete response within the limits: why.
    Nothing(String),
    /// There was no connection, so nothing was sent: why.
    NotConnected(String),
}

/// A request and what came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The request.
    pub request: ProbeRequest,
    /// What came back at last.
    pub received: Received,
    /// The statuses that came back before that, each of which made the probe send the request again; `None` for no response.
    pub earlier: Vec<Option<u16>>,
    /// Whether it was sent together with the exchange before it, or while that one was in flight.
    pub is_with_previous: bool,
}

/// How many effects were counted during a rule's steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectCount {
    /// There is no counter.
    NotCounted,
    /// So many more than before.
    Counted(u64),
    /// The counter failed: why.
    Failed(String),
}

/// A step of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a request and awaits its response.
    Send(ProbeRequest),
    /// Sends requests on connections of their own; the last byte of each is held back, and all are released together.
    Together(Vec<ProbeRequest>),
    /// Sends a request and, while it is in flight, takes other steps; then awaits its response.
    During(ProbeRequest, Vec<Step>),
    /// Runs a command of the user.
    Run(Command, String),
}

impl Step {
    /// Returns the requests that the step sends at least.
    pub fn requests(&self) -> Vec<&ProbeRequest> {
        match self {
            Self::Send(one) => vec![one],
            Self::Together(all) => all.iter().collect(),
            Self::During(one, steps) => {
                std::iter::once(one).chain(steps.iter().flat_map(Self::requests)).collect()
            }
            Self::Run(..) => Vec::new(),
        }
    }
}

impl ProbeRequest {
    /// Replaces the header lines of this name.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.headers.retain(|(before, _)| !before.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.into()));
    }
}

impl ProbeResponse {
    /// Returns all lines of a header, in order.
    pub fn lines(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let of_name = |(found, _): &&(String, Vec<u8>)| found.eq_ignore_ascii_case(name);
        self.headers.iter().filter(of_name).map(|(_, value)| &**value)
    }

    /// Returns the first line of a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| std::str::from_utf8(value).ok()).map(str::trim)
    }

    /// Whether the target says that it is too busy, or that the caller sends too much.
    pub const fn is_busy(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// Whether the status is one of success.
    pub const fn is_success(&self) -> bool {
        self.status / 100 == 2
    }
}
