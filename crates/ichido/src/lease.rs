//! The leases of this process, renewed together while they are held.
//!
//! Guarantee: a lease is trusted no longer than it lasts by the local clock, counted from before the store was asked for
//! it. A lease that the store reports as lost is not renewed again, and its holder is notified. After [`run`] returns, no
//! renewal is in flight.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ichido_core::sync::lock;
use ichido_store::error::StoreError;
use tokio::sync::Notify;

use crate::clock::Clock;

/// A lease is renewed after this fraction of it.
///
/// Two more attempts fit in before it lapses.
const RENEWALS_PER_LEASE: u32 = 3;
/// The wait after the store could not be reached.
const RENEW_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The most leases per renewal.
const MAX_RENEW_BATCH: usize = 1_000;

/// Renews leases of one kind.
pub(crate) trait Renew: Send + Sync + 'static {
    /// The longest sleep between checks of the local clock.
    ///
    /// Timers do not notice that a test moves it.
    const CHECK_EVERY: Duration = Duration::MAX;

    /// What a lease covers.
    type Subject: Clone + Send + Sync;

    /// Extends leases by `lease` from now. Returns which of them are still ours, in order.
    fn renew(
        &self,
        subjects: &[Self::Subject],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<bool>, StoreError>> + Send;

    /// Handles the loss of a lease that is still held.
    fn lost(&self, subject: &Self::Subject);
}

/// The leases of one kind. [`run`] renews them.
pub(crate) struct Leases<R: Renew> {
    renewer: R,
    clock: Arc<Clock>,
    table: Mutex<LeaseTable<R::Subject>>,
    changed: Arc<Notify>,
}

struct LeaseTable<T> {
    /// The number of the next lease.
    next: u64,
    by_number: HashMap<u64, LeaseTimes<T>>,
    /// When the next renewal is planned, if any.
    planned: Option<Duration>,
    /// Leases that were requested before this time are lost.
    lost_before: Duration,
}

/// Moments of the local clock, which only moves forward.
struct LeaseTimes<T> {
    subject: T,
    lease: Duration,
    /// When it lapses, counted from before the store was asked.
    until: Duration,
    /// When to renew it.
    due: Duration,
}

impl<R: Renew> Leases<R> {
    pub(crate) fn new(renewer: R, clock: Arc<Clock>) -> Arc<Self> {
        let table = Mutex::new(LeaseTable {
            next: 0,
            by_number: HashMap::new(),
            planned: None,
            lost_before: Duration::ZERO,
        });
        Arc::new(Self { renewer, clock, table, changed: Arc::default() })
    }

    /// Holds a lease that was requested at local time `asked_at`.
    pub(crate) fn hold(
        self: &Arc<Self>,
        subject: R::Subject,
        lease: Duration,
        asked_at: Duration,
    ) -> Lease<R> {
        let (until, due) = (asked_at + lease, asked_at + lease / RENEWALS_PER_LEASE);
        let mut table = lock(&self.table);
        // Most leases end before any renewal: only one that is due sooner than planned matters.
        if table.planned.is_none_or(|planned| due < planned) {
            table.planned = Some(due);
            self.changed.notify_one();
        }
        let number = table.next;
        table.next += 1;
        if table.lost_before <= asked_at {
            table.by_number.insert(number, LeaseTimes { subject, lease, until, due });
        }
        Lease { leases: Arc::clone(self), number }
    }

    /// Loses all leases, and those that were requested but are not held yet. Returns how many were held.
    pub(crate) fn lose_all(&self) -> usize {
        let mut table = lock(&self.table);
        table.lost_before = self.clock.elapsed();
        let lost = std::mem::take(&mut table.by_number);
        for times in lost.values() {
            self.renewer.lost(&times.subject);
        }
        lost.len()
    }

