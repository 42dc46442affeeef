//! Exports the metrics of a run while it lasts: to a file, and to an OpenTelemetry collector.
// Spec: B12.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_llm::articles::Judgement;
use ichido_llm::judge::{Judge, RETRY_RATIO};
use ichido_server::traces::counts::{ExportedCounts, MetricsExporter};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::Args;
use super::metrics_file::MetricsFile;
use crate::exit::Exit;

/// How often the file is replaced.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// How often counts are sent to the collector.
const SEND_EVERY: Duration = Duration::from_secs(10);
/// Time limit for the last counts.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the metrics of a run go.
pub(super) struct MetricsExport {
    file: Option<MetricsFile>,
    collector: Option<MetricsExporter>,
    model: String,
}

impl MetricsExport {
    /// Checks the file and finds the collector. Call it before the judge is made.
    pub(super) fn start(args: &Args, model: &str) -> Result<Self, Exit> {
        let file = args.metrics_file.as_deref().map(|path| MetricsFile::start(path, args)).transpose()?;
        Ok(Self { file, collector: MetricsExporter::find()?, model: model.to_owned() })
    }

    /// Exports again and again until it is dropped.
    pub(super) async fn keep_current(&self, judge: &Judge<Judgement>) {
        let write = every(WRITE_EVERY, async || self.write());
        let send = every(SEND_EVERY, async || self.send(judge).await);
        tokio::join!(write, send);
    }

    /// Exports the final counts, within the time that is left.
    pub(super) async fn finish(&self, judge: &Judge<Judgement>, left: Duration) {
        self.write();
        if timeout(left.min(FLUSH_TIMEOUT), self.send(judge)).await.is_err() {
            tracing::warn!("timed out exporting the last metrics");
        }
    }

    fn write(&self) {
        if let Some(file) = &self.file {
            file.write();
        }
    }

    async fn send(&self, judge: &Judge<Judgement>) {
        let Some(collector) = &self.collector else { return };
        let counts = judge.counts();
        let exported = ExportedCounts {
            attributes: BTreeMap::from([("model", self.model.clone())]),
            totals: &counts.totals(),
            gauges: &[(RETRY_RATIO, counts.retry_ratio())],
        };
        collector.send(&exported).await;
    }
}

async fn every(period: Duration, mut work: impl AsyncFnMut()) {
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        work().await;
    }
}
