//! The store on SQLite beside its floors, each run on its own fresh file.

use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;

use crate::floor_sqlite as floor;
use crate::report::{ReportLine, median};
use crate::store::{callers, claim_and_settle_new, enqueue_one};

const ROUNDS: usize = 3;
const SECONDS: u32 = 3;
/// How many rows the floor writes in one transaction.
const GROUP: usize = 64;

pub(crate) async fn run() -> Vec<ReportLine> {
    let (mut ours, mut alone, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(floor::ledger(SECONDS, 1).await);
        grouped.push(floor::ledger(SECONDS, GROUP).await);
        ours.push(rate(claim_and_settle_new).await);
    }
    let mut lines = beside("ledger claim and settle on SQLite, 64 callers", ours, alone, grouped);
    let (mut ours, mut alone, mut grouped) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(floor::enqueue(SECONDS, 1).await);
        grouped.push(floor::enqueue(SECONDS, GROUP).await);
        ours.push(rate(enqueue_one).await);
    }
    lines.extend(beside("enqueue singly on SQLite, 64 callers", ours, alone, grouped));
    lines
}

fn beside(work: &str, ours: Vec<f64>, alone: Vec<f64>, grouped: Vec<f64>) -> Vec<ReportLine> {
    let ours = median(ours);
    let line =
        |how: &str, floor, target| ReportLine { work: format!("{work}, against {how}"), ours, floor, target };
    vec![
        line("a commit for each call", median(alone), 4.0),
        line("a bare loop in groups of 64", median(grouped), 0.5),
    ]
}

/// Returns the calls per second of this work, on a fresh file.
async fn rate<W>(work: impl Fn(Store) -> W + Clone + Send + 'static) -> f64
where
    W: Future<Output = ()> + Send,
{
    let file = fresh_file();
    let store = Store::open(&file.url, 4).await.expect("the store opens");
    callers(&store, SECONDS, work).await
}