    /// Renews due leases. Returns how long to wait, or `None` if nothing is held.
    async fn renew_due(&self) -> Option<Duration> {
        let mut due: BTreeMap<Duration, Vec<(u64, R::Subject)>> = BTreeMap::new();
        let now = self.clock.elapsed();
        for (number, times) in lock(&self.table).by_number.iter().filter(|(_, times)| times.due <= now) {
            due.entry(times.lease).or_default().push((*number, times.subject.clone()));
        }
        for (lease, leases) in due {
            for part in leases.chunks(MAX_RENEW_BATCH) {
                self.renew(part, lease).await;
            }
        }
        let mut table = lock(&self.table);
        table.planned = table.by_number.values().map(|times| times.due).min();
        Some(table.planned?.saturating_sub(self.clock.elapsed()).min(R::CHECK_EVERY))
    }

    async fn renew(&self, leases: &[(u64, R::Subject)], lease: Duration) {
        let asked_at = self.clock.elapsed();
        let subjects: Vec<R::Subject> = leases.iter().map(|(_, subject)| subject.clone()).collect();
        let renewed = self.renewer.renew(&subjects, lease).await;
        let now = self.clock.elapsed();
        let leases_by_number = &mut lock(&self.table).by_number;
        match renewed {
            Ok(ours) => {
                for ((number, _), is_ours) in leases.iter().zip(ours) {
                    let Some(times) = leases_by_number.get_mut(number) else { continue };
                    if is_ours {
                        (times.until, times.due) = (asked_at + lease, asked_at + lease / RENEWALS_PER_LEASE);
                    } else {
                        self.renewer.lost(&times.subject);
                        leases_by_number.remove(number);
                    }
                }
            }
            Err(error) => {
                let error = error.with_causes();
                tracing::warn!(error, leases = leases.len(), "failed to renew leases; retrying");
                for (number, _) in leases {
                    leases_by_number.entry(*number).and_modify(|times| times.due = now + RENEW_RETRY_DELAY);
                }
            }
        }
    }
}

impl<R: Renew> Drop for Leases<R> {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// Renews leases until nobody owns them any more.
pub(crate) async fn run<R: Renew>(leases: Weak<Leases<R>>) {
    let Some(changed) = leases.upgrade().map(|leases| Arc::clone(&leases.changed)) else { return };
    while let Some(alive) = leases.upgrade() {
        let wait = alive.renew_due().await;
        // Not held while waiting, or it would never be dropped.
        drop(alive);
        match wait {
            // A new lease may be due sooner.
            Some(wait) => drop(tokio::time::timeout(wait, changed.notified()).await),
            None => changed.notified().await,
        }
    }
}

/// A lease that is renewed until this is dropped.
pub(crate) struct Lease<R: Renew> {
    leases: Arc<Leases<R>>,
    number: u64,
}

impl<R: Renew> Lease<R> {
    /// Returns whether the lease holds for `duration` more.
    ///
    /// The local clock decides; in doubt, the store is asked whether the lease holds now. Call this right before an effect,
    /// because the process may have been suspended since it took the lease.
    pub(crate) async fn holds_for(&self, duration: Duration) -> bool {
        let (subject, lease) = {
            let table = lock(&self.leases.table);
            let Some(times) = table.by_number.get(&self.number) else { return false };
            if self.leases.clock.elapsed() + duration < times.until {
                return true;
            }
            (times.subject.clone(), times.lease)
        };
        // Boxed because it is rare, and every caller's future would carry its size.
        Box::pin(self.leases.renew(&[(self.number, subject)], lease)).await;
        self.holds_now()
    }

    /// Returns whether the lease holds now, by the local clock.
    pub(crate) fn holds_now(&self) -> bool {
        self.holds_at(self.leases.clock.elapsed())
    }

