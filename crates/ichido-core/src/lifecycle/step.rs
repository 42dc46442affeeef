//! The one total transition function, a state at a time.
//!
//! Every refused pair is listed, so that a new state or event does not compile until somebody decides.

use super::{Begun, Decision, Event, Failure, History, State};
use crate::fence::Fence;
use crate::retry::{Safety, may_repeat};
use crate::time::Timestamp;
use crate::verdict::Effect;

/// An event that does not apply; the state stays as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} message: {why}", .state.name())]
pub struct IllegalStep {
    /// The state, unchanged.
    pub state: State,
    /// The event that was refused.
    pub event: Event,
    /// Why.
    pub why: Why,
}

/// Why an event does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The state knows no such event.
    #[error("nothing leads there from this state")]
    NotFromHere,
    /// Another claim holds it, or none does; or a new claim's fence is not greater than the last.
    #[error("the fence is not that of the current claim")]
    StaleFence,
    /// Its time has not come.
    #[error("it is not due yet")]
    NotDue,
    /// No try is left.
    #[error("all tries are used up")]
    NoTryLeft,
    /// A try is left.
    #[error("a try is left")]
    TryLeft,
    /// The call may have begun, so the try counts.
    #[error("the call may have begun")]
    MayHaveBegun,
    /// The first call may still be travelling.
    #[error("the call may still be travelling; decide later")]
    TooEarly,
    /// The queue does not allow a requeue.
    #[error("its queue does not allow a requeue")]
    RequeueNotAllowed,
    /// It may have been done, or was, and a repetition could do it twice.
    #[error("it may have taken effect, and sending it again could do it twice; ask after it first")]
    CouldDoItTwice,
}

use Why::{
    CouldDoItTwice, MayHaveBegun, NoTryLeft, NotDue, NotFromHere, RequeueNotAllowed, StaleFence, TooEarly,
    TryLeft,
};

impl State {
    /// The next state, or why the event does not apply.
    pub fn step(self, event: Event, now: Timestamp) -> Result<State, IllegalStep> {
        let next = match self {
            State::Queued { due, history } => waiting(due, history, event, now),
            State::Failed { due, history } => failed(due, history, event, now),
            State::Sending {
                fence,
                begun,
                history,
            } => sending(fence, begun, history, event, now),
            State::Parked { decide_from, history } => parked(decide_from, history, event, now),
            State::Dead { effect, history } => dead(effect, history, event, now),
            State::Sent | State::Cancelled { .. } => Err(NotFromHere),
        };
        next.map_err(|why| IllegalStep {
            state: self,
            event,
            why,
        })
    }
}

