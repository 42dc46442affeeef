//! Processes many letters, a limited number at a time.

use std::collections::BTreeMap;

use ichido_core::lifecycle::{Decision, StepRefusal};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::dead_letter::{DeadLetterFilter, DeadLetterRow, DeadLetterStep, Disposition, LetterTraits};
use ichido_store::error::StoreError;
use ichido_store::message::{DeadLetterState, Note};
use uuid::Uuid;

use super::canary::{Canary, CanaryCounts, goal};
use super::claim::BulkClaim;
use super::policy::{RequeuePolicies, RequeueRefusal};
use super::preflight::Preflight;
use super::{Resolution, record_resolution};

/// The limits of a bulk operation.
pub mod limits {
    use std::time::Duration;

    /// The most letters per batch: one transaction, which others wait for.
    pub const MAX_BATCH: u32 = 500;
    /// The most messages watched per canary step.
    pub const MAX_WATCHED: usize = 1_000;
    /// The most failed messages that a halted canary names.
    pub const MAX_FAILED_IDS: usize = 3;
    /// How often watched messages are checked.
    pub const WATCH_EVERY: Duration = Duration::from_millis(200);
    /// The most attempts of a batch while the store is busy.
    pub const BUSY_TRIES: u32 = 20;
    /// How long a bulk operation counts as running after its last sign of life.
    ///
    /// After a kill it is abandoned after this time.
    pub const LEASE: Duration = Duration::from_secs(15);
}

/// What to do with letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Requeue them.
    Requeue {
        /// Requeue a few first.
        canary: Option<Canary>,
    },
    /// Mark them as needing no more attention.
    Discard,
    /// Decide their unknown effect.
    // Spec: F2.
    Decide {
        /// What a person found out.
        decision: Decision,
        /// Send a few again first; only parked messages that were not done are sent.
        canary: Option<Canary>,
    },
}

impl BulkAction {
    /// Returns whether it would apply to a letter, or why not.
    ///
    /// A discard ignores the queue's policy.
    pub fn judge(
        self,
        policies: &RequeuePolicies,
        letter: &LetterTraits,
        now: Timestamp,
    ) -> Result<(), RequeueRefusal> {
        match (self, letter.state, letter.disposition) {
            (Self::Requeue { .. }, ..) => policies.judge(letter, now),
            (Self::Discard, DeadLetterState::Parked, _) => Err(RequeueRefusal::Parked),
            (Self::Discard, DeadLetterState::Dead, Disposition::Replaced) => {
                Err(RequeueRefusal::HasSuccessor)
            }
            (Self::Discard, DeadLetterState::Dead, Disposition::Open | Disposition::Discarded) => Ok(()),
            (Self::Decide { decision, .. }, ..) => letter.check_decision(decision, now).map_err(undecided),
        }
    }

    /// Translates the lifecycle's refusal into a preflight's words.
    fn refusal(self, policies: &RequeuePolicies, letter: &DeadLetterRow, why: StepRefusal) -> RequeueRefusal {
        match (self, why, policies.judge(&letter.traits(), letter.since)) {
            (Self::Decide { .. }, why, _) => undecided(why),
            (_, StepRefusal::HasSuccessor, _) => RequeueRefusal::HasSuccessor,
            (_, StepRefusal::WrongState, _) => RequeueRefusal::Parked,
            (.., Err(refusal)) => refusal,
            // It was covered by the key when it died, and is not any more.
            (.., Ok(())) => RequeueRefusal::KeyExpired,
        }
    }

    const fn resolution(self) -> Resolution {
        match self {
            Self::Requeue { .. } => Resolution::Requeued,
            Self::Discard => Resolution::Discarded,
            Self::Decide { .. } => Resolution::Decided,
        }
    }
}

const fn undecided(why: StepRefusal) -> RequeueRefusal {
    match why {
        StepRefusal::TooEarly => RequeueRefusal::TooEarly,
        _ => RequeueRefusal::EffectKnown,
    }
}

/// A bulk operation. [`BulkOperation::preflight`] reports what would happen, [`BulkOperation::run`] does it.
#[derive(Clone)]
pub struct BulkOperation {
    /// The store of the letters.
    pub store: Store,
    /// The policies of their queues.
    pub policies: RequeuePolicies,
    /// What to do.
    pub action: BulkAction,
    /// Which letters.
    pub filter: DeadLetterFilter,
    /// The actor, for the audit entries of each message and of the operation.
    pub actor: String,
    /// The reason, if it is to be recorded.
    pub reason: Option<String>,
}

