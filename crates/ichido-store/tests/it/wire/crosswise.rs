//! Batches of the same rows in opposite order never deadlock: the server counts every deadlock that it breaks.

use ichido_core::fence::Fence;
use ichido_core::ledger::OperationGuarantee;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::KeyClaimed;
use ichido_store::message::{ClaimOptions, ClaimedMessage, Note, Settlement};
use ichido_store::testing::postgres::{Cluster, PgTestDatabase};
use ichido_store::testing::while_busy;

use super::words::{assert_never_deadlocked, claim, keep, name};
use crate::fixture::{LEASE, many, message, queue, succeeded, terms, will_retry, with_time_limit};

const ROUNDS: usize = 30;
const ROWS: usize = 300;

/// Two nodes on a server that detects deadlocks at once, before any lock timeout.
struct TwoNodes {
    one: Store,
    two: Store,
    database: PgTestDatabase,
    _cluster: Cluster,
}

impl TwoNodes {
    async fn start() -> Self {
        let cluster = Cluster::start(&[("deadlock_timeout", "1ms")]).unwrap();
        let database = cluster.database().await.unwrap();
        let one = Store::open(&database.url, 4).await.unwrap();
        let two = Store::open(&database.url, 4).await.unwrap();
        Self { one, two, database, _cluster: cluster }
    }

    async fn assert_never_deadlocked(self) {
        let Self { one, two, database, _cluster } = self;
        assert_never_deadlocked([one, two], &database.url).await;
    }

    /// Enqueues messages and claims them, this many per claim.
    async fn work(&self, round: usize, by: u32, terms: ClaimOptions) -> Vec<ClaimedMessage> {
        let enqueued = self.one.messages().enqueue_all(keys(round).map(|key| message(&key)).collect()).await;
        assert!(enqueued.iter().all(Result::is_ok), "{enqueued:?}");
        let mut work = Vec::new();
        while work.len() < ROWS {
            work.extend(self.one.claims().claim(&queue(), many(by), terms).await.unwrap());
        }
        work
    }
}

fn keys(round: usize) -> impl Iterator<Item = String> {
    (0..ROWS).map(move |number| format!("{round}-{number}"))
}

/// Runs all at once, with as many callers. Returns the results in the same order.
async fn at_once<T: Send + 'static>(
    calls: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = calls.map(tokio::spawn).collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

/// Asserts that every result is applied or `Busy` after a lock timeout, which is not a deadlock.
fn all_stand<const COUNT: usize>(answers: [Result<Vec<bool>, StoreError>; COUNT]) {
    for answer in answers {
        match answer {
            Err(StoreError::Busy) => (),
            answer => assert!(answer.unwrap().into_iter().all(|stands| stands)),
        }
    }
}

fn fences(work: &[ClaimedMessage]) -> Vec<Fence> {
    let mut fences: Vec<Fence> = work.iter().map(|work| work.fence).collect();
    fences.dedup();
    fences
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn puts_of_the_same_keys_never_deadlock() {
    with_time_limit(Box::pin(async {
        let nodes = TwoNodes::start().await;
        for round in 0..ROUNDS {
            let forth: Vec<_> = keys(round).map(|key| message(&key)).collect();
            let back: Vec<_> = forth.iter().rev().cloned().collect();
            tokio::join!(nodes.one.messages().enqueue_all(forth), nodes.two.messages().enqueue_all(back));
        }
        nodes.assert_never_deadlocked().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_renewals_and_settles_of_the_same_keys_never_deadlock() {
    with_time_limit(Box::pin(async {
        let nodes = TwoNodes::start().await;
        let claims = async |store: &Store, keys: Vec<String>| {
            let calls = keys.into_iter().map(|key| {
                let store = store.clone();
                async move {
                    let claimed =
                        while_busy(|| store.keys().claim(claim(&key, OperationGuarantee::None))).await;
                    (key, claimed)
                }
            });
            at_once(calls).await
        };
        let settles = async |store: &Store, mine: Vec<(String, Fence)>| {
            let calls = mine.into_iter().map(|(key, fence)| {
                let store = store.clone();
                async move { store.keys().settle(keep(&key, fence)).await }
            });
            at_once(calls).await
        };
        for round in 0..ROUNDS {
            let (forth, back) =
                (keys(round).collect(), keys(round).collect::<Vec<_>>().into_iter().rev().collect());
            let (forth, back) = tokio::join!(claims(&nodes.one, forth), claims(&nodes.two, back));
            let mine: Vec<(String, Fence)> = forth
                .into_iter()
                .chain(back)
                .filter_map(|(key, claimed)| match claimed {
                    KeyClaimed::Run { fence, .. } => Some((key, fence)),
                    _ => None,
                })
                .collect();
            assert_eq!(mine.len(), ROWS);
            let forth: Vec<_> = mine.iter().map(|(key, fence)| (name(key), *fence, LEASE)).collect();
            let back: Vec<_> = forth.iter().rev().cloned().collect();
            let (one, two) = tokio::join!(nodes.one.keys().renew(&forth), nodes.two.keys().renew(&back));
            all_stand([one, two]);
            // Both settle all of them: a repeated settle changes nothing, but takes locks.
            let back = mine.iter().rev().cloned().collect();
            tokio::join!(settles(&nodes.one, mine), settles(&nodes.two, back));
        }
        nodes.assert_never_deadlocked().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_about_the_same_messages_never_deadlock() {
    with_time_limit(Box::pin(async {
        let nodes = TwoNodes::start().await;
        for round in 0..ROUNDS {
            let work = nodes.work(round, 20, terms()).await;
            let report = |work: &ClaimedMessage, succeeds: bool| {
                let event = if succeeds { succeeded(work) } else { will_retry(work) };
                Settlement::new(work, event, Note::default())
            };
            let reports = |odd: bool| -> Vec<Settlement> {
                work.iter().enumerate().map(|(index, work)| report(work, (index % 2 == 1) == odd)).collect()
            };
            let back = reports(round % 2 == 1).into_iter().rev().collect();
            tokio::join!(nodes.one.claims().settle_all(reports(false)), nodes.two.claims().settle_all(back));
        }
        nodes.assert_never_deadlocked().await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewals_and_beginnings_of_the_same_messages_never_deadlock() {
    with_time_limit(Box::pin(async {
        let nodes = TwoNodes::start().await;
        for round in 0..ROUNDS {
            let work = nodes.work(round, 2, ClaimOptions { start_marks: true, ..terms() }).await;
            let calls: Vec<_> = work.iter().map(|work| (work.id, work.fence)).collect();
            let back: Vec<_> = calls.iter().rev().copied().collect();
            let (one, two) =
                tokio::join!(nodes.one.claims().mark_started(&calls), nodes.two.claims().mark_started(&back));
            all_stand([one, two]);
            let forth = fences(&work);
            let back: Vec<_> = forth.iter().rev().copied().collect();
            let (one, two, three) = tokio::join!(
                nodes.one.claims().renew(&forth, LEASE),
                nodes.two.claims().renew(&back, LEASE),
                nodes.two.claims().mark_started(&calls),
            );
            all_stand([one, two, three]);
        }
        nodes.assert_never_deadlocked().await;
    }))
    .await;
}
