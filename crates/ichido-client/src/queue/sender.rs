//! Sends entries one after the other, each until its outcome is known.
//!
//! Guarantee: an attempt is marked on disk before its first byte leaves, and its outcome is on disk before the next
//! one starts. A sender that is dropped during an attempt leaves the mark, so the next sender knows that the request
//! may have arrived.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Retry;
use ichido_core::verdict::NetworkFault;
use ichido_http::client::NetworkError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::OfflineQueue;
use super::accept::check_destination;
use super::entry::{EntryId, NextEntry, Reason, State};
use super::error::QueueError;
use super::lock::Lock;
use super::next::{self, AfterSend, MAX_RETRY_AFTER};
use super::settle::Turn;
use crate::client::Client;
use crate::decision::{AttemptHistory, GiveUpReason, NextStep, RetryRules};
use crate::response::Response;

/// How often an idle sender checks for actions and decisions of other processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often in a row [`Sender::drain`] tries an unreachable destination.
const MAX_DRAIN_OFFLINE: u32 = 3;

/// How entries are sent.
#[derive(Clone, Debug)]
pub struct SendSettings {
    /// How often an entry may fail, and how long to wait in between. [`Retry::CLIENT`]: 1 s, 2 s, and 0 to 10 % more;
    /// 3 attempts.
    // Spec: A9.
    pub retry: Retry,
    /// How long the server keeps a key. 72 h. An entry that was sent longer ago is held.
    // Spec: A2.
    pub keeps_keys_for: Duration,
    /// The proof that a success must show besides its status, given the entry's key.
    ///
    /// A network's login page also responds with 200, and would make an entry disappear. Without a proof any 2xx is
    /// enough.
    pub proof: Option<Proof>,
}

/// Whether a response comes from the intended server.
pub type Proof = fn(&Response, &IdempotencyKey) -> bool;

impl Default for SendSettings {
    fn default() -> Self {
        Self { retry: Retry::CLIENT, keeps_keys_for: Duration::from_hours(72), proof: None }
    }
}

/// Sends the entries of one destination. Only one exists at a time, across all processes.
#[derive(Debug)]
pub struct Sender {
    queue: OfflineQueue,
    destination: String,
    client: Arc<Client>,
    rules: RetryRules,
    keeps_keys_for: Duration,
    proof: Option<Proof>,
    _lock: Lock,
    /// Consecutive failures: the destination was unreachable, or an entry's attempts were spent.
    failures_in_a_row: u32,
    /// The end of the pause after such a failure.
    paused_until: Option<Instant>,
    look: watch::Receiver<()>,
    online: watch::Receiver<()>,
}

/// The result of one step.
#[derive(Debug)]
pub enum StepOutcome {
    /// There is nothing to send.
    Idle,
    /// Nothing is due for this long.
    Wait(Duration),
    /// Something happened to an entry.
    Event(Event),
}

/// An event of an entry.
#[derive(Debug)]
pub struct Event {
    /// The entry.
    pub entry: EntryId,
    /// Its key.
    pub key: IdempotencyKey,
    /// The kind of event.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Debug)]
pub enum EventKind {
    /// It was done, now or at an earlier attempt ([`Response::is_replay`]), and was removed.
    Sent {
        /// The server's response.
        answer: Response,
    },
    /// It was marked as failed.
    Failed {
        /// The reason.
        reason: Reason,
        /// The response that refused it; `None` if its attempts are spent.
        refused: Option<Response>,
    },
    /// It is held for a person.
    Held {
        /// The reason.
        reason: Reason,
    },
    /// An attempt failed and will be retried.
    Waits {
        /// The reason.
        reason: Reason,
        /// The wait before the retry.
        wait: Duration,
    },
    /// The server is still working and is asked again.
    InFlight {
        /// The wait before that.
        wait: Duration,
    },
    /// The destination was unreachable, and nothing was sent.
    Offline {
        /// The reason.
        reason: Reason,
        /// The wait before the next attempt, unless the network is reported back earlier.
        wait: Duration,
    },
}

/// Why [`Sender::drain`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Nothing is waiting. Failed and held entries are still there.
    Empty,
    /// The destination is unreachable.
    Offline,
    /// The next attempt is not due for this long.
    Waits(Duration),
    /// It was asked to stop.
    Stopped,
}

