//! Many letters, a bounded number at a time.

use std::collections::BTreeMap;

use ichido_core::lifecycle::{Event, Why};
use ichido_core::time::Timestamp;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::letter::{LetterFilter, LetterRow, LetterStepped, Standing};
use ichido_store::message::{LetterState, Note};
use uuid::Uuid;

use super::canary::{Canary, Watched, goal};
use super::claim::BulkClaim;
use super::policy::{Policies, Refusal};
use super::preflight::Preflight;
use super::{Resolution, tell_resolved};

/// The bounds of a bulk.
pub mod limits {
    use std::time::Duration;

    /// The most letters of one batch: one transaction, which others wait for.
    pub const BATCH_MAX: u32 = 500;
    /// The most messages that are watched of one step of a canary.
    pub const WATCHED_MAX: usize = 1_000;
    /// How often those that are watched are looked at.
    pub const WATCH_EVERY: Duration = Duration::from_millis(200);
    /// How often a batch is tried while the store is busy.
    pub const BUSY_TRIES: u32 = 20;
    /// For how long a bulk counts as running after it was last heard of. One whose process was killed is abandoned after this.
    pub const LEASE: Duration = Duration::from_secs(15);
}

/// What to do with letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Send them again.
    Requeue {
        /// A few first.
        canary: Option<Canary>,
    },
    /// Say that they need no more attention.
    Discard,
}

impl Work {
    /// Whether it would be done with a letter, or why not. A discard asks nothing of the queue.
    pub fn judge(self, policies: &Policies, letter: &LetterRow, now: Timestamp) -> Result<(), Refusal> {
        match (self, letter.state, letter.standing) {
            (Self::Requeue { .. }, ..) => policies.judge(letter, now),
            (Self::Discard, LetterState::Parked, _) => Err(Refusal::Parked),
            (Self::Discard, LetterState::Dead, Standing::Replaced) => Err(Refusal::HasSuccessor),
            (Self::Discard, LetterState::Dead, Standing::Open | Standing::Discarded) => Ok(()),
        }
    }

    const fn resolution(self) -> Resolution {
        match self {
            Self::Requeue { .. } => Resolution::Requeued,
            Self::Discard => Resolution::Discarded,
        }
    }
}

/// Many letters, and what to do with them. [`Bulk::preflight`] says what would happen, [`Bulk::run`] does it.
#[derive(Clone)]
pub struct Bulk {
    /// Where they are.
    pub store: Store,
    /// What their queues say.
    pub policies: Policies,
    /// What to do.
    pub work: Work,
    /// Which ones.
    pub filter: LetterFilter,
    /// Who does it: in the audit of each message, and of the bulk.
    pub actor: String,
    /// Why, if that is to be kept.
    pub reason: Option<String>,
}

/// How far a bulk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The bulk, by which it can be stopped from elsewhere.
    pub operation: Uuid,
    /// How many would go when it was counted.
    pub of: u64,
    /// How many have gone.
    pub moved: u64,
    /// What those of the present step show, while they are watched.
    pub watched: Option<Watched>,
}

/// What a bulk did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The bulk, as the audit names it.
    pub operation: Uuid,
    /// How many were requeued or discarded.
    pub moved: u64,
    /// How many were not, and why.
    pub refused: BTreeMap<Refusal, u64>,
    /// How many somebody else took meanwhile.
    pub gone: u64,
    /// How it ended.
    pub ended: Ended,
}

/// How a bulk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All that the filter found was looked at.
    Done,
    /// It was told to.
    Stopped {
        /// By whom, where that was from elsewhere.
        by: Option<String>,
    },
    /// The canary was not well.
    Halted {
        /// What it showed.
        watched: Watched,
    },
    /// It was not heard of for so long, as when its machine slept, that another one took its letters over.
    Abandoned,
    /// The store could not go on.
    Failed,
}

/// Why a bulk did not come to an end of its own. What was done is done, and running it again goes on with the rest.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// Another one works on letters of the same queue. Nothing was done.
    #[error("the bulk {by} works on letters of the same queue; nothing was done")]
    Taken {
        /// Which one.
        by: Uuid,
    },
    /// The store could not go on.
    #[error("the bulk could not go on after {} letters; run it again to go on with the rest", report.moved)]
    Broke {
        /// Why.
        #[source]
        error: StoreError,
        /// What was done. Where a write broke off, its batch may have been done beside it.
        report: Report,
    },
}

impl Bulk {
    /// Does it. `stop` is asked before each batch and while a canary is watched; `progress` is told after each.
    pub async fn run(
        &self,
        found: &Preflight,
        stop: impl Fn() -> bool,
        mut progress: impl FnMut(Progress),
    ) -> Result<Report, BulkError> {
        let operation = Uuid::now_v7();
        let mut report =
            Report { operation, moved: 0, refused: BTreeMap::new(), gone: 0, ended: Ended::Failed };
        let claim = match BulkClaim::take(&self.store, self.filter.queue.as_ref(), operation).await {
            Ok(Ok(claim)) => claim,
            Ok(Err(by)) => return Err(BulkError::Taken { by }),
            Err(error) => return Err(BulkError::Broke { error, report }),
        };
        let result = match self.record_begin(operation, found).await {
            Ok(()) => self.run_claimed(found, &claim, &stop, &mut progress, &mut report).await,
            Err(error) => {
                claim.release().await;
                return Err(BulkError::Broke { error, report });
            }
        };
        if let Ok(ended) = &result {
            report.ended = ended.clone();
        }
        // A bulk whose end cannot be written is seen as abandoned, which is near enough.
        let recorded = self.record_end(&report).await;
        claim.release().await;
        // What went wrong first is what a person is told.
        match result.and(recorded) {
            Ok(()) => Ok(report),
            Err(error) => Err(BulkError::Broke { error, report }),
        }
    }

