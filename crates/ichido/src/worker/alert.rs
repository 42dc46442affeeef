//! Alerts: their receivers, and the watch that opens and resolves incidents.
//!
//! Guarantee: each receiver is notified once when an incident opens and once when it resolves, however often and by however
//! many nodes it is evaluated. An incident is one row of the store, and its notifications are enqueued in the same
//! transaction, under a key derived from the incident. Notifications raise no alerts themselves.
//!
//! `watch` is the round of one node, `readings` its measurements, `trail` the slower check of the audit trail, and
//! `notification` what receivers get.
// Spec: A15, D8, D19, E5.

mod notification;
mod readings;
mod trail;
mod watch;

pub(super) use trail::TrailWatch;
pub(super) use watch::AlertWatch;

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::alert::AlertRules;
use ichido_core::retry::{Jitter, Retry, Schedule};

use super::settings::QueueConfig;

/// The prefix of an alert queue; the receiver's name follows.
pub const QUEUE_PREFIX: &str = "ichido-alerts.";

/// The alert rules and their receivers.
///
/// Use the same on all workers of a database: one of them watches at a time.
#[derive(Clone, Debug, Default)]
pub struct AlertSettings {
    /// When alerts fire.
    pub rules: AlertRules,
    /// Who is notified. Without receivers, incidents are still recorded and listed.
    pub receivers: Vec<AlertReceiver>,
}

/// A receiver of alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertReceiver {
    /// Its name; also that of its queue, after [`QUEUE_PREFIX`].
    pub name: String,
    /// The name of the destination that delivers its notifications.
    pub destination: String,
    /// Their format.
    pub format: AlertFormat,
}

ichido_core::words! {
    /// The format of a notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AlertFormat {
        /// A JSON event: `type` (`alert.opened`, `alert.resolved`), `timestamp`, `data`.
        Webhook = "webhook",
        /// `{"text": "…"}`, for Slack and compatible services.
        Slack = "slack",
    }
}

impl AlertReceiver {
    /// Returns the name of its queue.
    pub fn queue(&self) -> String {
        format!("{QUEUE_PREFIX}{}", self.name)
    }
}

impl AlertSettings {
    /// Returns the queues of the receivers.
    pub fn queues(&self) -> Vec<QueueConfig> {
        let queue = |receiver: &AlertReceiver| QueueConfig {
            retry: NOTIFICATION_RETRY.clone(),
            requeue: Some(true),
            ..QueueConfig::new(receiver.queue(), &receiver.destination)
        };
        self.receivers.iter().map(queue).collect()
    }
}

/// Nobody else reports a lost notification: an unreachable receiver is retried for about a day.
const NOTIFICATION_RETRY: Retry = Retry {
    schedule: Schedule::Exponential { base: Duration::from_secs(2), factor: 2, cap: Duration::from_mins(5) },
    jitter: Jitter::PlusMinus(0.1),
    max_attempts: NonZeroU32::new(300).expect("300 is not zero"),
};

/// Returns whether a queue delivers alerts, and so raises none. A repeated alert is harmless.
pub(super) fn is_alert_queue(queue: &str) -> bool {
    queue.starts_with(QUEUE_PREFIX)
}
