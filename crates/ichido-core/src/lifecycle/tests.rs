//! The lifecycle, by subject; the events and helpers that all share.

mod deaths;
mod doubt;
mod life;
mod operator;
pub(crate) mod walks;

use std::num::NonZeroU32;

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_000);
const SOON: Timestamp = Timestamp::from_secs(1_060);
const LATER: Timestamp = Timestamp::from_secs(1_090);
/// When `after` and `refusal` take their steps: by then everything is due and nothing is in transit.
const THEN: Timestamp = Timestamp::from_secs(1_100);

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn allowed(attempts: u32) -> NonZeroU32 {
    NonZeroU32::new(attempts).unwrap()
}

fn claimed(number: u64) -> Event {
    Event::Claimed { fence: fence(number), start_mark: StartMark::NotTracked }
}

fn marked(number: u64) -> Event {
    Event::Claimed { fence: fence(number), start_mark: StartMark::NotYet }
}

fn began(number: u64) -> Event {
    Event::Started { fence: fence(number) }
}

/// Two workers in a row die while they call with this message alone.
fn killed_twice(safety: Safety) -> [Event; 6] {
    [marked(1), began(1), died(1, true, safety), marked(2), began(2), died(2, true, safety)]
}

/// A failed call to a receiver that honours keys; it may be in transit until `SOON`.
fn failed(number: u64, failure: Failure, effect: Effect) -> Event {
    Event::Failed { fence: fence(number), failure, effect, safety: Safety::Keyed, in_flight_until: SOON }
}

fn again(number: u64, effect: Effect) -> Event {
    failed(number, Failure::Retry { due: SOON }, effect)
}

fn for_good(number: u64, effect: Effect) -> Event {
    failed(number, Failure::Permanent, effect)
}

fn in_doubt(number: u64) -> Event {
    failed(number, Failure::InDoubt, Effect::Unknown)
}

fn died(number: u64, alone: bool, safety: Safety) -> Event {
    Event::WorkerDied { fence: fence(number), alone, safety, due: LATER, in_flight_until: SOON }
}

fn stopped(number: u64) -> Event {
    Event::Stopped { fence: fence(number) }
}

fn not_done() -> Event {
    Event::Reconciled(Reconciled::NotDone { due: LATER })
}

fn requeued(safety: Safety) -> Event {
    Event::Requeued { allowed: true, safety }
}

/// A message with three attempts, after these events, each legal.
fn after(events: &[Event]) -> State {
    let mut state = State::queued(NOW, allowed(3));
    for event in events {
        state = state.step(*event, THEN).unwrap_or_else(|illegal| panic!("{event:?}: {illegal}"));
    }
    state
}

fn history(state: State) -> History {
    match state {
        State::Queued { history, .. }
        | State::Sending { history, .. }
        | State::Failed { history, .. }
        | State::Parked { history }
        | State::Dead { history, .. }
        | State::Cancelled { history, .. } => history,
        State::Sent => panic!("{state:?} has no history"),
    }
}

fn refusal(state: State, event: Event) -> StepRefusal {
    state.step(event, THEN).unwrap_err().why
}
