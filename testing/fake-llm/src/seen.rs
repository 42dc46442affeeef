//! Records what the server has seen.
//!
//! Guarantee: each request is counted once when it arrives, and once more by how it ended. No secret and no prompt is
//! kept.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::Provider;

/// How many calls of one item are kept with their times. All are counted.
pub const MAX_CALLS_KEPT: usize = 10_000;
/// Headers whose value is a secret.
const SECRET: [&str; 3] = ["authorization", "x-api-key", "x-amz-security-token"];

/// What the server has seen since its start.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SeenRequests {
    /// The totals.
    #[serde(flatten)]
    pub all: RequestCounts,
    /// By endpoint: the path before the API's own.
    pub endpoints: BTreeMap<String, RequestCounts>,
    /// By item. Calls whose text names no item are under the empty name.
    pub items: BTreeMap<String, ItemSeen>,
    /// Calls in flight now.
    pub concurrency: u32,
    /// Maximum number of calls in flight so far.
    pub max_concurrency: u32,
    /// Requests that the provider would not have understood. A test asserts that there are none.
    pub format_faults: Vec<FormatFault>,
    /// The last valid request.
    pub last_request: Option<LastRequest>,
}

/// How many requests arrived, and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Valid requests that arrived.
    pub requests: u64,
    /// Requests that the model completed; they are billed, whether or not the response arrived.
    pub completed: u64,
    /// Throttled, by a rule or by a limit.
    pub throttled: u64,
    /// Refused with another error.
    pub failed: u64,
    /// Connections ended without a response. Some of these are completed too.
    pub dropped: u64,
}

/// What was seen of one item.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ItemSeen {
    /// The counts.
    #[serde(flatten)]
    pub counts: RequestCounts,
    /// Each call that has ended, in the order of their ends.
    pub calls: Vec<CallSeen>,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallSeen {
    /// When the whole request was read, in milliseconds since the server's start.
    pub came_ms: u64,
    /// When it ended.
    pub ended_ms: u64,
    /// Its endpoint.
    pub endpoint: String,
    /// How it ended.
    pub end: RequestEnd,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestEnd {
    /// Answered, and billed.
    Completed,
    /// Throttled.
    Throttled,
    /// Another error.
    Failed,
    /// No response, not billed.
    Dropped,
    /// No response, but billed.
    DroppedCompleted,
}

/// A request that the provider would not have understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatFault {
    /// The requested path.
    pub path: String,
    /// The member or header.
    pub at: String,
    /// What is wrong with it.
    pub why: String,
}

/// A valid request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastRequest {
    /// Its API.
    pub api: Provider,
    /// Its endpoint.
    pub endpoint: String,
    /// The requested model.
    pub model: String,
    /// Its headers, without the secrets.
    pub headers: BTreeMap<String, String>,
    /// Maximum number of tokens of the answer, if set.
    pub max_tokens: Option<u32>,
    /// How it requested JSON, if it did.
    pub asked_json: Option<AskedJson>,
}

/// A way to request JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedJson {
    /// The member of the request, for example `response_format`.
    pub by: String,
    /// The schema, if there was one.
    pub schema: Option<Value>,
}

impl SeenRequests {
    /// Records that a valid request has arrived.
    pub(crate) fn come(&mut self, item: &str, request: LastRequest) {
        self.concurrency += 1;
        self.max_concurrency = self.max_concurrency.max(self.concurrency);
        for counts in self.counts(item, &request.endpoint) {
            counts.requests += 1;
        }
        self.last_request = Some(request);
    }

    /// Records that it has ended.
    pub(crate) fn ended(&mut self, item: &str, call: CallSeen) {
        self.concurrency -= 1;
        for counts in self.counts(item, &call.endpoint) {
            counts.add(call.end);
        }
        let calls = &mut self.items.entry(item.to_owned()).or_default().calls;
        if calls.len() < MAX_CALLS_KEPT {
            calls.push(call);
        }
    }

    /// Records a request that the provider would not have understood.
    pub(crate) fn not_understood(&mut self, fault: FormatFault) {
        self.format_faults.push(fault);
    }

    fn counts(&mut self, item: &str, endpoint: &str) -> [&mut RequestCounts; 3] {
        let by_endpoint = self.endpoints.entry(endpoint.to_owned()).or_default();
        let by_item = &mut self.items.entry(item.to_owned()).or_default().counts;
        [&mut self.all, by_endpoint, by_item]
    }
}

impl RequestCounts {
    fn add(&mut self, end: RequestEnd) {
        match end {
            RequestEnd::Completed => self.completed += 1,
            RequestEnd::Throttled => self.throttled += 1,
            RequestEnd::Failed => self.failed += 1,
            RequestEnd::Dropped => self.dropped += 1,
            RequestEnd::DroppedCompleted => {
                self.dropped += 1;
                self.completed += 1;
            }
        }
    }
}

/// Returns milliseconds, as they are reported.
pub(crate) fn ms(since_start: Duration) -> u64 {
    u64::try_from(since_start.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the headers of a request, with secrets redacted.
pub(crate) fn shown(headers: &HeaderMap) -> BTreeMap<String, String> {
    let show = |name: &str, value: &http::HeaderValue| {
        if SECRET.contains(&name) {
            return "(redacted)".to_owned();
        }
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    headers.iter().map(|(name, value)| (name.to_string(), show(name.as_str(), value))).collect()
}
