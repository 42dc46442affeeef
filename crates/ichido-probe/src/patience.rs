//! Sends a request as an honest client does: again while the target does not respond, is too busy, or is not done.
//!
//! A target under load is not broken. What came back meanwhile is recorded, and no verdict is built on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ichido_core::ledger::Profile;
use tokio::time::{Instant, sleep};

use crate::exchange::{Patience, ProbeRequest, ProbeResponse, Received};
use crate::seen::is_in_flight;
use crate::sender::ProbeSender;

/// How long a request in flight is given before it is sent again; of a busy target, the first time.
const REPEAT_EVERY: Duration = Duration::from_millis(250);
/// How often a request in flight is sent again.
const MAX_POLLS: usize = 60;
/// How often a request is sent again because the target is busy.
const MAX_BUSY: usize = 6;
/// The longest wait that a busy target may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often a request is sent again because there was no response.
const MAX_SILENT: usize = 1;

/// Requests of a run that got no outcome.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    silent: AtomicUsize,
    busy: AtomicUsize,
}

/// Sends requests within the bounds of a run.
#[derive(Clone)]
pub(crate) struct PatientSender {
    pub(crate) sender: ProbeSender,
    pub(crate) profile: Profile,
    pub(crate) sent: Arc<AtomicUsize>,
    pub(crate) max_requests: usize,
    pub(crate) deadline: Instant,
    pub(crate) lost: Arc<Lost>,
    /// Whether the target may just be starting again.
    pub(crate) may_restart: bool,
}

/// What came back at last, and the statuses before it.
pub(crate) type Outcome = (Received, Vec<Option<u16>>);

impl PatientSender {
    /// Whether this many requests may still be sent; says why not.
    pub(crate) fn check_bound(&self, requests: usize) -> Result<(), String> {
        let is_late = self.deadline <= Instant::now();
        if !is_late && self.sent.load(Ordering::Relaxed) + requests <= self.max_requests {
            return Ok(());
        }
        let lost = [(&self.lost.silent, "got no response"), (&self.lost.busy, "got 429 or 503")];
        let lost = lost.map(|(count, what)| (count.load(Ordering::Relaxed), what));
        let lost = lost.iter().filter(|(count, _)| is_late && 0 < *count);
        let lost: Vec<String> = lost.map(|(count, what)| format!("{count} {what}")).collect();
        let why = if lost.is_empty() {
            String::new()
        } else {
            format!(": of its requests, {}", lost.join(" and "))
        };
        Err(format!("the bound of the run was reached{why}; raise --max-requests or --max-time"))
    }

    /// Sends a request until its patience ends.
    pub(crate) async fn send(&self, request: &ProbeRequest) -> Result<Outcome, String> {
        let mut earlier = Vec::new();
        loop {
            self.check_bound(1)?;
            self.sent.fetch_add(1, Ordering::Relaxed);
            let received = self.sender.send(request, self.may_restart).await;
            match &received {
                Received::Response(response) if response.is_busy() => {
                    _ = self.lost.busy.fetch_add(1, Ordering::Relaxed);
                }
                Received::Response(_) | Received::Cut => (),
                Received::Closed(_) | Received::Nothing(_) | Received::NotConnected(_) => {
                    _ = self.lost.silent.fetch_add(1, Ordering::Relaxed);
                }
            }
            let Some(wait) = self.wait(request.patience, &received, &earlier) else {
                return Ok((received, earlier));
            };
            earlier.push(match received {
                Received::Response(response) => Some(response.status),
                Received::Cut | Received::Closed(_) | Received::Nothing(_) | Received::NotConnected(_) => {
                    None
                }
            });
            sleep(wait).await;
        }
    }

    /// Returns how long to wait before the request is sent again; `None` if what came back counts.
    fn wait(&self, patience: Patience, received: &Received, earlier: &[Option<u16>]) -> Option<Duration> {
        let repeats = |of: fn(&Option<u16>) -> bool| earlier.iter().filter(|one| of(one)).count();
        match (patience, received) {
            (Patience::Once, _) | (_, Received::Cut) => None,
            (_, Received::Closed(_) | Received::Nothing(_) | Received::NotConnected(_)) => {
                (repeats(Option::is_none) < MAX_SILENT).then_some(REPEAT_EVERY)
            }
            (_, Received::Response(response)) if response.is_busy() => {
                let before = repeats(|status| matches!(status, Some(429 | 503)));
                let growing = REPEAT_EVERY * u32::try_from(before + 1).unwrap_or(u32::MAX);
                (before < MAX_BUSY).then(|| retry_after(response).unwrap_or(growing).min(MAX_RETRY_AFTER))
            }
            (Patience::UntilDone, Received::Response(response)) => {
                // In some profiles a conflict has the same status, and no later response differs.
                let is_in_flight = is_in_flight(self.profile, response);
                (is_in_flight && earlier.len() < MAX_POLLS).then_some(REPEAT_EVERY)
            }
            (Patience::UntilAnswered, Received::Response(_)) => None,
        }
    }
}

/// Returns the wait that a response asks for, in seconds.
fn retry_after(response: &ProbeResponse) -> Option<Duration> {
    let secs = response.header("retry-after")?.parse().ok()?;
    Some(Duration::from_secs(secs))
}