/// Queued, and failed with its backoff running: both wait to be claimed.
fn waiting(due: Timestamp, history: History, event: Event, now: Timestamp) -> Result<State, Why> {
    match event {
        Event::Claimed { .. } if now < due => Err(NotDue),
        Event::Claimed { .. } if !history.may_try_again() => Err(NoTryLeft),
        Event::Claimed { fence, .. } if Some(fence) <= history.last_fence => Err(StaleFence),
        Event::Claimed { fence, begun } => Ok(State::Sending {
            fence,
            begun,
            history: history.claimed(fence),
        }),
        // The answer to an earlier claim came after all: what was to be sent again is not.
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok(State::Sent),
        Event::Cancelled => Ok(State::Cancelled {
            effect: history.effect(),
        }),
        Event::Began { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue
        | Event::Spent
        | Event::Reconciled { .. }
        | Event::Decided(_)
        | Event::Requeued { .. } => Err(NotFromHere),
    }
}

fn failed(due: Timestamp, history: History, event: Event, now: Timestamp) -> Result<State, Why> {
    match event {
        Event::CameDue if now < due => Err(NotDue),
        Event::CameDue if !history.may_try_again() => Err(NoTryLeft),
        Event::CameDue => Ok(State::Queued { due, history }),
        Event::Spent if history.may_try_again() => Err(TryLeft),
        Event::Spent => Ok(State::Dead {
            effect: history.effect(),
            history,
        }),
        Event::Claimed { .. }
        | Event::Began { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. }
        | Event::Reconciled { .. }
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Cancelled => waiting(due, history, event, now),
    }
}

fn sending(held: Fence, begun: Begun, history: History, event: Event, now: Timestamp) -> Result<State, Why> {
    match event {
        Event::Began { fence }
        | Event::Succeeded { fence }
        | Event::Failed { fence, .. }
        | Event::GivenBack { fence, .. }
        | Event::WorkerDied { fence, .. }
            if fence != held =>
        {
            Err(StaleFence)
        }
        Event::Began { .. } => Ok(State::Sending {
            fence: held,
            begun: Begun::Yes,
            history,
        }),
        Event::Succeeded { .. } => Ok(State::Sent),
        Event::Failed { failure, .. } => Ok(after_failure(failure, history, now)),
        // A worker of a queue without marks vouches for it; where there is a mark, the mark decides.
        Event::GivenBack { .. } if begun == Begun::Yes => Err(MayHaveBegun),
        Event::GivenBack { due, .. } => Ok(State::Queued {
            due,
            history: history.given_back(),
        }),
        Event::WorkerDied {
            alone,
            safety,
            due,
            decide_from,
            ..
        } => Ok(after_death(
            begun,
            history,
            Death {
                alone,
                safety,
                due,
                decide_from,
            },
            now,
        )),
        // Another claim, or an answer to an earlier one, meets a message that is being sent: it is kept as
        // evidence by the caller, and changes nothing here.
        Event::Claimed { .. } | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue
        | Event::Spent
        | Event::Reconciled { .. }
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Cancelled => Err(NotFromHere),
    }
}

fn after_failure(failure: Failure, history: History, now: Timestamp) -> State {
    match failure {
        Failure::Again { due, effect } => State::Failed {
            due,
            history: history.after(effect, now),
        },
        Failure::ForGood { effect } => {
            let effect = history.effect().after(effect);
            State::Dead {
                effect,
                history: history.after(effect, now),
            }
        }
        Failure::InDoubt { decide_from } => State::Parked {
            decide_from,
            history: history.after(Effect::Unknown, now),
        },
    }
}

#[derive(Clone, Copy)]
struct Death {
    alone: bool,
    safety: Safety,
    due: Timestamp,
    decide_from: Timestamp,
}

/// A worker died with the message in its hands.
///
/// What had not begun was not done, and is not charged. What may have begun is unknown: where a repetition
/// could do it twice it is parked at once. In a batch nobody can tell who did it, so nobody is charged and each is
/// suspect; a message that was alone is charged, and in quarantine when it does it again.
fn after_death(begun: Begun, history: History, death: Death, now: Timestamp) -> State {
    let Death {
        alone,
        safety,
        due,
        decide_from,
    } = death;
    if begun == Begun::NotYet {
        return State::Queued {
            due: now,
            history: history.given_back(),
        };
    }
    let history = history.after(Effect::Unknown, now);
    if safety == Safety::Neither {
        return State::Parked { decide_from, history };
    }
    if !alone {
        return State::Queued {
            due: now,
            history: History {
                suspect: true,
                ..history.given_back()
            },
        };
    }
    let history = History {
        deaths: history.deaths.saturating_add(1),
        ..history
    };
    if history.deaths < History::DEATHS_MAX {
        return State::Failed { due, history };
    }
    match safety {
        Safety::Keyed | Safety::Neither => State::Parked { decide_from, history },
        // Its effect does not matter, so there is nothing for a person to find out.
        Safety::Repeatable => State::Dead {
            effect: history.effect(),
            history,
        },
    }
}

fn parked(decide_from: Timestamp, history: History, event: Event, now: Timestamp) -> Result<State, Why> {
    let again = || State::Queued {
        due: now,
        history: history.cleared().reborn(),
    };
    match event {
        // Proof that it was done needs no waiting: it cannot become undone.
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok(State::Sent),
        Event::Reconciled { done: true } | Event::Decided(Decision::WasDone) => Ok(State::Sent),
        Event::Reconciled { done: false } | Event::Decided(_) if now < decide_from => Err(TooEarly),
        Event::Reconciled { done: false } | Event::Decided(Decision::SendAgain) => Ok(again()),
        Event::Decided(Decision::GiveUp) => Ok(State::Dead {
            effect: history.effect(),
            history,
        }),
        Event::Claimed { .. }
        | Event::Began { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue | Event::Spent | Event::Requeued { .. } | Event::Cancelled => Err(NotFromHere),
    }
}

fn dead(effect: Effect, history: History, event: Event, now: Timestamp) -> Result<State, Why> {
    match event {
        Event::Requeued { allowed: false, .. } => Err(RequeueNotAllowed),
        Event::Requeued { safety, .. } => match may_repeat(safety, effect) {
            Ok(()) => Ok(State::Queued {
                due: now,
                history: history.reborn(),
            }),
            Err(_) => Err(CouldDoItTwice),
        },
        // What is learnt later is kept; it does not bring the message back.
        Event::LateSuccess { fence } if Some(fence) <= history.last_fence => Ok(State::Dead {
            effect: Effect::Done,
            history,
        }),
        Event::Reconciled { .. } if effect != Effect::Unknown => Err(NotFromHere),
        Event::Reconciled { done: true } => Ok(State::Dead {
            effect: Effect::Done,
            history,
        }),
        Event::Reconciled { done: false } => Ok(State::Dead {
            effect: Effect::NotDone,
            history: history.cleared(),
        }),
        Event::Claimed { .. }
        | Event::Began { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::WorkerDied { .. }
        | Event::LateSuccess { .. } => Err(StaleFence),
        Event::CameDue | Event::Spent | Event::Decided(_) | Event::Cancelled => Err(NotFromHere),
    }
}
