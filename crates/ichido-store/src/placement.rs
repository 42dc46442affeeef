//! Plans the rows for a lifecycle step.
//!
//! The lifecycle decides. This module chooses the row that holds a state, the event to append, and the change of the counts.
//! Both databases write what is planned here, so they cannot disagree.

use std::collections::{BTreeMap, BTreeSet};

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Doubt, Event, History, State, StepRefusal};
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Effect, ErrorCode};
use uuid::Uuid;

use crate::dead_letter::{DeadLetterRow, DeadLetterStep, Disposition};
use crate::group_key::GroupKey;
use crate::message::{Note, QueueName, ReceiverResponse, limits};

/// A message that takes a step.
#[derive(Clone, Debug)]
pub(crate) struct MovedMessage {
    pub(crate) id: Uuid,
    pub(crate) queue: QueueName,
    pub(crate) priority: u8,
}

/// One row of the audit trail. With `None` as the fence, the database assigns one.
#[derive(Clone, Debug)]
pub(crate) struct EventRow {
    pub(crate) message_id: Uuid,
    pub(crate) fence: Option<Fence>,
    pub(crate) step: i16,
    pub(crate) claimed_at: Option<Timestamp>,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) attempts: u32,
    pub(crate) deaths: u32,
    pub(crate) doubt: Option<Doubt>,
    pub(crate) effect: Effect,
    pub(crate) note: Note,
    pub(crate) node: Option<Uuid>,
}

/// A message with the row that will hold it.
#[derive(Clone, Debug)]
pub(crate) struct PlacedMessage<P> {
    pub(crate) moving: MovedMessage,
    pub(crate) history: History,
    pub(crate) row: P,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledColumns {
    pub(crate) state: &'static str,
    pub(crate) due: Timestamp,
}

#[derive(Clone, Debug)]
pub(crate) struct LetterColumns {
    pub(crate) state: &'static str,
    pub(crate) effect: Effect,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    /// When it died or was parked; `None` is now.
    pub(crate) since: Option<Timestamp>,
    pub(crate) disposition: Disposition,
    pub(crate) group: GroupKey,
    /// Whether its group gets a failure. Otherwise more is known about an earlier one.
    pub(crate) is_new_failure: bool,
}

/// The state of a dead letter before an event. Parts of it outlive the event.
#[derive(Clone, Debug)]
pub(crate) struct PriorLetter {
    pub(crate) since: Timestamp,
    pub(crate) disposition: Disposition,
    pub(crate) code: Option<String>,
    pub(crate) error: Option<String>,
    /// Its failure group; `None` if an earlier release wrote it.
    pub(crate) group: Option<Uuid>,
}

/// All rows that a set of steps writes.
#[derive(Debug, Default)]
pub(crate) struct RowChanges {
    pub(crate) events: Vec<EventRow>,
    pub(crate) ready: Vec<PlacedMessage<()>>,
    pub(crate) scheduled: Vec<PlacedMessage<ScheduledColumns>>,
    pub(crate) letters: Vec<PlacedMessage<LetterColumns>>,
    pub(crate) deltas: BTreeMap<(QueueName, &'static str), i32>,
    /// Dead letters to delete from their table before the rest is written.
    pub(crate) taken: Vec<Uuid>,
    /// The failure groups of open letters that were taken, once for each letter.
    pub(crate) left_groups: Vec<GroupKey>,
    /// Messages that start anew by a decision. A request to cancel an attempt before it is over.
    pub(crate) restarted: Vec<Uuid>,
}

/// What distinguishes an event in the audit trail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventStamp {
    /// The claim it ends; `None` for an operator's action, which gets its own fence.
    pub(crate) fence: Option<Fence>,
    pub(crate) claimed_at: Option<Timestamp>,
    pub(crate) node: Option<Uuid>,
    pub(crate) now: Timestamp,
}

impl RowChanges {
    /// Adds a message's step from one state to another, possibly through a third.
    pub(crate) fn add(
        &mut self,
        moving: &MovedMessage,
        from: State,
        event: Event,
        (first, second): (State, Option<State>),
        note: &Note,
        stamp: EventStamp,
    ) {
        if matches!(event, Event::Requeued { .. } | Event::Decided(_) | Event::Reconciled(_)) {
            self.restarted.push(moving.id);
        }
        self.event(moving, 0, (from, event.name(), first), note, stamp);
        if let Some(second) = second {
            self.event(moving, 1, (first, "spent", second), note, stamp);
        }
        let last = second.unwrap_or(first);
        self.place_row(moving, last, note, stamp.now);
        *self.deltas.entry((moving.queue.clone(), from.name())).or_default() -= 1;
        *self.deltas.entry((moving.queue.clone(), last.name())).or_default() += 1;
    }