impl OfflineQueue {
    /// Creates the sender of a destination.
    ///
    /// `client` provides the credentials and the timeouts of one attempt. `destination` is the name under which
    /// actions were accepted.
    pub async fn sender(
        &self,
        destination: &str,
        client: Arc<Client>,
        terms: SendSettings,
    ) -> Result<Sender, QueueError> {
        check_destination(destination)?;
        let retry = terms.retry.checked().map_err(|error| QueueError::Settings(format!("retry: {error}")))?;
        if terms.keeps_keys_for <= client.limits.total {
            return Err(QueueError::Settings(format!(
                "keeps_keys_for is {:?}, but one attempt may take {:?}; it must be longer than one attempt",
                terms.keeps_keys_for, client.limits.total
            )));
        }
        let (file, name) = (Arc::clone(&self.file), destination.to_owned());
        let taken = tokio::task::spawn_blocking(move || Lock::take(&file, &name)).await;
        let lock = taken.map_err(|error| QueueError::Unusable(error.to_string()))??;
        let mut rules = client.rules.clone();
        (rules.retry, rules.max_retry_after) = (retry, MAX_RETRY_AFTER);
        Ok(Sender {
            queue: self.clone(),
            destination: destination.to_owned(),
            client,
            rules,
            keeps_keys_for: terms.keeps_keys_for,
            proof: terms.proof,
            _lock: lock,
            failures_in_a_row: 0,
            paused_until: None,
            look: self.signals.look.subscribe(),
            online: self.signals.online.subscribe(),
        })
    }
}

