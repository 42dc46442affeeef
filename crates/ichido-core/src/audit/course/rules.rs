//! The rules by which one entry follows another.
//!
//! The steps of the lifecycle are tried with every value that an entry does not record.

use std::num::NonZeroU32;

use super::CourseViolation;
use crate::audit::entry::{AuditEntry, EntryId};
use crate::fence::Fence;
use crate::lifecycle::{Decision, Doubt, Event, Failure, History, Reconciled, StartMark, State, StateName};
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::Effect;

/// The step of a second transition of one event: the death after the last attempt.
const SPENT_STEP: i16 = 1;
/// The step of a late success, next to the attempt that it belongs to.
pub(super) const PROOF_STEP: i16 = 2;

/// Earlier than every time: what is due then is always due.
const ALWAYS: Timestamp = Timestamp::from_micros(i64::MIN);

const SAFETIES: [Safety; 4] = [Safety::Idempotent, Safety::Keyed, Safety::Transactional, Safety::None];
const EFFECTS: [Effect; 3] = [Effect::NotDone, Effect::Done, Effect::Unknown];
const BEGUN: [StartMark; 3] = [StartMark::NotYet, StartMark::Written, StartMark::NotTracked];
const FAILURES: [Failure; 3] = [Failure::Retry { due: ALWAYS }, Failure::Permanent, Failure::InDoubt];
const EITHER: [bool; 2] = [false, true];

/// The position of a message after some of its entries.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// The state after the last entry; `None` before the first, and if it is unknown.
    pub(super) state: Option<State>,
    pub(super) last: Option<EntryId>,
    /// Whether every entry so far was seen. Otherwise whatever they may have said is assumed.
    complete: bool,
    /// The fence of the last ended attempt, and the counts at its end.
    ///
    /// A proof repeats them.
    attempt: Option<(i64, AttemptCounts)>,
    pub(super) proof: Option<EntryId>,
    /// A new message replaced it: it is never sent again.
    replaced: bool,
}

/// The attempts that an entry records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AttemptCounts {
    attempts: i64,
    deaths: i64,
    doubt: Option<Doubt>,
}

impl AttemptCounts {
    /// Returns `None` if the doubt has only one of its two times.
    fn from_entry(entry: &AuditEntry) -> Option<Self> {
        let doubt = match (entry.doubt_since, entry.in_flight_until) {
            (Some(since), Some(in_flight_until)) => Some(Doubt { since, in_flight_until }),
            (None, None) => None,
            _ => return None,
        };
        Some(Self { attempts: entry.attempts, deaths: entry.deaths, doubt })
    }
}

impl Course {
    pub(super) const fn new(complete: bool) -> Self {
        Self { state: None, last: None, complete, attempt: None, proof: None, replaced: false }
    }

    /// Returns the course after an entry, or why the entry does not follow.
    pub(super) fn follow(&self, entry: &AuditEntry, issued: i64) -> Result<Self, CourseViolation> {
        let fence = fence(entry).filter(|_| (1..=issued).contains(&entry.id.fence));
        let fence = fence.ok_or(CourseViolation::FenceNotIssued)?;
        if entry.about.is_some() {
            return self.follow_action(entry);
        }
        if entry.subject.is_none() {
            return Err(CourseViolation::NoMessage);
        }
        let counts = AttemptCounts::from_entry(entry).ok_or(CourseViolation::NoSuchStep)?;
        if !self.is_in_place(entry.id) {
            return Err(CourseViolation::OutOfPlace);
        }
        let follows = match entry.id.step {
            PROOF_STEP => self.is_proof(entry, fence, counts),
            _ => self.is_step(entry, fence, counts),
        };
        if follows { Ok(self.after(entry)) } else { Err(CourseViolation::NoSuchStep) }
    }

    /// Returns the course after an entry, whatever preceded it.
    pub(super) fn after(&self, entry: &AuditEntry) -> Self {
        let mut next = Self { last: Some(entry.id), ..self.clone() };
        if entry.id.step == PROOF_STEP {
            next.proof = Some(entry.id);
            return next;
        }
        next.state = state_after(entry, self.last_fence(entry));
        next.replaced |= entry.kind == Event::Replaced.name();
        if entry.id.step == 0 && entry.claimed_at.is_some() {
            next.attempt = AttemptCounts::from_entry(entry).map(|counts| (entry.id.fence, counts));
        }
        next
    }

