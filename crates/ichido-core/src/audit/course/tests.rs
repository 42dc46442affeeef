use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use uuid::Uuid;

use super::{CourseViolation, Walk};
use crate::audit::entry::{AuditEntry, EntryId, Subject};
use crate::fence::Fence;
use crate::lifecycle::tests::walks::events;
use crate::lifecycle::{Event, Failure, StartMark, State};
use crate::retry::Safety;
use crate::time::Timestamp;
use crate::verdict::Effect;

const MESSAGE: Uuid = Uuid::from_u128(1);
/// Changes a history.
type Forge = fn(&mut Vec<AuditEntry>);

/// More than any history here uses.
const ISSUED: i64 = 1_000;

/// Lives as the store records them: each transition is an entry.
struct Life {
    state: State,
    max_attempts: u32,
    now: i64,
    /// The last issued fence.
    fence: u64,
    /// The fence of the last ended attempt.
    attempt: Option<Fence>,
    /// A new message replaced it.
    replaced: bool,
    entries: Vec<AuditEntry>,
}

impl Life {
    fn new(max_attempts: u32) -> Self {
        let allowed = NonZeroU32::new(max_attempts).unwrap();
        let state = State::queued(Timestamp::from_secs(1_000), allowed);
        let (attempt, replaced, entries) = (None, false, Vec::new());
        Self { state, max_attempts, now: 1_000, fence: 0, attempt, replaced, entries }
    }

    fn draw(&mut self) -> Fence {
        self.fence += 1;
        Fence::new(self.fence).unwrap()
    }

    /// Applies an event to the message, under the fences that a store would assign; does nothing if it does not apply.
    fn happen(&mut self, event: Event) {
        self.now += 1;
        let now = Timestamp::from_secs(self.now);
        let (current, claimed_at) = match self.state {
            State::Sending { fence, claimed_at, .. } => (Some(fence), Some(claimed_at)),
            _ => (None, None),
        };
        let event = self.fenced(event, current);
        // As a store refuses it: the new message would be sent in addition.
        if self.replaced && matches!(event, Event::Requeued { .. } | Event::Replaced | Event::Discarded) {
            return;
        }
        let Ok((first, second)) = self.state.advance(event, now) else { return };
        match (self.state, first, event) {
            // A claim and a start mark have no entries of their own.
            (_, State::Sending { .. }, Event::Claimed { .. } | Event::Started { .. }) => (),
            (State::Sending { .. }, State::Sending { .. }, Event::LateSuccess { fence }) => {
                self.prove(fence, now);
            }
            (State::Sending { fence, .. }, ..) => {
                self.attempt = Some(fence);
                self.record(fence, 0, (self.state, event.name(), first), claimed_at, now);
                if let Some(second) = second {
                    self.record(fence, 1, (first, Event::Spent.name(), second), claimed_at, now);
                }
            }
            _ => {
                let fence = self.draw();
                self.record(fence, 0, (self.state, event.name(), first), None, now);
            }
        }
        self.replaced |= event == Event::Replaced;
        self.state = second.unwrap_or(first);
    }

    fn fenced(&mut self, event: Event, current: Option<Fence>) -> Event {
        let next = Fence::new(self.fence + 1).unwrap();
        let current = current.unwrap_or(next);
        let event = match event {
            Event::Claimed { start_mark, .. } => Event::Claimed { fence: next, start_mark },
            Event::Started { .. } => Event::Started { fence: current },
            Event::Succeeded { .. } => Event::Succeeded { fence: current },
            Event::Failed { failure, effect, safety, in_flight_until, .. } => {
                Event::Failed { fence: current, failure, effect, safety, in_flight_until }
            }
            Event::GivenBack { due, .. } => Event::GivenBack { fence: current, due },
            Event::Stopped { .. } => Event::Stopped { fence: current },
            Event::WorkerDied { alone, safety, due, in_flight_until, .. } => {
                Event::WorkerDied { fence: current, alone, safety, due, in_flight_until }
            }
            Event::LateSuccess { .. } => Event::LateSuccess { fence: self.attempt.unwrap_or(next) },
            other => other,
        };
        if let (Event::Claimed { .. }, true) =
            (event, self.state.step(event, Timestamp::from_secs(self.now)).is_ok())
        {
            self.draw();
        }
        event
    }

