//! The look at the audit trail: whether it is as it was sealed (SPEC F5). It reads all of the trail, so it is seldom, and apart from
//! the other alerts.

use std::sync::Arc;
use std::time::Duration;

use ichido_core::alert::{About, Reading, Rule};
use ichido_store::error::StoreError;
use ichido_store::node::Duty;
use tokio::time::Instant;

use super::Alerts;
use super::watch::IncidentJudge;
use crate::worker::maintenance::ok_or_log;
use crate::worker::node::WorkerNode;

/// How long after the start, and after the beginning of a look that was quick, the next one begins.
const LOOK_EVERY: Duration = Duration::from_hours(1);
/// How many times as long as a look took nobody looks after it: a long trail is not read all the time.
const REST_FACTOR: u32 = 20;

/// When to ask again whether it is ours to look.
const RECHECK_CLAIM_AFTER: Duration = Duration::from_mins(1);

pub(in crate::worker) struct TrailWatch {
    node: Arc<WorkerNode>,
    alerts: Arc<Alerts>,
    /// When the next look begins, by our own clock.
    next: Duration,
}

impl TrailWatch {
    pub(in crate::worker) fn new(node: Arc<WorkerNode>, alerts: Arc<Alerts>) -> Self {
        let next = node.clock.own() + LOOK_EVERY;
        Self { node, alerts, next }
    }

    /// Goes on until it is aborted.
    pub(in crate::worker) async fn run(mut self) {
        loop {
            let began = self.node.clock.own();
            if self.next <= began {
                self.next = began + self.run_once().await;
            }
            tokio::time::sleep(self.node.idle_sleep).await;
        }
    }

    /// Looks, if that is ours to do, and answers after how long from the beginning to come again.
    async fn run_once(&self) -> Duration {
        if !self.node.has(Duty::Alerts).await {
            return RECHECK_CLAIM_AFTER;
        }
        // Not by the worker's clock: a test that moves that one meanwhile would make it a look of hours.
        let began = Instant::now();
        ok_or_log("the audit trail could not be verified", self.look().await);
        LOOK_EVERY.max(began.elapsed().saturating_mul(REST_FACTOR))
    }

    async fn look(&self) -> Result<(), StoreError> {
        let store = &self.node.store;
        if self.alerts.rules.common(Rule::AuditBroken).is_none() {
            // Reading all of it would be for nobody.
            return Ok(());
        }
        let report = store.audit().verify(self.node.audit_key.as_ref(), None).await?;
        if 0 < report.seals_keyed && !report.key_given {
            tracing::warn!(
                "the audit trail is sealed under a key that this worker does not have, so that it is not verified for alerts"
            );
            return Ok(());
        }
        let firing = store.alerts().firing().await?;
        let (rule, about) = (Rule::AuditBroken, About::Trail);
        let open = firing.iter().find(|alert| alert.rule == rule && alert.about == about);
        let judge = IncidentJudge { node: &self.node, alerts: &self.alerts, now: store.now().await? };
        judge.judge(rule, &about, Reading::of_count(report.found), open).await
    }
}
