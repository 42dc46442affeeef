//! The one total transition function, one state at a time.
//!
//! Every refused pair is listed, so a new state or event does not compile until somebody decides.

use super::{Decision, Event, Failure, History, Reconciled, StartMark, State};
use crate::fence::Fence;
use crate::retry::{RepeatRefused, Safety, may_repeat};
use crate::time::Timestamp;
use crate::verdict::Effect;

/// An event that does not apply; the state is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` does not apply to a message that is {state}: {why}")]
pub struct IllegalStep {
    /// The name of the event.
    pub event: &'static str,
    /// The name of the state.
    pub state: &'static str,
    /// Why it does not apply.
    pub why: StepRefusal,
}

/// Why an event does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepRefusal {
    /// The state has no such event.
    #[error("the state does not allow it")]
    WrongState,
    /// The fence is not that of the current claim.
    ///
    /// Another claim holds the message, or none does; or a new claim's fence is not greater than the last.
    #[error("the fence is not that of the current claim")]
    StaleFence,
    /// It is not due yet.
    #[error("it is not due yet")]
    NotDue,
    /// No attempt is left.
    #[error("no attempts are left")]
    NoAttemptLeft,
    /// An attempt is left.
    #[error("an attempt is left")]
    AttemptLeft,
    /// The call may have started, so the attempt counts.
    #[error("the call may have started")]
    MayHaveStarted,
    /// The first call may still be in transit.
    #[error("the call may still be in flight; decide later")]
    TooEarly,
    /// The queue does not allow a requeue.
    #[error("its queue does not allow a requeue")]
    RequeueNotAllowed,
    /// It took effect or may have, and a repetition could apply it twice.
    #[error("it may have taken effect, and sending it again could do it twice; decide it first")]
    CouldDoItTwice,
    /// A new message was made from it and would be sent in addition to it.
    #[error("a new message was made from it; sending both could do it twice")]
    HasSuccessor,
    /// An attempt that did the work is not a failure to retry after.
    #[error("the work was done; report a success")]
    WasDone,
}

use StepRefusal::{
    AttemptLeft, CouldDoItTwice, MayHaveStarted, NoAttemptLeft, NotDue, RequeueNotAllowed, StaleFence,
    TooEarly, WasDone, WrongState,
};

impl State {
    /// Returns the next state, or why the event does not apply.
    ///
    /// This is one arrow of the diagram. Stores call [`State::advance`], which also takes the second arrow after the
    /// last allowed failure.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use ichido_core::lifecycle::{Event, State};
    /// use ichido_core::time::Timestamp;
    ///
    /// let now = Timestamp::from_secs(100);
    /// let queued = State::queued(now, NonZeroU32::MIN);
    /// assert_eq!(queued.step(Event::Cancelled, now)?.name(), "cancelled");
    ///
    /// let refused = queued.step(Event::CameDue, now).unwrap_err();
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "`came_due` does not apply to a message that is queued: the state does not allow it"
    /// );
    /// # Ok::<(), ichido_core::lifecycle::IllegalStep>(())
    /// ```
    pub fn step(self, event: Event, now: Timestamp) -> Result<State, IllegalStep> {
        let next = match self {
            State::Queued { due, history } => waiting(due, history, event, now),
            State::Failed { due, history } => failed(due, history, event, now),
            State::Sending { fence, claimed_at, start_mark, proven, history } => {
                sending(ActiveClaim { fence, claimed_at, start_mark, proven, history }, event, now)
            }
            State::Parked { history } => parked(history, event, now),
            State::Dead { effect, history } => dead(effect, history, event, now),
            State::Cancelled { effect, history } => cancelled(effect, history, event, now),
            State::Sent => Err(WrongState),
        };
        next.map_err(|why| IllegalStep { event: event.name(), state: self.name(), why })
    }
}

