//! What the harness and a contestant say to each other.
//!
//! A contestant is a process. Its argument is a [`Task`] as JSON. It connects, creates its tables, starts what the part
//! needs, and prints `{"ready":true}`. A line on its standard input starts the part. When the part is done, it prints
//! `{"done":true}`, with the latencies if the part has some, and exits when its input ends. Other lines are ignored.
//!
//! Time, commits, log bytes, processor time and memory are measured by the harness from outside, between the start and
//! `done`, the same for every contestant and without its setup.

use std::io::{BufRead as _, Write as _};

use serde::{Deserialize, Serialize};

/// How many messages one bulk call carries.
const BULK: usize = 1_000;
/// The bytes that one bulk call carries at most, so large payloads do not become one huge statement.
const MAX_BULK_BYTES: usize = 8 << 20;
/// What the JSON around the text of a payload takes, about.
const PAYLOAD_FRAME: usize = 30;

/// A piece of work that is measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// One caller enqueues messages one after another, each durable before the next.
    EnqueueOne,
    /// One caller enqueues 1,000 messages a call.
    EnqueueBulk,
    /// Workers run all messages that are there, until the last completion is stored.
    Drain,
    /// Messages are enqueued at a steady rate, whether or not earlier ones were started (open loop). The latency of a
    /// message is from when its enqueue was due until its handler starts.
    Pickup,
    /// An HTTP server with one endpoint; its `ready` has the port, and the harness sends the requests.
    Serve,
}

/// The argument of a contestant.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub(crate) part: Part,
    pub(crate) url: String,
    /// How many messages.
    pub(crate) count: usize,
    /// The size of a payload: JSON of about this many bytes.
    pub(crate) bytes: usize,
    /// Messages per second, for a pickup.
    pub(crate) rate: f64,
    /// How many workers drain, each with its own connections.
    pub(crate) workers: usize,
}

/// A line of a contestant.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    #[serde(default)]
    pub(super) ready: bool,
    #[serde(default)]
    pub(super) done: bool,
    /// The port of a server.
    #[serde(default)]
    pub(super) port: Option<u16>,
    /// In microseconds, in any order.
    #[serde(default)]
    pub(super) latencies_us: Vec<f64>,
}

impl Task {
    /// Returns the messages of one bulk call.
    pub(super) fn bulk(&self) -> usize {
        (MAX_BULK_BYTES / self.bytes.max(1)).clamp(1, BULK).min(self.count.max(1))
    }

    /// Returns the text that makes a payload as long as asked for.
    pub(super) fn text(&self) -> String {
        "x".repeat(self.bytes.saturating_sub(PAYLOAD_FRAME))
    }
}

/// Says that the setup is done, and waits for the start.
pub(super) fn ready(port: Option<u16>) {
    print(&Report { ready: true, port, ..Report::default() });
    let _line = std::io::stdin().lock().read_line(&mut String::new());
}

/// Says that the part is done, and waits until the harness has read its counters.
pub(super) fn done(latencies_us: Vec<f64>) {
    print(&Report { done: true, latencies_us, ..Report::default() });
    let _end = std::io::stdin().lock().read_line(&mut String::new());
}

fn print(report: &Report) {
    let mut out = std::io::stdout().lock();
    let line = serde_json::to_string(report).expect("plain numbers");
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the harness reads");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_plain_json() {
        let task = Task {
            part: Part::EnqueueBulk,
            url: "postgres://a/b".into(),
            count: 2_000,
            bytes: 200,
            rate: 0.0,
            workers: 1,
        };
        let text = serde_json::to_string(&task).expect("JSON");
        assert_eq!(
            text,
            r#"{"part":"enqueue-bulk","url":"postgres://a/b","count":2000,"bytes":200,"rate":0.0,"workers":1}"#
        );
        assert_eq!(task.bulk(), 1_000);
        assert_eq!(Task { bytes: 64 << 10, ..task.clone() }.bulk(), 128);
        assert_eq!(task.text().len(), 170);
    }

    #[test]
    fn a_report_may_leave_out_what_it_does_not_have() {
        let report: Report = serde_json::from_str(r#"{"done": true}"#).expect("a report");
        assert!(report.done && !report.ready && report.latencies_us.is_empty());
    }
}