    fn prove(&mut self, fence: Fence, now: Timestamp) {
        let of = i64::try_from(fence.get()).unwrap();
        let end = self.entries.iter().find(|entry| entry.id.fence == of && entry.id.step == 0).unwrap();
        let mut proof = end.clone();
        proof.id.step = 2;
        (proof.at, proof.claimed_at) = (now, None);
        for (field, word) in [
            (&mut proof.from, "sending"),
            (&mut proof.to, "sending"),
            (&mut proof.kind, "late_success"),
            (&mut proof.effect, "done"),
        ] {
            word.clone_into(field);
        }
        if self.entries.iter().all(|entry| entry.id != proof.id) {
            self.entries.push(proof);
            self.entries.sort_by_key(|entry| entry.id);
        }
    }

    fn record(
        &mut self,
        fence: Fence,
        step: i16,
        (from, kind, to): (State, &str, State),
        claimed_at: Option<Timestamp>,
        at: Timestamp,
    ) {
        let history = to.history().or(from.history()).unwrap();
        let id = EntryId { message: MESSAGE, fence: i64::try_from(fence.get()).unwrap(), step };
        self.entries.push(AuditEntry {
            id,
            at,
            claimed_at,
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            kind: kind.to_owned(),
            attempts: history.attempts.into(),
            deaths: history.deaths.into(),
            doubt_since: history.doubt.map(|doubt| doubt.since),
            in_flight_until: history.doubt.map(|doubt| doubt.in_flight_until),
            effect: to.effect().as_str().to_owned(),
            code: None,
            status: None,
            result_digest: None,
            receipt: None,
            excerpt: None,
            node: None,
            actor: None,
            about: None,
            subject: Some(subject(self.max_attempts)),
        });
        self.entries.sort_by_key(|entry| entry.id);
    }

    fn is_sending(&self) -> bool {
        matches!(self.state, State::Sending { .. })
    }

    /// What does not follow, and why.
    fn violations(&self) -> Vec<(i64, i16, CourseViolation)> {
        violations(&self.entries, self.is_sending())
    }
}

fn subject(max_attempts: u32) -> Subject {
    Subject {
        queue: "orders".to_owned(),
        identity: "alice".to_owned(),
        key: "k".to_owned(),
        digest: vec![7; 32],
        trace: None,
        trace_id: None,
        replacement_of: None,
        created_at: Timestamp::EPOCH,
        max_attempts,
    }
}

fn violations(entries: &[AuditEntry], is_sending: bool) -> Vec<(i64, i16, CourseViolation)> {
    let mut walk = Walk::from_the_first();
    let mut found = Vec::new();
    for entry in entries {
        if let Err(violation) = walk.step(entry, ISSUED) {
            found.push((entry.id.fence, entry.id.step, violation));
        }
    }
    if let Err((id, violation)) = walk.end(is_sending) {
        found.push((id.fence, id.step, violation));
    }
    found
}

/// The life fills in the correct one.
fn any_fence() -> Fence {
    Fence::new(1).unwrap()
}

fn claimed() -> Event {
    Event::Claimed { fence: any_fence(), start_mark: StartMark::NotTracked }
}

fn succeeded() -> Event {
    Event::Succeeded { fence: any_fence() }
}

fn failed(failure: Failure, effect: Effect) -> Event {
    let (safety, in_flight_until) = (Safety::Keyed, Timestamp::EPOCH);
    Event::Failed { fence: any_fence(), failure, effect, safety, in_flight_until }
}

fn again() -> Event {
    failed(Failure::Retry { due: Timestamp::EPOCH }, Effect::NotDone)
}