    /// Returns the queues that got claimable messages.
    pub(crate) fn claimable(&self) -> Vec<QueueName> {
        let queues: BTreeSet<&QueueName> = self.ready.iter().map(|placed| &placed.moving.queue).collect();
        queues.into_iter().cloned().collect()
    }

    /// Carries over what a dead letter keeps through the event that was added last. Closed letters are counted separately, as
    /// `closed`: they wait for nobody.
    pub(crate) fn carry_over(
        &mut self,
        moving: &MovedMessage,
        event: Event,
        (from, to): (State, State),
        before: PriorLetter,
    ) {
        let stays = from.name() == to.name();
        let disposition = match event {
            Event::Discarded => Disposition::Discarded,
            Event::Replaced => Disposition::Replaced,
            _ if stays => before.disposition,
            _ => Disposition::Open,
        };
        let mut closed = |by: i32| {
            *self.deltas.entry((moving.queue.clone(), "dead")).or_default() -= by;
            *self.deltas.entry((moving.queue.clone(), "closed")).or_default() += by;
        };
        if before.disposition != Disposition::Open {
            closed(-1);
        }
        if disposition != Disposition::Open {
            closed(1);
        }
        let group = before.group_key(&moving.queue);
        if before.disposition == Disposition::Open {
            self.left_groups.extend(group.clone());
        }
        if let Some(letter) = self.letters.last_mut().filter(|letter| letter.moving.id == moving.id) {
            letter.row.disposition = disposition;
            if stays {
                // More is known about it now; it did not die again.
                letter.row.since = Some(before.since);
            }
            if letter.row.code.is_none() {
                letter.row.group = group.unwrap_or_else(|| {
                    GroupKey::new(&moving.queue, before.code.as_deref(), before.error.as_deref())
                });
                letter.row.is_new_failure = false;
                (letter.row.code, letter.row.error) = (before.code, before.error);
            }
        }
    }

