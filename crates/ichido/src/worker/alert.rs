//! Alerts: who is told of them, and the watch that opens and ends their incidents (SPEC A15, D8, D19, E5).
//!
//! Guarantee: an incident is told of once when it opens and once when it is over, to each receiver, however often and by however many
//! nodes it is looked at: it is one row of the store, and what tells of it is put into the outbox in the same transaction, under a key
//! made of the incident. What tells of alerts raises none.
//!
//! `watch` is the round that one node makes, `readings` what is measured in it, `trail` the look at the audit trail, which takes longer;
//! `telling` is what receivers get.

mod notification;
mod readings;
mod trail;
mod watch;

pub(super) use trail::TrailWatch;
pub(super) use watch::Watch;

use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::alert::Rules;
use ichido_core::retry::{Jitter, Retry, Schedule};

use super::settings::Queue;

/// What the queues of alerts are called: this, and the receiver's name.
pub const QUEUE_PREFIX: &str = "ichido-alerts.";

/// Which alerts there are, and who is told. All workers on one database should say the same: one of them watches at a time.
#[derive(Clone, Debug, Default)]
pub struct Alerts {
    /// On which terms they fire.
    pub rules: Rules,
    /// Who is told. Incidents are kept and listed without any, too.
    pub receivers: Vec<Receiver>,
}

/// Somebody who is told of alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its name, and that of its queue after [`QUEUE_PREFIX`].
    pub name: String,
    /// The name of the destination that it is told by.
    pub destination: String,
    /// In which form.
    pub form: Form,
}

ichido_core::words! {
    /// What a receiver gets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Form {
        /// An event of JSON: `type` (`alert.opened`, `alert.resolved`), `timestamp`, `data`.
        Webhook = "webhook",
        /// `{"text": "…"}`, as Slack and what is like it take it.
        Slack = "slack",
    }
}

impl Receiver {
    /// The name of its queue.
    pub fn queue(&self) -> String {
        format!("{QUEUE_PREFIX}{}", self.name)
    }
}

impl Alerts {
    /// The queues that tell receivers.
    pub fn queues(&self) -> Vec<Queue> {
        let queue = |receiver: &Receiver| Queue {
            retry: NOTIFICATION_RETRY.clone(),
            requeue: true,
            ..Queue::new(receiver.queue(), &receiver.destination)
        };
        self.receivers.iter().map(queue).collect()
    }
}

/// Nobody else tells that nobody was told: a receiver that is away is tried for about a day.
const NOTIFICATION_RETRY: Retry = Retry {
    schedule: Schedule::Exponential { base: Duration::from_secs(2), factor: 2, cap: Duration::from_mins(5) },
    jitter: Jitter::PlusMinus(0.1),
    tries: NonZeroU32::new(300).expect("300 is not zero"),
};

/// Whether a queue tells of alerts, and so raises none. To be told twice does no harm.
pub(super) fn is_alert_queue(queue: &str) -> bool {
    queue.starts_with(QUEUE_PREFIX)
}
