//! The watch: one node at a time measures, opens and resolves incidents.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertStatus, AlertStep, AlertSubject, AlertTerms, Measurement, judge};
use ichido_core::time::Timestamp;
use ichido_store::alert::{Alert, NewAlert};
use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterRow};
use ichido_store::error::StoreError;
use ichido_store::message::{DeadLetterState, QueueName};
use ichido_store::node::SingletonTask;
use uuid::Uuid;

use super::AlertSettings;
use super::notification::Incident;
use super::readings::{self, Readings};
use crate::worker::maintenance::{PeriodicTask, ok_or_log};
use crate::worker::metrics;
use crate::worker::node::WorkerNode;

/// The time between measurements.
const WATCH_EVERY: Duration = Duration::from_secs(10);

/// The most dead letters that a notification names.
const MAX_NAMED_LETTERS: u32 = 3;

pub(in crate::worker) struct AlertWatch {
    node: Arc<WorkerNode>,
    alerts: Arc<AlertSettings>,
}

impl PeriodicTask for AlertWatch {
    const EVERY: Duration = WATCH_EVERY;

    async fn run_once(&mut self) {
        let firing = if self.node.has(SingletonTask::Alerts).await {
            ok_or_log("failed to measure for alerts", self.round().await).unwrap_or_default()
        } else {
            // The responsible node reports them.
            Vec::new()
        };
        for rule in AlertRule::ALL {
            metrics::firing(rule.as_str(), firing.iter().filter(|alert| alert.rule == rule).count());
        }
    }
}

impl AlertWatch {
    pub(in crate::worker) fn new(node: Arc<WorkerNode>, alerts: Arc<AlertSettings>) -> Self {
        Self { node, alerts }
    }

    /// Measures everything but the trail. Returns the firing alerts.
    async fn round(&self) -> Result<Vec<Alert>, StoreError> {
        let store = &self.node.store;
        let (now, firing) = (store.now().await?, store.alerts().firing().await?);
        let round = readings::MeasureRound { store, rules: &self.alerts.rules, now };
        let mut readings = round.measure(|destination| self.is_alert_only(destination)).await?;
        self.add_missing(&mut readings, &firing);
        for ((rule, about), reading) in readings {
            let open = firing.iter().find(|alert| alert.rule == rule && alert.about == about);
            let judge = IncidentJudge { node: &self.node, alerts: &self.alerts, now };
            judge.judge(rule, &about, reading, open).await?;
        }
        store.alerts().firing().await
    }

    /// Adds an empty reading for open incidents without one.
    ///
    /// The trail is checked elsewhere, unless its rule is off.
    fn add_missing(&self, readings: &mut Readings, firing: &[Alert]) {
        let checks_trail = self.alerts.rules.common(AlertRule::AuditBroken).is_some();
        for alert in firing.iter().filter(|alert| alert.rule != AlertRule::AuditBroken || !checks_trail) {
            readings.entry((alert.rule, alert.about.clone())).or_insert(Measurement::NOTHING);
        }
    }

    /// Returns whether a destination delivers only alerts, which raise none about themselves.
    fn is_alert_only(&self, destination: &str) -> bool {
        let notifies = self.alerts.receivers.iter().any(|receiver| receiver.destination == destination);
        let serves = self.node.queues.values().any(|served| {
            served.settings.destination == destination && !super::is_alert_queue(served.name.as_str())
        });
        notifies && !serves
    }
}

/// Judges readings at a moment of the store's clock.
pub(super) struct IncidentJudge<'a> {
    pub(super) node: &'a WorkerNode,
    pub(super) alerts: &'a AlertSettings,
    pub(super) now: Timestamp,
}

impl IncidentJudge<'_> {
    /// Acts on a reading.
    pub(super) async fn judge(
        &self,
        rule: AlertRule,
        about: &AlertSubject,
        reading: Measurement,
        open: Option<&Alert>,
    ) -> Result<(), StoreError> {
        let Some(terms) = self.alerts.rules.terms(rule, about) else { return self.close(open).await };
        let disposition =
            open.map_or(AlertStatus::Quiet, |alert| AlertStatus::Firing { clear_since: alert.clear_since });
        match (judge(terms, disposition, reading, self.now), open) {
            (AlertStep::Open, _) => self.open(rule, about, terms, reading).await,
            (AlertStep::Clear, Some(open)) => self.node.store.alerts().clear(open.id, Some(self.now)).await,
            (AlertStep::Relapse, Some(open)) => self.node.store.alerts().clear(open.id, None).await,
            (AlertStep::Resolve, Some(open)) => self.resolve(open, false).await,
            (AlertStep::Stay, _) | (AlertStep::Clear | AlertStep::Relapse | AlertStep::Resolve, None) => {
                Ok(())
            }
        }
    }

    /// Closes an incident whose rule was switched off; otherwise it would stay open forever.
    ///
    /// The first time, it is marked as clear, because only a clear incident can be resolved.
    async fn close(&self, open: Option<&Alert>) -> Result<(), StoreError> {
        match open {
            None => Ok(()),
            Some(open) if open.clear_since.is_none() => {
                self.node.store.alerts().clear(open.id, Some(self.now)).await
            }
            Some(open) => self.resolve(open, true).await,
        }
    }

    async fn open(
        &self,
        rule: AlertRule,
        about: &AlertSubject,
        terms: AlertTerms,
        reading: Measurement,
    ) -> Result<(), StoreError> {
        let (id, about) = (Uuid::now_v7(), about.clone());
        let new = NewAlert { id, rule, about, opened_at: self.now, reading, terms };
        let letters = self.newest_letters(&new).await?;
        let incident = Incident { alert: &new, resolved_at: None, is_switched_off: false, letters: &letters };
        let messages = incident.messages(self.alerts);
        if self.node.store.alerts().open(&new, messages).await? {
            // Without the letters: a key must not be logged.
            let incident = Incident { letters: &[], ..incident };
            tracing::warn!(alert_id = %id, rule = rule.as_str(), "alert: {}", incident.text());
        }
        Ok(())
    }

    /// Returns the newest letters of the queue that an alert is about, if it is about letters.
    // Spec: E3.
    async fn newest_letters(&self, alert: &NewAlert) -> Result<Vec<DeadLetterRow>, StoreError> {
        let state = match alert.rule {
            AlertRule::DeadLetter | AlertRule::DeadLetters | AlertRule::DeadSurge => DeadLetterState::Dead,
            AlertRule::Parked => DeadLetterState::Parked,
            _ => return Ok(Vec::new()),
        };
        let Some(queue) = alert.about.queue().and_then(QueueName::parse) else { return Ok(Vec::new()) };
        let filter = DeadLetterFilter { state, queue: Some(queue), ..DeadLetterFilter::default() };
        self.node.store.dead_letters().page(&filter, None, MAX_NAMED_LETTERS).await
    }

    async fn resolve(&self, open: &Alert, is_switched_off: bool) -> Result<(), StoreError> {
        // Only a clear incident is resolved.
        let Some(clear_since) = open.clear_since else { return Ok(()) };
        let incident = Incident { alert: open, resolved_at: Some(self.now), is_switched_off, letters: &[] };
        let messages = incident.messages(self.alerts);
        if self.node.store.alerts().resolve(open.id, clear_since, self.now, messages).await? {
            tracing::warn!(alert_id = %open.id, rule = open.rule.as_str(), "alert: {}", incident.text());
        }
        Ok(())
    }
}