/// Handles queued, and failed with its backoff running: both wait to be claimed.
fn waiting(due: Timestamp, history: History, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    match event {
        Event::Claimed { .. } if now < due => Err(NotDue),
        Event::Claimed { .. } if !history.has_attempts_left() => Err(NoAttemptLeft),
        Event::Claimed { fence, .. } if Some(fence) <= history.last_fence => Err(StaleFence),
        Event::Claimed { fence, start_mark } => {
            let history = history.claimed(fence);
            Ok(State::Sending { fence, claimed_at: now, start_mark, proven: false, history })
        }
        // Fewer attempts may be allowed now than when it was enqueued.
        Event::Spent if history.has_attempts_left() => Err(AttemptLeft),
        Event::Spent => Ok(State::Dead { effect: history.effect(), history }),
        // The response to an earlier claim arrived late: the message is not sent again.
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok(State::Sent),
        Event::Cancelled => Ok(State::Cancelled { effect: history.effect(), history }),
        Event::Started { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::Stopped { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced => Err(WrongState),
    }
}

fn failed(due: Timestamp, history: History, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    match event {
        Event::CameDue if now < due => Err(NotDue),
        Event::CameDue | Event::Requeued { .. } if !history.has_attempts_left() => Err(NoAttemptLeft),
        Event::CameDue => Ok(State::Queued { due, history }),
        // An operator ends the backoff. The queue's setting is about dead messages, and the worker checks before the call
        // whether a repetition is safe, as after every backoff.
        Event::Requeued { .. } => Ok(State::Queued { due: now, history }),
        Event::Claimed { .. }
        | Event::Started { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::Stopped { .. }
        | Event::WorkerDied { .. }
        | Event::Spent
        | Event::LateSuccess { .. }
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => waiting(due, history, event, now),
    }
}

/// A message that a worker has claimed.
#[derive(Clone, Copy)]
struct ActiveClaim {
    fence: Fence,
    claimed_at: Timestamp,
    start_mark: StartMark,
    proven: bool,
    history: History,
}

fn sending(claim: ActiveClaim, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    let ActiveClaim { fence: current, claimed_at, start_mark, proven, history } = claim;
    match event {
        Event::Started { fence }
        | Event::Succeeded { fence }
        | Event::Failed { fence, .. }
        | Event::GivenBack { fence, .. }
        | Event::Stopped { fence }
        | Event::WorkerDied { fence, .. }
            if fence != current =>
        {
            Err(StaleFence)
        }
        Event::Started { .. } if proven => Err(WasDone),
        Event::Started { .. } => {
            Ok(State::Sending { fence: current, claimed_at, start_mark: StartMark::Written, proven, history })
        }
        Event::Succeeded { .. } => Ok(State::Sent),
        // An earlier attempt did the work, so nothing is sent again, whatever this attempt reports.
        Event::Failed { .. } | Event::GivenBack { .. } | Event::Stopped { .. } | Event::WorkerDied { .. }
            if proven =>
        {
            Ok(State::Sent)
        }
        Event::Failed { failure, effect, safety, in_flight_until, .. } => {
            after_failure(claim, failure, effect, safety, in_flight_until)
        }
        // Without start marks, the worker guarantees that it did not start; with them, the mark decides.
        Event::GivenBack { .. } if start_mark == StartMark::Written => Err(MayHaveStarted),
        Event::GivenBack { due, .. } => Ok(State::Queued { due, history: history.given_back() }),
        // This attempt did nothing; an earlier one may have, and stays in doubt.
        Event::Stopped { .. } => {
            let history = History { suspect: false, ..history };
            Ok(State::Cancelled { effect: history.effect(), history })
        }
        Event::WorkerDied { alone, safety, due, in_flight_until, .. } => {
            Ok(after_death(claim, Death { alone, safety, due, in_flight_until }, now))
        }
        // The holder is not interrupted: its own success is as good, and the proof counts only without it.
        Event::LateSuccess { fence } if fence < current => {
            Ok(State::Sending { fence: current, claimed_at, start_mark, proven: true, history })
        }
        Event::Claimed { .. } | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue
        | Event::Spent
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => Err(WrongState),
    }
}

/// Handles an attempt that failed while its worker survived, so the message is no longer suspect.
fn after_failure(
    claim: ActiveClaim,
    failure: Failure,
    effect: Effect,
    safety: Safety,
    in_flight_until: Timestamp,
) -> Result<State, StepRefusal> {
    let unsuspected = History { suspect: false, ..claim.history };
    let with_doubt = || unsuspected.with_doubt(claim.claimed_at, in_flight_until);
    let history = if effect == Effect::NotDone { unsuspected } else { with_doubt() };
    let total = claim.history.effect().after(effect);
    match failure {
        Failure::InDoubt => Ok(State::Parked { history: with_doubt() }),
        Failure::Permanent => Ok(State::Dead { effect: total, history }),
        Failure::Retry { due } => match may_repeat(safety, total) {
            Ok(()) => Ok(State::Failed { due, history }),
            Err(RepeatRefused::EffectUnknown) => Ok(State::Parked { history }),
            Err(RepeatRefused::EffectDone) => Err(WasDone),
        },
    }
}

#[derive(Clone, Copy)]
struct Death {
    alone: bool,
    safety: Safety,
    due: Timestamp,
    in_flight_until: Timestamp,
}

/// Handles the death of a worker that held the message.
///
/// Without the start mark nothing was called, so the message is queued again unchanged. Otherwise the effect is
/// unknown, unless it would have been settled with the message, and the message is parked if a repetition could apply it
/// twice. In a batch nobody can tell which message
/// killed the worker, so each is suspect: the next claim takes it alone, with a start mark. Only a call with a start
/// mark is charged with a death, because the worker may have died while the message still waited for its turn.
fn after_death(claim: ActiveClaim, death: Death, now: Timestamp) -> State {
    let Death { alone, safety, due, in_flight_until } = death;
    let started = claim.start_mark != StartMark::NotYet;
    let may_be_done = started && safety != Safety::Transactional;
    let history =
        if may_be_done { claim.history.with_doubt(claim.claimed_at, in_flight_until) } else { claim.history };
    let charged = match claim.start_mark {
        StartMark::NotYet => false,
        StartMark::Written => alone || history.suspect,
        // An older program, which writes no marks, claimed this suspect.
        StartMark::NotTracked => history.suspect,
    };
    let history = History {
        deaths: history.deaths.saturating_add(u32::from(charged)),
        suspect: history.suspect || started,
        ..history
    };
    let effect = history.effect();
    if may_repeat(safety, effect).is_err() {
        return State::Parked { history };
    }
    if !charged {
        return after_uncharged_death(history, started && alone, due, now);
    }
    if history.deaths < History::MAX_DEATHS {
        return State::Failed { due, history };
    }
    match (effect, safety) {
        // A person has something to find out.
        (Effect::Unknown | Effect::Done, Safety::Keyed | Safety::Transactional | Safety::None) => {
            State::Parked { history }
        }
        (Effect::NotDone, _) | (_, Safety::Idempotent) => State::Dead { effect, history },
    }
}

/// Counts the attempt of a message that may have been called.
///
/// It never counts the last one, because the message may not have been called.
fn after_uncharged_death(history: History, may_have_called: bool, due: Timestamp, now: Timestamp) -> State {
    match (may_have_called, history.has_attempts_left()) {
        (true, true) => State::Failed { due, history },
        (true, false) => State::Queued { due, history: history.given_back() },
        (false, _) => State::Queued { due: now, history: history.given_back() },
    }
}

fn parked(history: History, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    let travelling = Some(now) < history.in_flight_until();
    match event {
        // Proof that it was done needs no waiting: it cannot become undone.
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok(State::Sent),
        Event::Reconciled(Reconciled::Done) | Event::Decided(Decision::Done) => Ok(State::Sent),
        Event::Reconciled(Reconciled::NotDone { .. }) | Event::Decided(_) if travelling => Err(TooEarly),
        // A machine found out: the attempts and deaths still count, or the message would loop forever.
        Event::Reconciled(Reconciled::NotDone { due }) => {
            let history = history.without_doubt();
            Ok(if history.has_attempts_left() && history.deaths < History::MAX_DEATHS {
                State::Queued { due, history }
            } else {
                State::Dead { effect: Effect::NotDone, history }
            })
        }
        Event::Decided(Decision::NotDone) => {
            Ok(State::Queued { due: now, history: history.without_doubt().with_reset_counts() })
        }
        Event::Decided(Decision::GiveUp) => Ok(State::Dead { effect: history.effect(), history }),
        // The guarantee may have changed since it was parked. The queue's setting is about dead messages only: this
        // one would not have been parked under the new guarantee.
        Event::Requeued { safety, .. } => match may_repeat(safety, history.effect()) {
            Ok(()) => Ok(State::Queued { due: now, history: history.with_reset_counts() }),
            Err(_) => Err(CouldDoItTwice),
        },
        Event::Claimed { .. }
        | Event::Started { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::Stopped { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue | Event::Spent | Event::Discarded | Event::Replaced | Event::Cancelled => {
            Err(WrongState)
        }
    }
}

fn dead(effect: Effect, history: History, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    match event {
        Event::Requeued { allowed: false, .. } => Err(RequeueNotAllowed),
        Event::Requeued { safety, .. } => match may_repeat(safety, effect) {
            Ok(()) => Ok(State::Queued { due: now, history: history.with_reset_counts() }),
            Err(_) => Err(CouldDoItTwice),
        },
        // The new message has its own key, so no receiver could detect that it is the same work (SPEC D17).
        Event::Replaced if effect == Effect::Unknown => Err(CouldDoItTwice),
        // What is known of its effect stays with it.
        Event::Discarded | Event::Replaced => Ok(State::Dead { effect, history }),
        _ => with_late_evidence(effect, history, event, now)
            .map(|(effect, history)| State::Dead { effect, history }),
    }
}

fn cancelled(effect: Effect, history: History, event: Event, now: Timestamp) -> Result<State, StepRefusal> {
    with_late_evidence(effect, history, event, now)
        .map(|(effect, history)| State::Cancelled { effect, history })
}

/// Records what is learnt later about a dead or cancelled message.
///
/// This does not revive it.
fn with_late_evidence(
    effect: Effect,
    history: History,
    event: Event,
    now: Timestamp,
) -> Result<(Effect, History), StepRefusal> {
    match event {
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok((Effect::Done, history)),
        Event::Reconciled(_) if effect != Effect::Unknown => Err(WrongState),
        Event::Reconciled(Reconciled::Done) => Ok((Effect::Done, history)),
        Event::Reconciled(Reconciled::NotDone { .. }) if Some(now) < history.in_flight_until() => {
            Err(TooEarly)
        }
        Event::Reconciled(Reconciled::NotDone { .. }) => Ok((Effect::NotDone, history.without_doubt())),
        Event::Claimed { .. }
        | Event::Started { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::Stopped { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue
        | Event::Spent
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => Err(WrongState),
    }
}
