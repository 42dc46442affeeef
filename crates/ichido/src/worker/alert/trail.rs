//! Verifies that the audit trail is as it was sealed.
//!
//! It reads the whole trail, so it runs rarely and apart from the other alerts.
// Spec: F5.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::alert::{AlertRule, AlertSubject, Measurement};
use ichido_store::error::StoreError;
use ichido_store::node::SingletonTask;
use tokio::time::Instant;

use super::AlertSettings;
use super::watch::IncidentJudge;
use crate::worker::maintenance::ok_or_log;
use crate::worker::node::WorkerNode;

/// The time from startup, or the start of a quick check, to the next one.
const CHECK_EVERY: Duration = Duration::from_hours(1);
/// The pause after a check, as a multiple of its duration.
///
/// A long trail is not read continuously.
const REST_FACTOR: u32 = 20;

/// When to ask again whether this node is responsible.
const RECHECK_CLAIM_AFTER: Duration = Duration::from_mins(1);

pub(in crate::worker) struct TrailWatch {
    node: Arc<WorkerNode>,
    alerts: Arc<AlertSettings>,
    /// When the next check begins, by the local clock.
    next: Duration,
}

impl TrailWatch {
    pub(in crate::worker) fn new(node: Arc<WorkerNode>, alerts: Arc<AlertSettings>) -> Self {
        let next = node.clock.elapsed() + CHECK_EVERY;
        Self { node, alerts, next }
    }

    /// Runs until it is aborted.
    pub(in crate::worker) async fn run(mut self) {
        loop {
            let started = self.node.clock.elapsed();
            if self.next <= started {
                self.next = started + self.run_once().await;
            }
            tokio::time::sleep(self.node.idle_sleep).await;
        }
    }

    /// Checks, if this node is responsible.
    ///
    /// Returns the time from its beginning to the next check.
    async fn run_once(&self) -> Duration {
        if !self.node.has(SingletonTask::Alerts).await {
            return RECHECK_CLAIM_AFTER;
        }
        // Not the worker's clock: a test that moves it in the meantime would make this a check of hours.
        let started = Instant::now();
        ok_or_log("failed to verify the audit trail", self.verify().await);
        CHECK_EVERY.max(started.elapsed().saturating_mul(REST_FACTOR))
    }

    async fn verify(&self) -> Result<(), StoreError> {
        let store = &self.node.store;
        if self.alerts.rules.common(AlertRule::AuditBroken).is_none() {
            // Nobody would use the result.
            return Ok(());
        }
        let report = store.audit().verify(self.node.audit_key.as_ref(), None).await?;
        if 0 < report.seals_keyed && !report.key_given {
            tracing::warn!("audit trail not verified for alerts: this worker lacks its key");
            return Ok(());
        }
        let firing = store.alerts().firing().await?;
        let (rule, about) = (AlertRule::AuditBroken, AlertSubject::Trail);
        let open = firing.iter().find(|alert| alert.rule == rule && alert.about == about);
        let judge = IncidentJudge { node: &self.node, alerts: &self.alerts, now: store.now().await? };
        judge.judge(rule, &about, Measurement::of_count(report.found), open).await
    }
}