fn died() -> Event {
    let (safety, due, in_flight_until) = (Safety::Keyed, Timestamp::EPOCH, Timestamp::EPOCH);
    Event::WorkerDied { fence: any_fence(), alone: true, safety, due, in_flight_until }
}

fn late() -> Event {
    Event::LateSuccess { fence: any_fence() }
}

fn requeued() -> Event {
    Event::Requeued { allowed: true, safety: Safety::Keyed }
}

fn life(events: &[Event]) -> Life {
    let mut life = Life::new(3);
    for event in events {
        life.happen(*event);
    }
    life
}

fn dead() -> Life {
    let life =
        life(&[claimed(), again(), Event::CameDue, claimed(), failed(Failure::Permanent, Effect::NotDone)]);
    assert_eq!((life.state.name(), life.entries.len()), ("dead", 3));
    life
}

/// The entry of a life that ended well, to be copied.
fn success(fence: i64, attempts: i64) -> AuditEntry {
    let mut entry = life(&[claimed(), succeeded()]).entries.remove(0);
    (entry.id.fence, entry.attempts) = (fence, attempts);
    entry
}

proptest! {
    /// Whatever the lifecycle does to a message follows, seen from its first entry or from any other.
    #[test]
    fn every_history_of_the_lifecycle_is_accepted(
        events in proptest::collection::vec(events(), 0..80), attempts in 1_u32..5,
    ) {
        let mut life = Life::new(attempts);
        for event in events {
            life.happen(event);
        }
        prop_assert_eq!(life.violations(), [], "{:?}", life.entries);
        for start in 0..life.entries.len() {
            let mut walk = Walk::from_the_middle();
            for entry in &life.entries[start..] {
                prop_assert_eq!(walk.step(entry, ISSUED), Ok(()), "from {}: {:?}", start, life.entries);
            }
        }
    }

    /// A success that is inserted after any end, as if there had been one more attempt, is refused unless the message
    /// waited.
    #[test]
    fn success_without_a_lifecycle_step_is_refused(
        events in proptest::collection::vec(events(), 1..60), attempts in 1_i64..9,
    ) {
        let mut life = Life::new(3);
        for event in events {
            life.happen(event);
        }
        prop_assume!(!life.is_sending() && !life.entries.is_empty());
        let waited = matches!(life.state, State::Queued { .. } | State::Failed { .. });
        let counted = life.state.history().map(|history| i64::from(history.attempts) + 1);
        let forged = success(ISSUED, attempts);
        let mut entries = life.entries.clone();
        entries.push(forged);
        let is_found = !violations(&entries, false).is_empty();
        prop_assert!(is_found || waited && counted == Some(attempts), "{:?}", entries);
    }
}

#[test]
fn a_success_after_a_death_is_refused_whatever_its_fence_and_date() {
    let dead = dead();
    for (fence, violation) in [
        (5, CourseViolation::NoSuchStep),
        (ISSUED, CourseViolation::NoSuchStep),
        (ISSUED + 1, CourseViolation::FenceNotIssued),
        (0, CourseViolation::FenceNotIssued),
        (-7, CourseViolation::FenceNotIssued),
        (i64::MIN, CourseViolation::FenceNotIssued),
    ] {
        for at in [0, 1_001, 9_000] {
            let mut entries = dead.entries.clone();
            entries.push(AuditEntry { at: Timestamp::from_secs(at), ..success(fence, 3) });
            entries.sort_by_key(|entry| entry.id);
            let found = violations(&entries, false);
            assert_eq!(found.first(), Some(&(fence, 0, violation)), "{at}");
        }
    }
}