    /// Returns whether an entry comes after the last one.
    ///
    /// Entries of one fence are the end of an attempt, the death that follows it, and a late proof; everything else has
    /// its own fence.
    fn is_in_place(&self, id: EntryId) -> bool {
        match (self.last, id.step) {
            (None, 0) => true,
            (None, _) => !self.complete,
            (Some(last), 0) => last.fence < id.fence,
            (Some(last), step) => last.fence == id.fence && last.step < step && step <= PROOF_STEP,
        }
    }

    /// Judges an operator's action on something other than a message.
    ///
    /// It is not a step of the lifecycle and says nothing about attempts.
    fn follow_action(&self, entry: &AuditEntry) -> Result<Self, CourseViolation> {
        let says_no_more = entry.claimed_at.is_none()
            && (entry.attempts, entry.deaths) == (0, 0)
            && (entry.doubt_since, entry.in_flight_until) == (None, None)
            && Effect::parse(&entry.effect).is_none();
        if entry.subject.is_some() || !says_no_more {
            return Err(CourseViolation::NotAnAction);
        }
        if entry.id.step != 0 || self.last.is_some_and(|last| entry.id.fence <= last.fence) {
            return Err(CourseViolation::OutOfPlace);
        }
        Ok(Self { last: Some(entry.id), ..self.clone() })
    }

    /// A late success is stored next to the end of its attempt, and repeats its counts.
    fn is_proof(&self, entry: &AuditEntry, fence: Fence, counts: AttemptCounts) -> bool {
        let late = Event::LateSuccess { fence };
        let sending = StateName::Sending.as_str();
        let beside = match self.attempt {
            Some((of, end)) => of == entry.id.fence && end == counts,
            None => !self.complete,
        };
        beside
            && entry.claimed_at.is_none()
            && entry.kind == late.name()
            && (entry.from.as_str(), entry.to.as_str()) == (sending, sending)
            && entry.effect == Effect::Done.as_str()
    }

    /// Returns whether some step of the lifecycle leads to the entry.
    fn is_step(&self, entry: &AuditEntry, fence: Fence, counts: AttemptCounts) -> bool {
        let state = match self.state {
            Some(state) => state,
            None if self.complete && self.last.is_none() => {
                State::Queued { due: ALWAYS, history: History::new(max_attempts(entry)) }
            }
            // The state before is unknown, so it cannot be judged.
            None => return true,
        };
        let leads = |before: State, event: Event| {
            let next = before.step(event, Timestamp::MAX);
            next.is_ok_and(|next| records_step(entry, counts, next, before))
        };
        // An attempt is one entry with the time of its claim; the death that may follow it has that time too.
        if let (Some(claimed_at), 0) = (entry.claimed_at, entry.id.step) {
            let ends = attempt_ends(entry, fence, counts);
            let may_be_proven = self.proof.is_some() || !self.complete;
            return entry.from == StateName::Sending.as_str()
                && sending(state, fence, claimed_at, may_be_proven)
                    .any(|sending| ends.iter().any(|end| leads(sending, *end)));
        }
        let actions = actions(entry, state.history().and_then(|history| history.last_fence));
        entry.from == state.name()
            && actions.into_iter().any(|event| self.may_happen(event, entry.id) && leads(state, event))
    }

    /// What the store refuses in addition to the lifecycle.
    ///
    /// A replaced message is not sent again, and a death at step 1 follows its attempt.
    fn may_happen(&self, event: Event, id: EntryId) -> bool {
        let spent_beside = (id.step == SPENT_STEP) == self.last.is_some_and(|last| last.fence == id.fence);
        let of_step = id.step == 0 || event == Event::Spent;
        let successor =
            self.replaced && matches!(event, Event::Requeued { .. } | Event::Replaced | Event::Discarded);
        spent_beside && of_step && !successor
    }

    /// Returns the last claim, as far as an entry needs one.
    ///
    /// If not everything was seen, there may have been one.
    fn last_fence(&self, entry: &AuditEntry) -> Option<Fence> {
        let of_entry = fence(entry).filter(|_| entry.claimed_at.is_some());
        let seen = || self.attempt.and_then(|(of, _)| Fence::new(of.unsigned_abs()));
        let unseen = || fence(entry).filter(|_| !self.complete);
        of_entry.or_else(seen).or_else(unseen)
    }
}

/// Returns whether an entry records what a step from one state to the next writes.
fn records_step(entry: &AuditEntry, counts: AttemptCounts, next: State, before: State) -> bool {
    let Some(history) = next.history().or(before.history()) else { return next == before };
    // Nobody needs the doubt of a sent message: it may have been omitted.
    let doubt = counts.doubt == history.doubt || next == State::Sent && counts.doubt.is_none();
    entry.to == next.name()
        && entry.effect == next.effect().as_str()
        && counts.attempts == i64::from(history.attempts)
        && counts.deaths == i64::from(history.deaths)
        && doubt
}