/// The progress of a bulk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkProgress {
    /// The operation's id, with which another process can stop it.
    pub operation: Uuid,
    /// How many letters were eligible when they were counted.
    pub total: u64,
    /// Whether there were more than were counted, so the total is a minimum.
    pub has_more: bool,
    /// How many were moved.
    pub moved: u64,
    /// The canary's current counts, while it is watched.
    pub canary: Option<CanaryCounts>,
}

/// The result of a bulk operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkReport {
    /// The operation's id in the audit trail.
    pub operation: Uuid,
    /// How many were requeued, discarded or decided.
    pub moved: u64,
    /// How many were not, and why.
    pub refused: BTreeMap<RequeueRefusal, u64>,
    /// How many somebody else took in the meantime.
    pub gone: u64,
    /// How it ended.
    pub ended: BulkEnd,
}

/// How a bulk operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkEnd {
    /// Every letter that the filter matched was processed.
    Done,
    /// It was stopped.
    Stopped {
        /// The actor, if another process stopped it.
        by: Option<String>,
    },
    /// The canary failed.
    Halted {
        /// Its counts.
        watched: CanaryCounts,
        /// Some of the messages that failed, at most [`limits::MAX_FAILED_IDS`].
        failed_ids: Vec<Uuid>,
    },
    /// Another operation took over after too long a silence, for instance while its machine slept.
    Abandoned,
    /// The store failed.
    Failed,
}

/// Why a bulk operation did not complete.
///
/// Completed work stays, and running it again continues with the rest.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// Another operation works on letters of the same queue. Nothing was done.
    #[error("bulk operation {by} is working on dead letters of the same queue; nothing was done")]
    Conflict {
        /// Its id.
        by: Uuid,
    },
    /// The store failed.
    #[error("the bulk operation failed after {} dead letters; run it again to continue with the rest", report.moved)]
    Interrupted {
        /// Why.
        #[source]
        error: StoreError,
        /// What was done.
        ///
        /// If a write was interrupted, its batch may have been done in addition.
        report: BulkReport,
    },
}

impl BulkOperation {
    /// Runs the operation.
    ///
    /// `stop` is polled before each batch and while a canary is watched; `progress` is called after each.
    pub async fn run(
        &self,
        found: &Preflight,
        stop: impl Fn() -> bool,
        mut progress: impl FnMut(BulkProgress),
    ) -> Result<BulkReport, BulkError> {
        let operation = Uuid::now_v7();
        let mut report =
            BulkReport { operation, moved: 0, refused: BTreeMap::new(), gone: 0, ended: BulkEnd::Failed };
        let claim = match BulkClaim::take(&self.store, self.filter.queue.as_ref(), operation).await {
            Ok(Ok(claim)) => claim,
            Ok(Err(by)) => return Err(BulkError::Conflict { by }),
            Err(error) => return Err(BulkError::Interrupted { error, report }),
        };
        let result = match self.record_start(operation, found).await {
            Ok(()) => self.run_claimed(found, &claim, &stop, &mut progress, &mut report).await,
            Err(error) => {
                claim.release().await;
                return Err(BulkError::Interrupted { error, report });
            }
        };
        if let Ok(ended) = &result {
            report.ended = ended.clone();
        }
        // An operation whose end cannot be recorded appears as abandoned, which is close enough.
        let recorded = self.record_end(&report).await;
        claim.release().await;
        // The first error is the one to report.
        match result.and(recorded) {
            Ok(()) => Ok(report),
            Err(error) => Err(BulkError::Interrupted { error, report }),
        }
    }

    /// Runs while it holds its claim.
    async fn run_claimed(
        &self,
        found: &Preflight,
        claim: &BulkClaim,
        stop: &impl Fn() -> bool,
        progress: &mut impl FnMut(BulkProgress),
        report: &mut BulkReport,
    ) -> Result<BulkEnd, StoreError> {
        let (lease, renewing) = claim.renewed();
        let running = async {
            let result = self.run_batches(found, &|| stop() || claim.is_lost(), progress, report).await;
            drop(lease);
            result
        };
        let (result, ()) = tokio::join!(running, renewing);
        match result? {
            BulkEnd::Stopped { by: None } if claim.is_lost() => Ok(BulkEnd::Abandoned),
            ended => Ok(ended),
        }
    }