#[test]
fn only_the_inserted_or_removed_entry_is_reported() {
    let complete = life(&[
        claimed(),
        again(),
        Event::CameDue,
        claimed(),
        again(),
        Event::CameDue,
        claimed(),
        succeeded(),
    ]);
    assert_eq!(complete.entries.len(), 5);
    for index in [0, 2] {
        let mut entries = complete.entries.clone();
        entries.remove(index);
        let next = entries[index].id;
        assert_eq!(
            violations(&entries, false),
            [(next.fence, 0, CourseViolation::NoSuchStep)],
            "without {index}"
        );
    }
    // Between the first attempt and the time it came due.
    let mut entries = complete.entries.clone();
    for entry in &mut entries[1..] {
        entry.id.fence += 10;
    }
    entries.insert(1, success(5, 7));
    assert_eq!(violations(&entries, false), [(5, 0, CourseViolation::NoSuchStep)]);
    // Alone it could be true; what comes after it cannot.
    entries[1].attempts = 2;
    assert_eq!(violations(&entries, false), [(12, 0, CourseViolation::NoSuchStep)]);
}

#[test]
fn each_kind_of_forgery_is_refused() {
    let forgeries: [(&str, Forge, CourseViolation); 12] = [
        (
            "an effect that no step gives",
            |entries| "done".clone_into(&mut entries[2].effect),
            CourseViolation::NoSuchStep,
        ),
        ("another state", |entries| "parked".clone_into(&mut entries[2].to), CourseViolation::NoSuchStep),
        (
            "another state before",
            |entries| "queued".clone_into(&mut entries[2].from),
            CourseViolation::NoSuchStep,
        ),
        (
            "a kind that is none",
            |entries| "approved".clone_into(&mut entries[2].kind),
            CourseViolation::NoSuchStep,
        ),
        ("more attempts", |entries| entries[2].attempts = 7, CourseViolation::NoSuchStep),
        ("fewer attempts", |entries| entries[2].attempts = 1, CourseViolation::NoSuchStep),
        ("deaths", |entries| entries[2].deaths = 1, CourseViolation::NoSuchStep),
        (
            "half a doubt",
            |entries| entries[2].doubt_since = Some(Timestamp::EPOCH),
            CourseViolation::NoSuchStep,
        ),
        ("no claim", |entries| entries[2].claimed_at = None, CourseViolation::NoSuchStep),
        (
            "the fence of the entry before",
            |entries| entries[2].id = EntryId { step: 1, ..entries[1].id },
            CourseViolation::NoSuchStep,
        ),
        ("a step that nothing has", |entries| entries[2].id.step = 3, CourseViolation::OutOfPlace),
        ("no message", |entries| entries[2].subject = None, CourseViolation::NoMessage),
    ];
    for (name, forge, violation) in forgeries {
        let mut entries = dead().entries;
        forge(&mut entries);
        let id = entries[2].id;
        assert_eq!(violations(&entries, false), [(id.fence, id.step, violation)], "{name}");
    }
}

#[test]
fn operator_actions_must_be_allowed() {
    let refused = |life: &Life, kind: &str, to: &str, attempts: i64, effect: &str| {
        let mut entries = life.entries.clone();
        let last = entries.last().unwrap();
        let mut entry = AuditEntry { claimed_at: None, from: last.to.clone(), attempts, ..last.clone() };
        entry.id = EntryId { fence: ISSUED, step: 0, ..entry.id };
        kind.clone_into(&mut entry.kind);
        to.clone_into(&mut entry.to);
        effect.clone_into(&mut entry.effect);
        entries.push(entry);
        !violations(&entries, false).is_empty()
    };
    let dead = dead();
    assert!(!refused(&dead, "requeued", "queued", 0, "not_done"));
    assert!(refused(&dead, "requeued", "queued", 2, "not_done"), "the count starts again");
    assert!(refused(&dead, "decided", "sent", 2, "done"), "only about parked messages");
    assert!(refused(&dead, "late_success", "sent", 2, "done"), "it stays dead");
    assert!(!refused(&dead, "late_success", "dead", 2, "done"));
    assert!(refused(&dead, "cancelled", "cancelled", 2, "not_done"));
    let replaced = {
        let mut life = self::dead();
        life.happen(Event::Replaced);
        life
    };
    assert!(refused(&replaced, "requeued", "queued", 0, "not_done"), "its successor would be done beside it");
    let untried = life(&[Event::Cancelled]);
    assert!(refused(&untried, "late_success", "cancelled", 0, "done"), "it was never sent");
    let sent = life(&[claimed(), succeeded()]);
    for (kind, to) in [("requeued", "queued"), ("cancelled", "cancelled"), ("came_due", "queued")] {
        assert!(refused(&sent, kind, to, 0, "not_done"), "{kind}");
    }
}

