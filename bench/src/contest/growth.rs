//! How the cost of a message grows with history, payload and workers: ours only, on both databases.

use ichido_store::testing::postgres::Cluster;
use ichido_store::testing::sqlite::fresh_file;

use super::contestant::{CONTESTANTS, Contestant, Program};
use super::fresh::Fresh;
use super::protocol::{Part, Task};
use super::results::{Measurement, Results};
use super::{BYTES, measure};

/// The names under which both databases are listed.
pub(crate) const ON_POSTGRES: &str = "Ichido on PostgreSQL";
pub(crate) const ON_SQLITE: &str = "Ichido on SQLite";

pub(crate) const PAYLOADS: [usize; 4] = [100, 1_000, 8_000, 64 << 10];
pub(crate) const WORKERS: [usize; 4] = [1, 2, 4, 8];
/// Payload bytes of one measurement, at most.
const MAX_BYTES: usize = 128 << 20;
/// Messages that become history at a time.
const FILL_STEP: usize = 200_000;

/// Measures all curves. History is a tenth of `messages`, as many, and ten times as many.
pub(super) async fn run(cluster: &Cluster, messages: usize, results: &mut Results) {
    for name in [ON_POSTGRES, ON_SQLITE] {
        eprintln!("growth: {name}");
        let count = messages / 5;
        let payloads = PAYLOADS.map(|bytes| (count.min(MAX_BYTES / bytes), bytes, 1));
        let workers = WORKERS.map(|workers| (count, BYTES, workers));
        for (count, bytes, workers) in payloads.into_iter().chain(workers) {
            let mut curve = Curve::new(name, cluster, results).await;
            curve.point(count, bytes, workers, 0).await;
            curve.database.remove(cluster).await;
        }
        let mut curve = Curve::new(name, cluster, results).await;
        let mut history = 0;
        for wanted in [messages / 10, messages, messages * 10] {
            curve.fill(wanted - history).await;
            curve.point(count, BYTES, 1, wanted).await;
            history = wanted + count;
        }
        curve.database.remove(cluster).await;
    }
}

/// One database on which points are measured.
struct Curve<'a> {
    name: &'static str,
    database: Fresh,
    results: &'a mut Results,
}

impl<'a> Curve<'a> {
    async fn new(name: &'static str, cluster: &Cluster, results: &'a mut Results) -> Self {
        let database = match name {
            ON_SQLITE => Fresh::Sqlite(fresh_file()),
            _ => Fresh::postgres(cluster).await,
        };
        Self { name, database, results }
    }

    /// Measures an enqueue in bulk and the drain of it.
    async fn point(&mut self, count: usize, bytes: usize, workers: usize, history: usize) {
        for part in [Part::EnqueueBulk, Part::Drain] {
            let task = Task { part, url: self.database.url(), count, bytes, rate: 0.0, workers };
            let sample = measure(&ours(), &task, self.database.probe()).await;
            let measurement = Measurement { history, ..Measurement::of(self.name, &task) };
            self.results.add(measurement, sample);
            self.database.vacuum().await;
        }
    }

    /// Enqueues and drains messages, so they are history; in steps that each end within the time of a part.
    async fn fill(&mut self, count: usize) {
        for first in (0..count).step_by(FILL_STEP) {
            let count = FILL_STEP.min(count - first);
            for part in [Part::EnqueueBulk, Part::Drain] {
                let task =
                    Task { part, url: self.database.url(), count, bytes: BYTES, rate: 0.0, workers: 1 };
                measure(&ours(), &task, self.database.probe()).await;
                self.database.vacuum().await;
            }
        }
    }
}

fn ours() -> Contestant {
    *CONTESTANTS.iter().find(|it| it.program == Program::Ours).expect("ours takes part")
}
