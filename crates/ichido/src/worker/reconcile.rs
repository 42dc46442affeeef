//! Asking after what is parked: destinations that can be asked by key are, once no call can still be travelling (SPEC F2).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ichido_core::lifecycle::{Event, Found, State};
use ichido_core::time::Timestamp;
use ichido_store::message::{Letter, LetterState, Note, Stepped};
use ichido_store::node::Duty;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::meter::{self, Outcome};
use super::node::{Node, Served};
use super::upkeep::{Due, said};
use crate::destination::Asked;
use crate::letters::{Resolution, tell_resolved};

/// How often it is looked whether a pass is due.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long after a pass over a queue's parked messages the next one begins.
const ASK_EVERY: Duration = Duration::from_mins(1);
/// The most parked messages of a queue in one round.
const PAGE: u32 = 100;
/// The most questions to one destination at once.
const ASK_AT_ONCE: usize = 8;

pub(super) struct Reconciler {
    node: Arc<Node>,
    passes: Vec<Pass>,
    due: Due,
}

/// A pass over the parked messages of one queue.
struct Pass {
    served: Arc<Served>,
    /// The last one looked at.
    after: Option<(Timestamp, Uuid)>,
    /// When the next pass begins, by our own clock.
    rests_until: Duration,
}

impl Reconciler {
    pub(super) fn new(node: Arc<Node>) -> Self {
        let askable = node.queues.values().filter(|served| served.aim.destination.can_be_asked());
        let pass = |served: &Arc<Served>| Pass {
            served: Arc::clone(served),
            after: None,
            rests_until: Duration::ZERO,
        };
        let passes = askable.map(pass).collect();
        Self { node, passes, due: Due::every(LOOK_EVERY) }
    }

    /// Goes on until it is aborted. Whoever serves a queue asks, one node at a time: nobody else knows its destination.
    pub(super) async fn run(mut self) {
        loop {
            if self.due.has_come(self.node.clock.own()) {
                self.run_once().await;
            }
            tokio::time::sleep(self.node.idle_sleep).await;
        }
    }

    /// One page of each queue.
    async fn run_once(&mut self) {
        for pass in &mut self.passes {
            let rests = self.node.clock.own() < pass.rests_until;
            let may_ask = !rests && pass.served.aim.pacer.stopped().is_none();
            if may_ask && self.node.has(Duty::Parked(&pass.served.name)).await {
                pass.run_once(&self.node).await;
            }
        }
    }
}

impl Pass {
    async fn run_once(&mut self, node: &Arc<Node>) {
        let queue = Some(&self.served.name);
        let letters = node.store.letter_list(LetterState::Parked, queue, self.after, PAGE).await;
        let Some(letters) = said("parked messages could not be listed", letters) else { return };
        let is_last = letters.len() < PAGE as usize;
        self.after = letters.last().map(|letter| (letter.since, letter.message.id)).filter(|_| !is_last);
        if is_last {
            self.rests_until = node.clock.own() + ASK_EVERY;
        }
        let now = node.clock.now();
        let travels_for = self.served.aim.travels_for();
        // It was parked no sooner than its call began.
        let mut settled = letters.into_iter().filter(|letter| letter.since.plus(travels_for) <= now);
        let mut asking = JoinSet::new();
        loop {
            while asking.len() < ASK_AT_ONCE {
                let Some(letter) = settled.next() else { break };
                asking.spawn(ask(Arc::clone(node), Arc::clone(&self.served), letter));
            }
            if asking.join_next().await.is_none() {
                return;
            }
        }
    }
}

/// Asks after one message, and writes down what was found.
async fn ask(node: Arc<Node>, served: Arc<Served>, letter: Letter) {
    let Letter { message, since } = letter;
    let key = served.outbound(&message.identity, &message.key);
    let failure = NonZeroU32::new(message.tries).unwrap_or(NonZeroU32::MIN);
    let wait = served.settings.retry.wait(failure, fastrand::f64(), None);
    let asked = served.aim.destination.ask(&key).await;
    let (queue, id, key) = (served.name.as_str(), message.id, message.key.log_hash());
    tracing::info!(queue, message = %id, key, ?asked, "a parked message was asked after");
    let (was_done, told) = match asked {
        Asked::Done { note: told } => (true, told),
        Asked::NotDone { note: told } => (false, told),
        Asked::Unknown { .. } => return,
    };
    let excerpt = told.excerpt.or_else(|| Some("the destination was asked by key".to_owned()));
    let told = Note { excerpt, ..told };
    let event = |now: Timestamp| {
        let found = if was_done { Found::Done } else { Found::NotDone { due: now.plus(wait) } };
        Event::Reconciled(found)
    };
    let stepped = node.store.message_step(id, event, &told).await;
    let stepped = said("what a destination said of a message could not be stored", stepped);
    let Some(Stepped::Now(state)) = stepped else { return };
    let State::Dead { effect, .. } = state else {
        tell_resolved(&served.name, Resolution::Reconciled, since, node.clock.now());
        return;
    };
    // A letter still, for a person to decide.
    meter::ended(queue, Outcome::Dead);
    tracing::warn!(queue, message = %id, key, ?effect, "dead_letter: a message was not done, and no try is left");
}