    /// Goes for as long as it has its letters to itself.
    async fn run_claimed(
        &self,
        found: &Preflight,
        claim: &BulkClaim,
        stop: &impl Fn() -> bool,
        progress: &mut impl FnMut(Progress),
        report: &mut Report,
    ) -> Result<Ended, StoreError> {
        let (lease, renewing) = claim.renewed();
        let running = async {
            let result = self.run_batches(found, &|| stop() || claim.is_lost(), progress, report).await;
            drop(lease);
            result
        };
        let (result, ()) = tokio::join!(running, renewing);
        match result? {
            Ended::Stopped { by: None } if claim.is_lost() => Ok(Ended::Abandoned),
            ended => Ok(ended),
        }
    }

    async fn run_batches(
        &self,
        found: &Preflight,
        stop: &impl Fn() -> bool,
        progress: &mut impl FnMut(Progress),
        report: &mut Report,
    ) -> Result<Ended, StoreError> {
        let filter = self.filter_as_of(found.as_of);
        let canary = match self.work {
            Work::Requeue { canary } => canary,
            Work::Discard => None,
        };
        let (mut after, mut widened, mut watched) = (None, 0, Vec::new());
        loop {
            if let Some(ended) = self.stopped(report.operation, stop).await? {
                return Ok(ended);
            }
            let goal = canary.and_then(|canary| Some((canary, goal(widened, found.would_go)?)));
            let remaining = goal.map_or(u64::MAX, |(_, goal)| goal.saturating_sub(report.moved));
            let limit = u32::try_from(remaining).unwrap_or(u32::MAX).clamp(1, limits::BATCH_MAX);
            let page = self.store.dead_letters().page(&filter, after, limit).await?;
            let Some(last) = page.last() else { return Ok(Ended::Done) };
            after = Some((last.since, last.id));
            let moved = self.batch(&page, report).await?;
            watched.extend(moved.into_iter().take(limits::WATCHED_MAX.saturating_sub(watched.len())));
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

    /// Takes the letters of a page; answers which were moved.
    async fn batch(&self, page: &[LetterRow], report: &mut Report) -> Result<Vec<Uuid>, StoreError> {
        let ids: Vec<Uuid> = page.iter().map(|letter| letter.id).collect();
        let note = Note { actor: Some(self.actor.clone()), excerpt: self.reason.clone(), ..Note::default() };
        // Asked for first: once the letters are moved, nothing may be in the way of saying so.
        let now = self.store.now().await?;
        let mut tries = 1;
        let stepped = loop {
            match self.store.dead_letters().step(&ids, |letter, now| self.event(letter, now), &note).await {
                Err(StoreError::Busy) if tries < limits::BUSY_TRIES => tries += 1,
                outcome => break outcome?,
            }
        };
        let mut moved = Vec::with_capacity(page.len());
        for (letter, stepped) in page.iter().zip(stepped) {
            match stepped {
                LetterStepped::Now(_) => {
                    // Who discards once more waited for nothing.
                    if letter.standing == Standing::Open {
                        tell_resolved(&letter.queue, self.work.resolution(), letter.since, now);
                    }
                    moved.push(letter.id);
                }
                LetterStepped::NoLetter => report.gone += 1,
                LetterStepped::Refused(why) => {
                    *report.refused.entry(self.refusal_for(letter, why)).or_default() += 1;
                }
            }
        }
        report.moved += u64::try_from(moved.len()).unwrap_or(u64::MAX);
        Ok(moved)
    }

    fn event(&self, letter: &LetterRow, now: Timestamp) -> Event {
        match self.work {
            Work::Requeue { .. } => self.policies.event(letter, now),
            Work::Discard => Event::Discarded,
        }
    }

    /// Why the lifecycle refused, in the words of a preflight.
    fn refusal_for(&self, letter: &LetterRow, why: Why) -> Refusal {
        match (why, self.policies.judge(letter, letter.since)) {
            (Why::HasSuccessor, _) => Refusal::HasSuccessor,
            (Why::NotFromHere, _) => Refusal::Parked,
            (_, Err(refusal)) => refusal,
            // It was covered when it died, and is no more.
            (_, Ok(())) => Refusal::KeyForgotten,
        }
    }

    /// What becomes a letter after the count is not part of the bulk: not even what it requeued itself, and died again.
    pub(super) fn filter_as_of(&self, as_of: Timestamp) -> LetterFilter {
        let before = self.filter.since_before.map_or(as_of, |before| before.min(as_of));
        LetterFilter { since_before: Some(before), ..self.filter.clone() }
    }
}

const fn progress_with(found: &Preflight, report: &Report, watched: Option<Watched>) -> Progress {
    Progress { operation: report.operation, of: found.would_go, moved: report.moved, watched }
}

impl std::fmt::Debug for Bulk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bulk")
            .field("work", &self.work)
            .field("filter", &self.filter)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