#[test]
fn proof_belongs_to_its_attempt_and_counts() {
    let mut resent = life(&[claimed(), died(), Event::CameDue, claimed(), late()]);
    assert_eq!(resent.entries.last().map(|entry| entry.kind.as_str()), Some("came_due"));
    assert_eq!(resent.violations(), [], "its holder still sends it");
    resent.happen(again());
    assert_eq!((resent.state, resent.violations()), (State::Sent, vec![]));

    let without: Vec<AuditEntry> =
        resent.entries.iter().filter(|entry| entry.id.step != 2).cloned().collect();
    assert_eq!(violations(&without, false).len(), 1, "a failure that ends as sent needs a proof");

    // Inserted next to an attempt of a message that ended otherwise.
    let proof = resent.entries.iter().find(|entry| entry.id.step == 2).unwrap().clone();
    let mut ended =
        life(&[claimed(), died(), Event::CameDue, claimed(), failed(Failure::Permanent, Effect::NotDone)]);
    ended.entries.push(proof);
    ended.entries.sort_by_key(|entry| entry.id);
    assert_eq!(ended.violations(), [(1, 2, CourseViolation::ProofIgnored)]);
    // Next to something that is not an attempt.
    let mut requeued = {
        let mut life = dead();
        life.happen(requeued());
        life
    };
    let (fence, proof) = (requeued.entries[3].id.fence, ended.entries[1].clone());
    requeued.entries.push(AuditEntry { id: EntryId { fence, step: 2, ..proof.id }, ..proof });
    assert_eq!(requeued.violations()[0], (fence, 2, CourseViolation::NoSuchStep));
}

#[test]
fn action_entries_have_no_attempts() {
    let action = AuditEntry {
        claimed_at: None,
        attempts: 0,
        effect: "none".to_owned(),
        kind: "paused".to_owned(),
        from: "running".to_owned(),
        to: "paused".to_owned(),
        about: Some("queue orders".to_owned()),
        subject: None,
        ..success(3, 0)
    };
    assert_eq!(violations(std::slice::from_ref(&action), false), []);
    let before = AuditEntry { id: EntryId { fence: 2, ..action.id }, ..action.clone() };
    assert_eq!(violations(&[before, action.clone()], false), []);
    for forged in [
        AuditEntry { subject: Some(subject(3)), ..action.clone() },
        AuditEntry { effect: "done".to_owned(), ..action.clone() },
        AuditEntry { attempts: 1, ..action.clone() },
    ] {
        assert_eq!(violations(&[forged], false), [(3, 0, CourseViolation::NotAnAction)]);
    }
    let never_issued = AuditEntry { id: EntryId { fence: ISSUED + 1, ..action.id }, ..action };
    assert_eq!(violations(&[never_issued], false), [(ISSUED + 1, 0, CourseViolation::FenceNotIssued)]);
}

#[test]
fn a_clock_that_was_set_back_is_measured_and_breaks_no_rule() {
    let mut entries = dead().entries;
    entries[2].at = Timestamp::from_micros(entries[1].at.as_micros() - 7_200_000_000);
    assert_eq!(violations(&entries, false), []);
    let mut walk = Walk::from_the_first();
    let mut set_back = Vec::new();
    for entry in &entries {
        set_back.push(walk.set_back(entry));
        walk.step(entry, ISSUED).unwrap();
    }
    assert_eq!(set_back, [None, None, Some(Duration::from_hours(2))]);
}