impl Sender {
    /// Does the next step, if there is one: at most one attempt.
    pub async fn step(&mut self) -> Result<StepOutcome, QueueError> {
        if let Some(until) = self.paused_until {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Ok(StepOutcome::Wait(left));
            }
            self.paused_until = None;
        }
        let turn = self.queue.turn(&self.destination, self.keeps_keys_for, self.client.limits.total).await?;
        match turn {
            Turn::Nothing => Ok(StepOutcome::Idle),
            Turn::Wait(wait) => Ok(StepOutcome::Wait(wait)),
            Turn::SetAside { entry, state: State::Held, reason } => {
                Ok(event_outcome(entry, EventKind::Held { reason }))
            }
            Turn::SetAside { entry, reason, .. } => {
                Ok(event_outcome(entry, EventKind::Failed { reason, refused: None }))
            }
            Turn::Send(entry) => self.send(entry).await,
        }
    }

    async fn send(&mut self, entry: NextEntry) -> Result<StepOutcome, QueueError> {
        let before = AttemptHistory { sent: 0, failed: entry.history.attempts, effect: entry.history.effect };
        let mut seen = self.client.try_action(&entry.action).await;
        let mut decided = Client::judge_with(&self.rules, &entry.action, before, &seen);
        if let (NextStep::Done, Ok(answer), Some(proof)) = (decided, &seen, self.proof)
            && !proof(answer, &entry.key)
        {
            let why = format!(
                "the response {} is not from this server; is a network login page in the way?",
                answer.status
            );
            // The effect is unknown: the machine that responded may have passed the request on.
            seen = Err(NetworkError::new(NetworkFault::ResponseCut, why));
            decided = Client::judge_with(&self.rules, &entry.action, before, &seen);
        }
        let after = next::after(&entry.history, decided, seen.as_ref().err().map(|fault| fault.kind));
        let why = if let AfterSend::Fail { why, .. } = after { why } else { None };
        let reason = reason(&seen, why);
        self.queue.settle(&entry, &after, &reason).await?;
        let rest = self.pause_after(&after);
        let what = match (after, seen) {
            (AfterSend::Remove, Ok(answer)) => EventKind::Sent { answer },
            (AfterSend::Fail { why: None, .. }, Ok(answer)) => {
                EventKind::Failed { reason, refused: Some(answer) }
            }
            (AfterSend::Ask { wait }, _) => EventKind::InFlight { wait },
            (AfterSend::Retry { wait, .. }, _) => EventKind::Waits { reason, wait },
            (AfterSend::Offline, _) => EventKind::Offline { reason, wait: rest },
            // An error is never a success: the core does not judge it as one.
            (AfterSend::Fail { .. } | AfterSend::Remove, _) => EventKind::Failed { reason, refused: None },
        };
        tracing::debug!(key = entry.key.log_hash(), entry = %entry.id, next = ?after, "attempt finished");
        Ok(event_outcome(entry, what))
    }

    /// Pauses longer and longer after failures.
    ///
    /// A destination that is unreachable or fails every entry gets a pause, so an outage does not use up the attempts
    /// of all waiting entries.
    fn pause_after(&mut self, after: &AfterSend) -> Duration {
        let is_trouble =
            matches!(after, AfterSend::Offline | AfterSend::Fail { why: Some(GiveUpReason::TriesSpent), .. });
        if !is_trouble {
            self.failures_in_a_row = 0;
            return Duration::ZERO;
        }
        let rest = next::offline_backoff(self.failures_in_a_row, fastrand::f64());
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        self.paused_until = Some(Instant::now() + rest);
        rest
    }

    /// Sends entries and waits for more until `stop` completes, then finishes the current attempt.
    ///
    /// It reports every event. Dropping the future cancels the current attempt, which is safe: the mark stays.
    pub async fn run(
        &mut self,
        stop: impl Future<Output = ()>,
        on_event: impl FnMut(Event),
    ) -> Result<(), QueueError> {
        self.work(None, pin!(stop), on_event).await.map(drop)
    }

    /// Sends entries until none is waiting.
    ///
    /// It also returns if the destination is unreachable, if the next attempt is not due within `patience`, or if
    /// `stop` completes.
    pub async fn drain(
        &mut self,
        patience: Duration,
        stop: impl Future<Output = ()>,
        on_event: impl FnMut(Event),
    ) -> Result<DrainOutcome, QueueError> {
        self.work(Some(patience), pin!(stop), on_event).await
    }

    async fn work(
        &mut self,
        patience: Option<Duration>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
        mut on_event: impl FnMut(Event),
    ) -> Result<DrainOutcome, QueueError> {
        let mut offline_in_a_row = 0;
        loop {
            // Check only between attempts, so the current one is finished.
            tokio::select! {
                biased;
                () = stop.as_mut() => return Ok(DrainOutcome::Stopped),
                () = std::future::ready(()) => {}
            }
            let wait = match (self.step().await?, patience) {
                (StepOutcome::Event(event), patience) => {
                    let is_offline = matches!(event.kind, EventKind::Offline { .. });
                    offline_in_a_row = if is_offline { offline_in_a_row + 1 } else { 0 };
                    on_event(event);
                    if patience.is_some() && MAX_DRAIN_OFFLINE <= offline_in_a_row {
                        return Ok(DrainOutcome::Offline);
                    }
                    continue;
                }
                (StepOutcome::Idle, Some(_)) => return Ok(DrainOutcome::Empty),
                (StepOutcome::Idle, None) => POLL_INTERVAL,
                (StepOutcome::Wait(wait), Some(patience)) if patience < wait => {
                    return Ok(DrainOutcome::Waits(wait));
                }
                (StepOutcome::Wait(wait), _) => wait.min(POLL_INTERVAL),
            };
            tokio::select! {
                biased;
                () = stop.as_mut() => return Ok(DrainOutcome::Stopped),
                () = self.rest(wait) => {}
            }
        }
    }

    /// Waits, unless this process accepts or decides something or reports the network back.
    pub async fn rest(&mut self, wait: Duration) {
        tokio::select! {
            () = sleep(wait) => {}
            Ok(()) = self.look.changed() => {}
            Ok(()) = self.online.changed() => (self.paused_until, self.failures_in_a_row) = (None, 0),
        }
    }
}

fn event_outcome(entry: NextEntry, what: EventKind) -> StepOutcome {
    StepOutcome::Event(Event { entry: entry.id, key: entry.key, kind: what })
}

/// Describes an attempt that was not a success.
fn reason(seen: &Result<Response, NetworkError>, why: Option<GiveUpReason>) -> Reason {
    let (code, mut text) = match seen {
        Ok(answer) => {
            let problem = answer.problem();
            let words =
                problem.detail.or(problem.title).map(|words| format!(": {words}")).unwrap_or_default();
            let code = problem.code.unwrap_or_else(|| format!("status_{}", answer.status));
            (code, format!("the server returned {}{words}", answer.status))
        }
        Err(fault) => ("no_answer".to_owned(), fault.why.clone()),
    };
    if let Some(why) = why {
        text.push_str("; ");
        text.push_str(&why.to_string());
    }
    Reason::new(&code, &text)
}