    fn event(
        &mut self,
        moving: &MovedMessage,
        step: i16,
        (from, kind, to): (State, &'static str, State),
        note: &Note,
        stamp: EventStamp,
    ) {
        let history = to.history().or(from.history()).map(storable_history);
        self.events.push(EventRow {
            message_id: moving.id,
            fence: stamp.fence,
            step,
            claimed_at: stamp.claimed_at,
            from: from.name(),
            to: to.name(),
            kind,
            attempts: history.map_or(0, |history| history.attempts),
            deaths: history.map_or(0, |history| history.deaths),
            doubt: history.and_then(|history| history.doubt),
            effect: to.effect(),
            note: note.clone(),
            node: stamp.node,
        });
    }

    fn place_row(&mut self, moving: &MovedMessage, state: State, note: &Note, now: Timestamp) {
        let moving = moving.clone();
        match state {
            State::Queued { due, history } if due <= now => {
                self.ready.push(PlacedMessage { moving, history: storable_history(history), row: () });
            }
            State::Queued { due, history } | State::Failed { due, history } => {
                self.scheduled.push(PlacedMessage {
                    moving,
                    history: storable_history(history),
                    row: ScheduledColumns { state: state.name(), due },
                });
            }
            State::Parked { history } | State::Dead { history, .. } => {
                let code = note.code.map(ErrorCode::as_str);
                let row = LetterColumns {
                    state: state.name(),
                    effect: state.effect(),
                    code: code.map(str::to_owned),
                    error: note.excerpt.clone(),
                    since: None,
                    disposition: Disposition::Open,
                    group: GroupKey::new(&moving.queue, code, note.excerpt.as_deref()),
                    is_new_failure: true,
                };
                self.letters.push(PlacedMessage { moving, history: storable_history(history), row });
            }
            // A sent or cancelled message is only in history; a message in flight is in its lease.
            State::Sent | State::Cancelled { .. } | State::Sending { .. } => (),
        }
    }
}

/// Returns the disposition of a dead letter; other messages are open.
pub(crate) fn standing_of(before: Option<&PriorLetter>) -> Disposition {
    before.map_or(Disposition::Open, |before| before.disposition)
}

/// Applies an operator's event to a message.
///
/// Events of a claim are refused. They belong to a lease, which an operator does not have: the operator's claim would hold the
/// message forever, and the operator's outcome would leave the lease to be rescued.
pub(crate) fn apply_operator_event(
    state: State,
    disposition: Disposition,
    event: Event,
    now: Timestamp,
) -> Result<(State, Option<State>), StepRefusal> {
    match event {
        Event::Claimed { .. }
        | Event::Started { .. }
        | Event::Succeeded { .. }
        | Event::Failed { .. }
        | Event::GivenBack { .. }
        | Event::Stopped { .. }
        | Event::WorkerDied { .. } => Err(StepRefusal::WrongState),
        // The replacement would run beside it. And a discard, which can be undone, would erase that it was replaced.
        Event::Requeued { .. } | Event::Replaced | Event::Discarded
            if disposition == Disposition::Replaced =>
        {
            Err(StepRefusal::HasSuccessor)
        }
        Event::CameDue
        | Event::Spent
        | Event::LateSuccess { .. }
        | Event::Reconciled(_)
        | Event::Decided(_)
        | Event::Requeued { .. }
        | Event::Discarded
        | Event::Replaced
        | Event::Cancelled => state.advance(event, now).map_err(|illegal| illegal.why),
    }
}

/// Applies the same kind of event to each of these dead letters. Returns the rows to write and the outcomes.
pub(crate) fn apply_to_letters(
    found: &[DeadLetterRow],
    event: impl Fn(&DeadLetterRow, Timestamp) -> Event,
    note: &Note,
    now: Timestamp,
) -> (RowChanges, Vec<(Uuid, DeadLetterStep)>) {
    let mut changes = RowChanges::default();
    let mut answers = Vec::with_capacity(found.len());
    for letter in found {
        let (from, event) = (letter.lifecycle(), event(letter, now));
        let stepped = match apply_operator_event(from, letter.disposition, event, now) {
            Err(why) => DeadLetterStep::Refused(why),
            // It is closed already: there is nothing to record.
            Ok((first, _)) if event == Event::Discarded && letter.disposition != Disposition::Open => {
                DeadLetterStep::Now(first)
            }
            Ok(states) => {
                let to = states.1.unwrap_or(states.0);
                let moving =
                    MovedMessage { id: letter.id, queue: letter.queue.clone(), priority: letter.priority };
                let stamp = EventStamp { fence: None, claimed_at: None, node: None, now };
                changes.add(&moving, from, event, states, note, stamp);
                changes.carry_over(&moving, event, (from, to), PriorLetter::new(letter));
                changes.taken.push(letter.id);
                DeadLetterStep::Now(to)
            }
        };
        answers.push((letter.id, stepped));
    }
    (changes, answers)
}

impl PriorLetter {
    fn new(letter: &DeadLetterRow) -> Self {
        let (code, error) = (letter.code.clone(), letter.error.clone());
        Self { since: letter.since, disposition: letter.disposition, code, error, group: letter.group }
    }

    /// Returns its failure group, if it has one. Its id is the stored one: a later release may normalise errors differently.
    fn group_key(&self, queue: &QueueName) -> Option<GroupKey> {
        let id = self.group?;
        Some(GroupKey { id, ..GroupKey::new(queue, self.code.as_deref(), self.error.as_deref()) })
    }
}

/// Truncates a note to what every database can hold. A settle must not fail because of a receiver's text.
pub(crate) fn storable_note(note: Note) -> Note {
    let fit = |text: Option<String>| text.map(|text| excerpt(&text));
    let status = note.status.filter(|status| i16::try_from(*status).is_ok());
    let response = note.response.map(|response| ReceiverResponse {
        content_type: excerpt(&response.content_type),
        ..response.kept_up_to(limits::MAX_RESPONSE_BYTES)
    });
    let (receipt, actor) = (fit(note.receipt), fit(note.actor));
    Note { status, receipt, excerpt: fit(note.excerpt), response, actor, ..note }
}

/// Caps counts at what every database can hold. A holder's report must not leave a row that cannot be read.
fn storable_history(history: History) -> History {
    let most = limits::MAX_ATTEMPTS;
    History { attempts: history.attempts.min(most), deaths: history.deaths.min(most), ..history }
}

/// Returns the beginning of a text, cut at a character boundary.
pub(crate) fn excerpt(text: &str) -> String {
    // PostgreSQL's text cannot hold NUL, and this text may come from anywhere.
    let mut text = text.replace('\0', "\u{fffd}");
    let mut end = text.len().min(limits::MAX_EXCERPT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