/// Returns the state after an entry; `None` if no entry can leave that state.
fn state_after(entry: &AuditEntry, last_fence: Option<Fence>) -> Option<State> {
    let counts = AttemptCounts::from_entry(entry)?;
    let history = History {
        attempts: u32::try_from(counts.attempts).ok()?,
        max_attempts: max_attempts(entry),
        deaths: u32::try_from(counts.deaths).ok()?,
        suspect: false,
        doubt: counts.doubt,
        last_fence,
    };
    let effect = Effect::parse(&entry.effect)?;
    Some(match StateName::parse(&entry.to)? {
        StateName::Queued => State::Queued { due: ALWAYS, history },
        StateName::Failed => State::Failed { due: ALWAYS, history },
        StateName::Parked => State::Parked { history },
        StateName::Sent => State::Sent,
        StateName::Dead => State::Dead { effect, history },
        StateName::Cancelled => State::Cancelled { effect, history },
        StateName::Sending => return None,
    })
}

/// Returns the possible states of a message while it was sent, from its claim on.
///
/// There are none if it could not be claimed.
fn sending(
    state: State,
    fence: Fence,
    claimed_at: Timestamp,
    may_be_proven: bool,
) -> impl Iterator<Item = State> {
    let claimed = state.step(Event::Claimed { fence, start_mark: StartMark::NotTracked }, claimed_at);
    let history = claimed.ok().and_then(|claimed| claimed.history());
    let proofs = EITHER.into_iter().filter(move |proven| may_be_proven || !proven);
    let unrecorded = proofs.flat_map(|proven| {
        EITHER.into_iter().flat_map(move |suspect| BEGUN.map(move |start_mark| (proven, suspect, start_mark)))
    });
    history.into_iter().flat_map(move |history| {
        unrecorded.clone().map(move |(proven, suspect, start_mark)| {
            let history = History { suspect, ..history };
            State::Sending { fence, claimed_at, start_mark, proven, history }
        })
    })
}

/// Returns the events that may have ended an attempt as an entry says.
///
/// They have every value that it does not record.
fn attempt_ends(entry: &AuditEntry, fence: Fence, counts: AttemptCounts) -> Vec<Event> {
    let in_flight_until = counts.doubt.map_or(ALWAYS, |doubt| doubt.in_flight_until);
    let failed = FAILURES.into_iter().flat_map(|failure| {
        EFFECTS.into_iter().flat_map(move |effect| {
            SAFETIES.map(move |safety| Event::Failed { fence, failure, effect, safety, in_flight_until })
        })
    });
    let died = EITHER.into_iter().flat_map(|alone| {
        SAFETIES.map(move |safety| Event::WorkerDied { fence, alone, safety, due: ALWAYS, in_flight_until })
    });
    let others =
        [Event::Succeeded { fence }, Event::GivenBack { fence, due: ALWAYS }, Event::Stopped { fence }];
    named(entry, others.into_iter().chain(failed).chain(died))
}

/// Returns the same for events of a message that nobody holds.
fn actions(entry: &AuditEntry, last_fence: Option<Fence>) -> Vec<Event> {
    let late = last_fence.map(|fence| Event::LateSuccess { fence });
    let requeued = SAFETIES.map(|safety| Event::Requeued { allowed: true, safety });
    let decided = [Decision::NotDone, Decision::Done, Decision::GiveUp].map(Event::Decided);
    let reconciled = [Reconciled::Done, Reconciled::NotDone { due: ALWAYS }].map(Event::Reconciled);
    let others = [Event::CameDue, Event::Spent, Event::Discarded, Event::Replaced, Event::Cancelled];
    named(entry, others.into_iter().chain(late).chain(requeued).chain(decided).chain(reconciled))
}

/// Keeps the events that an entry names.
fn named(entry: &AuditEntry, events: impl Iterator<Item = Event>) -> Vec<Event> {
    events.filter(|event| event.name() == entry.kind).collect()
}

/// Returns the fence of an entry, if it is valid.
fn fence(entry: &AuditEntry) -> Option<Fence> {
    u64::try_from(entry.id.fence).ok().and_then(Fence::new)
}

fn max_attempts(entry: &AuditEntry) -> NonZeroU32 {
    let allowed = entry.subject.as_ref().map(|subject| subject.max_attempts);
    allowed.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}