    /// Returns whether the lease holds at this local time, as far as is known here.
    pub(crate) fn holds_at(&self, now: Duration) -> bool {
        lock(&self.leases.table).by_number.get(&self.number).is_some_and(|times| now < times.until)
    }
}

impl<R: Renew> Drop for Lease<R> {
    fn drop(&mut self) {
        lock(&self.leases.table).by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LEASE: Duration = Duration::from_secs(3);

    /// A renewer with scripted answers that counts its calls.
    #[derive(Default)]
    struct FakeRenewer {
        answer: Mutex<Option<bool>>,
        asked: AtomicUsize,
        lost: AtomicUsize,
    }

    impl FakeRenewer {
        fn new(answer: Option<bool>) -> Arc<Self> {
            Arc::new(Self { answer: Mutex::new(answer), ..Self::default() })
        }

        fn counts(&self) -> (usize, usize) {
            (self.asked.load(Ordering::SeqCst), self.lost.load(Ordering::SeqCst))
        }
    }

    impl Renew for Arc<FakeRenewer> {
        type Subject = ();

        async fn renew(&self, subjects: &[()], _: Duration) -> Result<Vec<bool>, StoreError> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = *lock(&self.answer);
            answer.map(|is_ours| vec![is_ours; subjects.len()]).ok_or(StoreError::Busy)
        }

        fn lost(&self, (): &()) {
            self.lost.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn hold_lease(fake: &Arc<FakeRenewer>) -> Lease<Arc<FakeRenewer>> {
        let clock = Arc::new(Clock::local());
        let leases = Leases::new(Arc::clone(fake), Arc::clone(&clock));
        tokio::spawn(run(Arc::downgrade(&leases)));
        leases.hold((), LEASE, clock.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn lease_is_renewed_while_held() {
        let fake = FakeRenewer::new(Some(true));
        let lease = hold_lease(&fake);
        tokio::time::sleep(LEASE * 10).await;
        assert!(lease.holds_now());
        assert_eq!(fake.counts().1, 0);
        let leases = Arc::downgrade(&lease.leases);
        drop(lease);
        let asked = fake.counts();
        tokio::time::sleep(LEASE * 10).await;
        assert_eq!(fake.counts(), asked, "no lease is held");
        assert!(leases.upgrade().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn lost_lease_is_reported_once_and_not_renewed() {
        let fake = FakeRenewer::new(Some(false));
        let lease = hold_lease(&fake);
        assert!(lease.holds_for(LEASE / 2).await, "by our own clock, which needs no store");
        tokio::time::sleep(LEASE / 2).await;
        assert!(!lease.holds_now());
        assert!(!lease.holds_for(Duration::ZERO).await);
        tokio::time::sleep(LEASE * 10).await;
        assert_eq!(fake.counts(), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn all_leases_are_lost_with_the_node_that_held_them() {
        let fake = FakeRenewer::new(Some(true));
        let lease = hold_lease(&fake);
        let leases = Arc::clone(&lease.leases);
        let asked_at = leases.clock.elapsed();
        tokio::time::sleep(LEASE / 2).await;
        assert_eq!((leases.lose_all(), fake.counts().1), (1, 1));
        assert!(!lease.holds_for(Duration::ZERO).await);
        assert!(!leases.hold((), LEASE, asked_at).holds_now(), "requested before");
        assert!(leases.hold((), LEASE, leases.clock.elapsed()).holds_now());
    }

    #[tokio::test(start_paused = true)]
    async fn lease_is_not_trusted_past_its_end_during_outage() {
        let fake = FakeRenewer::new(None);
        let lease = hold_lease(&fake);
        tokio::time::sleep(LEASE.saturating_sub(Duration::from_millis(1))).await;
        assert!(lease.holds_now());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!lease.holds_now());
        assert!(!lease.holds_for(Duration::ZERO).await);
        *lock(&fake.answer) = Some(true);
        assert!(lease.holds_for(LEASE / 2).await, "the store says that it is ours still");
        assert!(1 < fake.counts().0 && fake.counts().1 == 0);
    }
}
