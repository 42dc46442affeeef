//! Sends spans to a collector, batch after batch.

use std::time::Duration;

use http::Method;
use ichido_client::{Action, Cause, Client, ClientSettings, Outcome, Problems};
use ichido_core::key::IdempotencyKey;
use ichido_core::settings::Faults;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::{LOST, SPANS, Span, WAITING_MAX, proto};
use crate::config::TracesConfig;

/// Where collectors are, as everybody's exporters are told.
const VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// What they listen at.
const PATH: &str = "/v1/traces";
/// The most spans of one request.
const BATCH_MAX: usize = 512;
/// How long a batch may take, tries included.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How long the last spans may take when everything stops.
const END_WITHIN: Duration = Duration::from_secs(2);

/// The export of this process, for as long as it runs.
pub struct Exporting(Option<(oneshot::Sender<()>, JoinHandle<()>)>);

/// Begins it, where somebody says whereto: the environment, or the configuration.
pub fn start(config: &TracesConfig) -> Result<Exporting, Faults> {
    let by_variable = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty());
    let place = if by_variable.is_some() { VARIABLE } else { "traces.endpoint" };
    let Some(url) = by_variable.or_else(|| config.endpoint.clone()) else { return Ok(Exporting(None)) };
    let settings = ClientSettings { total_time_out: SEND_WITHIN, ..ClientSettings::new(url) };
    let mut faults = Faults::default();
    let client = settings.resolve().map_err(|Problems(problems)| {
        for problem in problems {
            faults.add(place, problem.trim_start_matches("base_url "));
        }
    });
    let client = faults.or(client.ok())?;
    metrics::describe_counter!(LOST, "Spans that no collector took");
    let (spans, waiting) = mpsc::channel(WAITING_MAX);
    let (stop, stopped) = oneshot::channel();
    // A process has one.
    _ = SPANS.set(spans);
    Ok(Exporting(Some((stop, tokio::spawn(run(client, waiting, stopped))))))
}

impl Exporting {
    /// Sends what is left, for as long as that may take.
    pub async fn end(self) {
        let Some((stop, running)) = self.0 else { return };
        // Whether it still runs is seen next.
        _ = stop.send(());
        if timeout(END_WITHIN, running).await.is_err() {
            tracing::warn!("the last spans were not taken in time");
        }
    }
}

/// While one batch is under way the next gathers.
async fn run(client: Client, mut spans: mpsc::Receiver<Span>, mut stopped: oneshot::Receiver<()>) {
    let node = Uuid::now_v7().to_string();
    loop {
        let mut batch = Vec::new();
        let is_over = tokio::select! {
            count = spans.recv_many(&mut batch, BATCH_MAX) => count == 0,
            _ = &mut stopped => {
                spans.close();
                while let Ok(span) = spans.try_recv() {
                    batch.push(span);
                }
                true
            }
        };
        for part in batch.chunks(BATCH_MAX) {
            send(&client, part, &node).await;
        }
        if is_over {
            return;
        }
    }
}

/// The same key on every try, so that a collector that knows keys takes it once; others ignore it.
async fn send(client: &Client, spans: &[Span], node: &str) {
    let key = IdempotencyKey::parse(&Uuid::now_v7().to_string());
    let action = key.ok().and_then(|key| {
        let body = proto::request(spans, node);
        Action::new(Method::POST, PATH, key, "application/x-protobuf", body).ok()
    });
    let Some(action) = action else { return };
    let why = match client.send(&action.begun_by(Cause::Auto)).await {
        Outcome::Done { .. } => return,
        Outcome::Refused { answer, .. } => format!("it answered {}", answer.status),
        Outcome::GaveUp { why, .. } => why.to_string(),
    };
    metrics::counter!(LOST).increment(spans.len() as u64);
    tracing::warn!(spans = spans.len(), why, "the collector did not take spans");
}
