//! The measurements of one round: each alert of each known subject.

use std::collections::BTreeMap;
use std::time::Duration;

use ichido_core::alert::measure::{USUAL_WINDOWS, share, surge};
use ichido_core::alert::{AlertRule, AlertRules, AlertSubject, Measurement};
use ichido_core::lifecycle::StateName;
use ichido_core::pace::Circuit;
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::counters::SubjectCounts;
use ichido_store::error::StoreError;
use ichido_store::message::{QueueName, StateCount};

use super::is_alert_queue;
use crate::worker::pacer::Paces;

/// A circuit that nobody tried to close for this long belongs to an unused destination.
const CIRCUIT_STALE_AFTER: Duration = Duration::from_hours(24);

/// Readings by rule and subject.
pub(super) type Readings = BTreeMap<(AlertRule, AlertSubject), Measurement>;

/// One round of measurements.
pub(super) struct MeasureRound<'a> {
    pub(super) store: &'a Store,
    pub(super) rules: &'a AlertRules,
    pub(super) now: Timestamp,
}

impl MeasureRound<'_> {
    /// Measures everything but the audit trail.
    pub(super) async fn measure(&self, mutes: impl Fn(&str) -> bool) -> Result<Readings, StoreError> {
        let counts = self.store.queues().counts().await?;
        let mut names: Vec<&str> = counts.iter().map(|count| count.queue.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let queues: Vec<QueueName> =
            names.into_iter().filter(|name| !is_alert_queue(name)).filter_map(QueueName::parse).collect();
        let mut readings = Readings::new();
        self.deaths(&queues, &mut readings).await?;
        self.traffic(&mut readings).await?;
        self.waiting(&queues, &counts, &mut readings).await?;
        for found in self.store.keys().count_unknown(self.now).await? {
            let about = AlertSubject::Operation(found.operation);
            readings.insert((AlertRule::UnknownOutcome, about), Measurement::of_count(found.count));
        }
        for (name, rate) in Paces::new(self.store.clone()).list().await? {
            if !mutes(&name) {
                let is_down = u64::from(self.is_down(rate.pace.circuit));
                readings.insert(
                    (AlertRule::CircuitOpen, AlertSubject::Destination(name)),
                    Measurement::of_count(is_down),
                );
            }
        }
        Ok(readings)
    }

    /// Measures messages that became dead letters.
    async fn deaths(&self, queues: &[QueueName], readings: &mut Readings) -> Result<(), StoreError> {
        for rule in [AlertRule::DeadLetter, AlertRule::DeadLetters, AlertRule::DeadSurge] {
            for window in self.rules.windows(rule) {
                let since = self.ago(window);
                let died = self.store.dead_letters().counts(queues, since, Timestamp::MAX).await?;
                let before = if rule == AlertRule::DeadSurge {
                    let from = self.ago(window.saturating_mul(USUAL_WINDOWS + 1));
                    self.store.dead_letters().counts(queues, from, since).await?
                } else {
                    BTreeMap::new()
                };
                for (queue, count) in died {
                    let usual = before.get(&queue).copied().unwrap_or(0);
                    let reading = match rule {
                        AlertRule::DeadSurge => surge(count, usual),
                        _ => Measurement::of_count(count),
                    };
                    self.add(readings, rule, AlertSubject::Queue(queue), window, reading);
                }
            }
        }
        Ok(())
    }

    /// Measures arrivals, retries and deliveries.
    async fn traffic(&self, readings: &mut Readings) -> Result<(), StoreError> {
        let rules =
            [AlertRule::FailedRetries, AlertRule::Duplicates, AlertRule::ProcessingDelay, AlertRule::LagP95];
        let mut windows: Vec<Duration> = rules.iter().flat_map(|rule| self.rules.windows(*rule)).collect();
        windows.sort_unstable();
        windows.dedup();
        for window in windows {
            for (about, counted) in self.store.series().sums(window).await? {
                if about.queue().is_some_and(is_alert_queue) {
                    continue;
                }
                for rule in rules {
                    self.add(readings, rule, about.clone(), window, traffic_reading(rule, &counted));
                }
            }
        }
        Ok(())
    }

    /// Measures waiting messages.
    async fn waiting(
        &self,
        queues: &[QueueName],
        counts: &[StateCount],
        readings: &mut Readings,
    ) -> Result<(), StoreError> {
        for queue in queues {
            let of = |stage: StateName| {
                let found = counts.iter().find(|count| count.queue == queue.as_str() && count.state == stage);
                found.map_or(0, |count| u64::try_from(count.count).unwrap_or(0))
            };
            let about = AlertSubject::Queue(queue.as_str().to_owned());
            readings.insert((AlertRule::Parked, about.clone()), Measurement::of_count(of(StateName::Parked)));
            // A failed message that is due is claimable as well.
            let waiting = of(StateName::Queued).saturating_add(of(StateName::Failed));
            let oldest = if waiting == 0 { None } else { self.store.queues().oldest(queue).await? };
            let reading = oldest.map_or(Measurement::NOTHING, |oldest| Measurement {
                value: self.now.since(oldest).as_secs_f64(),
                samples: waiting,
            });
            readings.insert((AlertRule::OldestWaiting, about), reading);
        }
        Ok(())
    }

    /// Adds a reading if its window is the one in the subject's terms.
    fn add(
        &self,
        readings: &mut Readings,
        rule: AlertRule,
        about: AlertSubject,
        window: Duration,
        reading: Measurement,
    ) {
        if self.rules.terms(rule, &about).is_some_and(|terms| terms.window == Some(window)) {
            readings.insert((rule, about), reading);
        }
    }

    fn is_down(&self, circuit: Circuit) -> bool {
        match circuit {
            Circuit::Closed { .. } => false,
            Circuit::Open { until, .. } => self.now < until.plus(CIRCUIT_STALE_AFTER),
            Circuit::HalfOpen { renewed_at, .. } => self.now < renewed_at.plus(CIRCUIT_STALE_AFTER),
        }
    }

    fn ago(&self, window: Duration) -> Timestamp {
        let window = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(self.now.as_micros().saturating_sub(window))
    }
}

fn traffic_reading(rule: AlertRule, counted: &SubjectCounts) -> Measurement {
    match rule {
        AlertRule::FailedRetries => share(counted.retry_failed, counted.retried),
        AlertRule::Duplicates => share(counted.repeated, counted.arrived),
        AlertRule::ProcessingDelay => counted.left.mean(),
        AlertRule::LagP95 => counted.left.p95(),
        AlertRule::DeadLetter
        | AlertRule::DeadLetters
        | AlertRule::DeadSurge
        | AlertRule::OldestWaiting
        | AlertRule::Parked
        | AlertRule::CircuitOpen
        | AlertRule::AuditBroken
        | AlertRule::UnknownOutcome => Measurement::NOTHING,
    }
}
