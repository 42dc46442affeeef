//! A lane: messages whose handlers are prompt, started one after another in one task and settled together.
//!
//! Guarantee: a message that has to wait, before its handler or in it, gets a task and a slot of its own and delays none of the
//! others. If a handler blocks the lane's thread, the messages behind it leave the lane, and those before it are settled.
//!
//! A message of its own task needs a second one for its handler, two timers and a wake-up for its settlement, which is more
//! work than many handlers do.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use ichido_core::sync::lock;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::task::coop::has_budget_remaining;

use super::attempt::Attempt;
use super::attempt_tasks::AttemptTasks;
use super::claim::LeasedMessage;
use super::in_place::{SettledMessage, Started};
use super::node::{ServedQueue, WorkerNode};

/// How long a lane runs before its outcomes are written and another lane takes half of what is left.
const TURN: Duration = Duration::from_millis(5);
/// The most messages before other tasks get their turn.
///
/// Fewer, if their handlers use up the lane's budget of operations: beyond it, the next ones would seem to wait.
const MAX_TURN_MESSAGES: usize = 64;
/// A lane that started nothing for this long is blocked.
const PATIENCE: Duration = Duration::from_millis(10);

pub(super) struct Lane {
    node: Arc<WorkerNode>,
    served: Arc<ServedQueue>,
    tasks: AttemptTasks,
    state: Mutex<LaneState>,
}

struct LaneState {
    waiting: VecDeque<LeasedMessage>,
    succeeded: Vec<SettledMessage>,
    /// One for each message in the lane.
    slots: OwnedSemaphorePermit,
    /// How many were started.
    started: u64,
}

impl Lane {
    /// Starts a lane for messages with as many slots.
    pub(super) fn start(
        node: &Arc<WorkerNode>,
        served: &Arc<ServedQueue>,
        tasks: &AttemptTasks,
        waiting: VecDeque<LeasedMessage>,
        slots: OwnedSemaphorePermit,
    ) {
        let succeeded = Vec::with_capacity(waiting.len());
        let lane = Arc::new(Self {
            node: Arc::clone(node),
            served: Arc::clone(served),
            tasks: tasks.clone(),
            state: Mutex::new(LaneState { waiting, succeeded, slots, started: 0 }),
        });
        // Before the lane, and not by it: a task that was spawned last waits for its thread, which the lane may block.
        let watch = tasks.spawn(Arc::clone(&lane).watch());
        tasks.spawn(lane.run(watch));
    }

    async fn run(self: Arc<Self>, watch: Option<AbortHandle>) {
        let in_flight = self.served.metrics.in_flight();
        let (mut now, mut turn_messages) = (self.node.clock.elapsed(), 0);
        let mut turn_end = now + TURN;
        let mut succeeded = None;
        while let Some(leased) = self.next(succeeded.take()) {
            let attempt = Attempt { node: Arc::clone(&self.node), served: Arc::clone(&self.served), leased };
            let mut attempt = Some(attempt);
            let started =
                poll_fn(|context| Poll::Ready(attempt.take().map(|attempt| attempt.start(now, context))));
            let Some((started, after)) = started.await else { break };
            (now, turn_messages) = (after, turn_messages + 1);
            match started {
                Started::Succeeded(message) => succeeded = Some(message),
                Started::NotYet(attempt) => self.leave(attempt.run()),
                Started::Call(attempt, call) => self.leave(attempt.finish(call)),
            }
            // For the same reason, a message that leaves is polled before the next one is started.
            let has_left = succeeded.is_none();
            let is_over = turn_end <= now;
            if is_over {
                self.settle_aside();
                self.split();
            }
            if is_over || has_left || turn_messages == MAX_TURN_MESSAGES || !has_budget_remaining() {
                tokio::task::yield_now().await;
                (now, turn_messages) = (self.node.clock.elapsed(), 0);
            }
            if is_over {
                turn_end = now + TURN;
            }
        }
        drop(in_flight);
        if let Some(watch) = watch {
            watch.abort();
        }
        if let Some((succeeded, _slots)) = self.take_succeeded() {
            self.node.settle_all(&self.served, succeeded).await;
        }
    }

    /// Keeps a success until it is settled, and returns the next message.
    fn next(&self, succeeded: Option<SettledMessage>) -> Option<LeasedMessage> {
        let mut state = lock(&self.state);
        state.succeeded.extend(succeeded);
        state.started += 1;
        state.waiting.pop_front()
    }

    /// Gives half of what waits to another lane, which another thread can run.
    fn split(&self) {
        let mut state = lock(&self.state);
        let half = state.waiting.len() / 2;
        if half == 0 {
            return;
        }
        let Some(slots) = state.slots.split(half) else { return };
        let rest = state.waiting.len() - half;
        let half = state.waiting.split_off(rest);
        drop(state);
        Self::start(&self.node, &self.served, &self.tasks, half, slots);
    }

    /// Lets a message leave the lane with its slot.
    fn leave(&self, attempt: impl Future<Output = ()> + Send + 'static) {
        let slot = lock(&self.state).slots.split(1);
        self.tasks.spawn(async move {
            attempt.await;
            drop(slot);
        });
    }

    /// Takes the messages that succeeded, with their slots.
    fn take_succeeded(&self) -> Option<(Vec<SettledMessage>, Option<OwnedSemaphorePermit>)> {
        let mut state = lock(&self.state);
        if state.succeeded.is_empty() {
            return None;
        }
        let succeeded = std::mem::take(&mut state.succeeded);
        let slots = state.slots.split(succeeded.len());
        drop(state);
        self.served.metrics.count_calls(succeeded.len());
        let count = u32::try_from(succeeded.len()).unwrap_or(u32::MAX);
        self.served.dispatcher.pacer.record_successes(count);
        Some((succeeded, slots))
    }

    /// Settles what succeeded so far, while the lane goes on.
    fn settle_aside(&self) {
        let Some((succeeded, slots)) = self.take_succeeded() else { return };
        let (node, served) = (Arc::clone(&self.node), Arc::clone(&self.served));
        self.tasks.spawn(async move {
            node.settle_all(&served, succeeded).await;
            drop(slots);
        });
    }

    /// Empties the lane if it is blocked, until it is aborted.
    async fn watch(self: Arc<Self>) {
        let mut known = 0;
        loop {
            tokio::time::sleep(PATIENCE).await;
            let blocked = {
                let mut state = lock(&self.state);
                let started = state.started;
                if std::mem::replace(&mut known, started) != started {
                    continue;
                }
                std::mem::take(&mut state.waiting)
            };
            self.settle_aside();
            for leased in blocked {
                let (node, served) = (Arc::clone(&self.node), Arc::clone(&self.served));
                self.leave(Attempt { node, served, leased }.run());
            }
        }
    }
}
