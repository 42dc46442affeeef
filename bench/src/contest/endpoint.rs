//! An endpoint with one INSERT and an idempotency key: bare, by hand, behind a peer's layer, and behind ours.
//!
//! The servers are contestants of the part [`Part::Serve`]; the requests come from the harness, 64 connections.

use std::sync::Arc;
use std::time::Duration;

use ichido_store::testing::postgres::Cluster;
use uuid::Uuid;

use super::contestant::{Contestant, Program, root};
use super::fresh::Fresh;
use super::process::Contender;
use super::protocol::{Part, Task, done, ready};
use super::results::{Measurement, Results};
use super::sample::Sample;
use super::size::Chosen;
use super::{BYTES, whole};
use crate::load::{LoadTarget, quantile};
use crate::once;
use crate::report::Stopwatch;

/// Keys whose responses are replayed.
const REPLAYED: usize = 1_000;
/// Requests per second at which latencies are measured.
pub(crate) const LATENCY_RATE: f64 = 500.0;
/// Costs are stored for this many requests, because a round sends as many as it can.
const PER: usize = 10_000;

/// An endpoint that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    path: &'static str,
    server: Program,
    /// Whether it stores responses.
    pub(crate) replays: bool,
    /// What it promises.
    pub(crate) promise: &'static str,
}

/// The name under which its replays are stored.
pub(crate) fn replays_of(name: &str) -> String {
    format!("{name}, replays")
}

pub(crate) const ENDPOINTS: [Endpoint; 5] = [
    Endpoint {
        name: "bare transaction",
        path: "/explicit",
        server: Program::Ours,
        replays: false,
        promise: "no key: a retry inserts again",
    },
    Endpoint {
        name: "keys by hand",
        path: "/by-hand",
        server: Program::Ours,
        replays: true,
        promise: "once; no leases, no expiry, no clients that wait for the first",
    },
    Endpoint {
        name: "axum-idempotent 0.6.0",
        path: "/bookmarks",
        server: Program::Rust("axum_idempotent"),
        replays: true,
        promise: "best effort: simultaneous duplicates, and a crash before the response is stored, run twice",
    },
    Endpoint {
        name: "Ichido, transactional",
        path: "/transactional",
        server: Program::Ours,
        replays: true,
        promise: "once: rows and response commit together",
    },
    Endpoint {
        name: "Ichido, keyed",
        path: "/keyed",
        server: Program::Ours,
        replays: true,
        promise: "one run at a time; the outcome is stored after the handler",
    },
];

/// Serves the endpoints of this crate, as a contestant.
pub(crate) async fn run(task: Task) {
    let address = once::served_by_postgres(&task.url).await;
    ready(Some(address.port()));
    done(Vec::new());
}

/// Measures all endpoints once.
pub(super) async fn turn(cluster: &Cluster, seconds: f64, chosen: &Chosen<'_>, results: &mut Results) {
    for endpoint in ENDPOINTS.iter().filter(|it| chosen.has(it.name)) {
        eprintln!("endpoint: {}", endpoint.name);
        let database = Fresh::postgres(cluster).await;
        let outcome = measure(endpoint, &database, Duration::from_secs_f64(seconds), results).await;
        if let Err(error) = outcome {
            eprintln!("endpoint, {}: {error}", endpoint.name);
        }
        database.remove(cluster).await;
    }
}

async fn measure(
    endpoint: &Endpoint,
    database: &Fresh,
    time: Duration,
    results: &mut Results,
) -> Result<(), String> {
    let task =
        Task { part: Part::Serve, url: database.url(), count: PER, bytes: BYTES, rate: 0.0, workers: 1 };
    let errors = root().join("target/bench/endpoint.log");
    let command = match endpoint.server {
        Program::Ours => Contestant::this("contest-endpoint"),
        other => Contestant::command_of(other),
    };
    let mut server = Contender::start(command, &task, &errors)?;
    let port = server.port.ok_or("it printed no port")?;
    let first = target(endpoint, port, |_| Uuid::now_v7().to_string());
    let sample = saturated(&server, database, &first, time).await;
    results.add(Measurement::of(endpoint.name, &task), Some(sample));
    let latencies = first.at_a_rate(LATENCY_RATE, time).await;
    let at_a_rate =
        Task { rate: LATENCY_RATE, count: whole(LATENCY_RATE * time.as_secs_f64()), ..task.clone() };
    let us = |share| Some(quantile(&latencies, share).as_secs_f64() * 1e6);
    let paced = Sample { p50_us: us(0.5), p99_us: us(0.99), seconds: time.as_secs_f64(), ..sample };
    results.add(Measurement::of(endpoint.name, &at_a_rate), Some(paced));
    if endpoint.replays {
        let stored =
            LoadTarget { numbers: REPLAYED, ..target(endpoint, port, |number| format!("replay-{number}")) };
        stored.each_once().await;
        let again = LoadTarget { replays: true, ..stored };
        let sample = saturated(&server, database, &again, time).await;
        results.add(Measurement::of(&replays_of(endpoint.name), &task), Some(sample));
    }
    server.go()
}

/// Sends as many requests as the server answers, and returns what [`PER`] of them took.
async fn saturated(server: &Contender, database: &Fresh, load: &LoadTarget, time: Duration) -> Sample {
    let before = server.counters(database.probe()).await;
    let watch = Stopwatch::start();
    let rate = load.saturate(time).await;
    let elapsed = watch.elapsed().as_secs_f64();
    let sample = server.sample(before, elapsed, database.probe(), Vec::new()).await;
    sample.scaled(super::results::float(PER) / (rate * elapsed))
}

fn target(
    endpoint: &Endpoint,
    port: u16,
    key: impl Fn(usize) -> String + Send + Sync + 'static,
) -> LoadTarget {
    LoadTarget {
        address: ([127, 0, 0, 1], port).into(),
        path: endpoint.path,
        key: Arc::new(key),
        body: Arc::new(|number| {
            format!(
                r#"{{"url":"https://example.org/articles/{number}","source_hint":"share","created_from":"web"}}"#
            )
        }),
        numbers: usize::MAX,
        replays: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_pinned_to_the_version_in_its_name() {
        let text = std::fs::read_to_string(root().join("bench/peers/rust/Cargo.toml")).expect("a manifest");
        for endpoint in ENDPOINTS.iter().filter(|it| it.server != Program::Ours) {
            let (name, version) = endpoint.name.split_once(' ').expect("a name and a version");
            assert!(text.contains(&format!("{name} = {{ version = \"={version}\"")), "{name}");
        }
    }
}