    async fn run_batches(
        &self,
        found: &Preflight,
        stop: &impl Fn() -> bool,
        progress: &mut impl FnMut(BulkProgress),
        report: &mut BulkReport,
    ) -> Result<BulkEnd, StoreError> {
        let filter = self.filter_as_of(found.as_of);
        let canary = match (self.action, filter.state) {
            (BulkAction::Requeue { canary }, _)
            | (BulkAction::Decide { decision: Decision::NotDone, canary }, DeadLetterState::Parked) => canary,
            (BulkAction::Discard | BulkAction::Decide { .. }, _) => None,
        };
        let (mut after, mut widened, mut watched) = (None, 0, Vec::new());
        loop {
            if let Some(ended) = self.stopped(report.operation, stop).await? {
                return Ok(ended);
            }
            let goal =
                canary.and_then(|canary| Some((canary, goal(widened, found.eligible, found.has_more)?)));
            let remaining = goal.map_or(u64::MAX, |(_, goal)| goal.saturating_sub(report.moved));
            let limit = u32::try_from(remaining).unwrap_or(u32::MAX).clamp(1, limits::MAX_BATCH);
            let page = self.store.dead_letters().page(&filter, after, limit).await?;
            let Some(last) = page.last() else { return Ok(BulkEnd::Done) };
            after = Some((last.since, last.id));
            let moved = self.batch(&page, report).await?;
            watched.extend(moved.into_iter().take(limits::MAX_WATCHED.saturating_sub(watched.len())));
            progress(progress_with(found, report, None));
            let Some((canary, goal)) = goal else { continue };
            if report.moved < goal {
                continue;
            }
            let mut report_watched = |counts| progress(progress_with(found, report, Some(counts)));
            if let Some(ended) =
                self.watch(&watched, canary, report.operation, stop, &mut report_watched).await?
            {
                return Ok(ended);
            }
            watched.clear();
            widened += 1;
        }
    }

    async fn act(
        &self,
        ids: &[Uuid],
        policies: &RequeuePolicies,
        note: &Note,
    ) -> Result<Vec<DeadLetterStep>, StoreError> {
        let letters = self.store.dead_letters();
        match self.action {
            BulkAction::Requeue { .. } => letters.requeue(ids, |letter| policies.of(letter), note).await,
            BulkAction::Discard => letters.discard(ids, note).await,
            BulkAction::Decide { decision, .. } => letters.decide(ids, decision, note).await,
        }
    }

    /// Moves the letters of a page. Returns which were moved.
    async fn batch(&self, page: &[DeadLetterRow], report: &mut BulkReport) -> Result<Vec<Uuid>, StoreError> {
        let ids: Vec<Uuid> = page.iter().map(|letter| letter.id).collect();
        let note = Note { actor: Some(self.actor.clone()), excerpt: self.reason.clone(), ..Note::default() };
        // Read first: once the letters are moved, nothing may prevent recording it.
        let now = self.store.now().await?;
        // A worker may have started since the operation was planned, with settings that allow less.
        let policies = self.policies.current(&self.store).await?;
        let mut attempts = 1;
        let stepped = loop {
            match self.act(&ids, &policies, &note).await {
                Err(StoreError::Busy) if attempts < limits::BUSY_TRIES => attempts += 1,
                outcome => break outcome?,
            }
        };
        let mut moved = Vec::with_capacity(page.len());
        for (letter, stepped) in page.iter().zip(stepped) {
            match stepped {
                DeadLetterStep::Now(_) => {
                    // A second discard resolved nothing.
                    if letter.disposition == Disposition::Open {
                        record_resolution(&letter.queue, self.action.resolution(), letter.since, now);
                    }
                    moved.push(letter.id);
                }
                DeadLetterStep::NoLetter => report.gone += 1,
                DeadLetterStep::Refused(why) => {
                    let refusal = self.action.refusal(&policies, letter, why);
                    *report.refused.entry(refusal).or_default() += 1;
                }
            }
        }
        report.moved += u64::try_from(moved.len()).unwrap_or(u64::MAX);
        Ok(moved)
    }

    /// Restricts the filter to letters counted by the preflight.
    ///
    /// A requeued message that dies again is not included.
    pub(super) fn filter_as_of(&self, as_of: Timestamp) -> DeadLetterFilter {
        let before = self.filter.since_before.map_or(as_of, |before| before.min(as_of));
        DeadLetterFilter { since_before: Some(before), ..self.filter.clone() }
    }
}

const fn progress_with(
    found: &Preflight,
    report: &BulkReport,
    watched: Option<CanaryCounts>,
) -> BulkProgress {
    BulkProgress {
        operation: report.operation,
        total: found.eligible,
        has_more: found.has_more,
        moved: report.moved,
        canary: watched,
    }
}

impl std::fmt::Debug for BulkOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bulk")
            .field("work", &self.action)
            .field("filter", &self.filter)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
