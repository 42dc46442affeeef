//! Sends spans to a collector in batches.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use ichido_client::{Action, Cause, Outcome};
use ichido_core::key::IdempotencyKey;
use ichido_core::settings::ConfigErrors;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::settings::{self, Collector, TRACES};
use super::{HASHES_KEYS, LOST_SPANS, MAX_QUEUED_SPANS, SPANS, TraceSpan, json};

/// Maximum spans in one request.
const MAX_BATCH: usize = 512;
/// Time limit for the last spans at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The running exporter of this process.
pub struct Exporting(Option<(oneshot::Sender<()>, JoinHandle<()>)>);

/// Starts the exporter if there is a collector.
///
/// The environment names it, or the given endpoint of the configuration. Spans carry keys, or their hashes.
pub fn start(endpoint: Option<&str>, hashes_keys: bool) -> Result<Exporting, ConfigErrors> {
    let Some(collector) = settings::resolve(TRACES, endpoint, |name| std::env::var(name))? else {
        return Ok(Exporting(None));
    };
    describe_metrics();
    let (spans, waiting) = mpsc::channel(MAX_QUEUED_SPANS);
    let (stop, stopped) = oneshot::channel();
    // Each process has one exporter.
    HASHES_KEYS.store(hashes_keys, Ordering::Relaxed);
    _ = SPANS.set(spans);
    Ok(Exporting(Some((stop, tokio::spawn(run(collector, waiting, stopped))))))
}

/// Describes the exporter's metrics.
pub(crate) fn describe_metrics() {
    metrics::describe_counter!(LOST_SPANS, "Spans that the collector did not accept");
}

impl Exporting {
    /// Sends the remaining spans, up to a timeout.
    pub async fn end(self) {
        let Some((stop, running)) = self.0 else { return };
        // An exporter that has ended is noticed next.
        _ = stop.send(());
        if timeout(FLUSH_TIMEOUT, running).await.is_err() {
            tracing::warn!("timed out exporting the last spans");
        }
    }
}

/// Sends batches; while one is in flight, the next one fills.
async fn run(collector: Collector, mut spans: mpsc::Receiver<TraceSpan>, mut stopped: oneshot::Receiver<()>) {
    loop {
        let mut batch = Vec::new();
        let is_over = tokio::select! {
            count = spans.recv_many(&mut batch, MAX_BATCH) => count == 0,
            _ = &mut stopped => {
                spans.close();
                while let Ok(span) = spans.try_recv() {
                    batch.push(span);
                }
                true
            }
        };
        for part in batch.chunks(MAX_BATCH) {
            send(&collector, part).await;
        }
        if is_over {
            return;
        }
    }
}

/// Sends a batch with the same key on every attempt.
///
/// A collector that deduplicates by key accepts it once; others ignore the key.
async fn send(collector: &Collector, spans: &[TraceSpan]) {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string());
    let action = key.ok().and_then(|key| {
        let body = json::request(spans, &collector.resource);
        Action::new(Method::POST, &collector.path, key, "application/json", body).ok()
    });
    let Some(action) = action else { return };
    let all = spans.len() as u64;
    let (lost, why) = match collector.client.send(&action.started_by(Cause::Auto)).await {
        Outcome::Done { answer, .. } => match json::rejected(&answer.body).min(all) {
            0 => return,
            rejected => (rejected, "it accepted only some of them".to_owned()),
        },
        Outcome::Refused { answer, .. } => (all, format!("it returned {}", answer.status)),
        Outcome::GaveUp { why, .. } => (all, why.to_string()),
    };
    metrics::counter!(LOST_SPANS).increment(lost);
    tracing::warn!(spans = lost, why, "failed to export spans");
}
