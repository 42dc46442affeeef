//! The state of the feed: one poll for all listeners finds what is new.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ichido_core::lifecycle::StateName;
use ichido_store::action::ActionRow;
use ichido_store::error::StoreError;
use ichido_store::message::limits::MAX_PAGE;
use serde::Serialize;
use uuid::Uuid;

use super::super::alerts;
use super::super::api::ApiState;
use super::super::caller::ApiCaller;
use super::super::destinations;
use super::super::models::{Event, NodeStatus, Queue};
use super::super::queues;
use crate::limits::{FEED_FULL_READS, MAX_ALERTS, MAX_FEED_ACTIONS};

/// The state after the latest poll.
#[derive(Default)]
pub(super) struct FeedState {
    pub(super) queues: Vec<Queue>,
    /// Each part as an event; empty before the first poll.
    pub(super) nodes: String,
    pub(super) destinations: String,
    pub(super) alerts: String,
    /// These detect changes. They leave out ages, which always change.
    queues_key: String,
    pauses_key: String,
    nodes_key: String,
    /// The numbers of the latest actions; `None` before the first poll.
    actions: Option<BTreeSet<u64>>,
    messages: HashMap<Uuid, WatchedMessage>,
    /// Which messages are read in full next.
    round: usize,
}

/// A message that a listener watches.
struct WatchedMessage {
    stage: StateName,
    attempts: u32,
    /// Its transitions as events, in order.
    events: Vec<String>,
}

/// What a poll found.
#[derive(Default)]
pub(super) struct FeedChanges {
    /// Whether there is a state to publish.
    pub(super) has_state: bool,
    pub(super) queues_changed: bool,
    /// Whether queues changed in what a producer may see, which excludes counts.
    pub(super) pauses_changed: bool,
    pub(super) nodes_changed: bool,
    pub(super) destinations_changed: bool,
    pub(super) alerts_changed: bool,
    /// New actions as events, in order.
    pub(super) actions: String,
}

impl FeedChanges {
    /// Whether something that all listeners see has changed.
    pub(super) fn has_any(&self) -> bool {
        self.queues_changed
            || self.nodes_changed
            || self.destinations_changed
            || self.alerts_changed
            || !self.actions.is_empty()
    }

    /// Returns no changes, because the store did not respond.
    pub(super) fn none() -> Self {
        Self::default()
    }
}

/// An operator's action.
#[derive(Serialize)]
struct FeedAction {
    number: u64,
    at: String,
    about: String,
    kind: String,
    from: String,
    to: String,
    actor: Option<String>,
    detail: Option<String>,
}

/// A transition of a message.
#[derive(Serialize)]
struct MessageEvent {
    message: Uuid,
    #[serde(flatten)]
    event: Event,
}

impl FeedState {
    pub(super) async fn poll(
        &mut self,
        api: &ApiState,
        watched: BTreeSet<Uuid>,
    ) -> Result<FeedChanges, StoreError> {
        let queues = queues::current_queues(api, |_| true).await?;
        let nodes = queues::current_nodes(api).await?;
        let destinations = destinations::current_destinations(api).await?;
        let alerts = alerts::firing(api).await?.into_iter().take(MAX_ALERTS as usize).collect::<Vec<_>>();
        let actions = api.store.actions().list(None, MAX_FEED_ACTIONS).await?;
        self.poll_messages(api, watched).await?;
        let destinations = sse_event("destinations", &BTreeMap::from([("destinations", destinations)]));
        let alerts = sse_event("alerts", &BTreeMap::from([("alerts", alerts)]));
        let (queues_key, nodes_key) = (queues_key(&queues), nodes_key(&nodes));
        let pauses_key = pauses_key(&queues);
        let changes = FeedChanges {
            has_state: true,
            queues_changed: queues_key != self.queues_key,
            pauses_changed: pauses_key != self.pauses_key,
            nodes_changed: nodes_key != self.nodes_key,
            destinations_changed: destinations != self.destinations,
            alerts_changed: alerts != self.alerts,
            actions: self
                .new_actions(actions)
                .into_iter()
                .map(|row| sse_event("actions", &feed_action(row)))
                .collect(),
        };
        self.nodes = sse_event("nodes", &BTreeMap::from([("nodes", nodes)]));
        (self.queues, self.destinations, self.alerts) = (queues, destinations, alerts);
        (self.queues_key, self.pauses_key, self.nodes_key) = (queues_key, pauses_key, nodes_key);
        Ok(changes)
    }

    /// Returns the queues as an event, as the caller may see them.
    pub(super) fn queues_event(&self, caller: &ApiCaller) -> String {
        let own = self.queues.iter().filter(|queue| caller.can_see_queue(&queue.name));
        let own: Vec<Queue> = own.map(|queue| queue.clone().redacted_for(caller)).collect();
        sse_event("queues", &BTreeMap::from([("queues", own)]))
    }

    /// Returns the transitions of a message after the first `after`.
    pub(super) fn transitions(&self, id: Uuid, after: usize) -> &[String] {
        self.messages.get(&id).and_then(|watched| watched.events.get(after..)).unwrap_or_default()
    }

    /// Returns the actions that are new.
    ///
    /// A number may be assigned early and committed late, so they are compared with all recent ones.
    fn new_actions(&mut self, mut page: Vec<ActionRow>) -> Vec<ActionRow> {
        let numbers: BTreeSet<u64> = page.iter().map(|row| row.number).collect();
        let Some(known) = self.actions.replace(numbers) else { return Vec::new() };
        let oldest = known.first().copied().unwrap_or_default();
        page.retain(|row| oldest < row.number && !known.contains(&row.number));
        page.reverse();
        page
    }

    /// Reads the history of messages that changed, and of a few others in turn.
    ///
    /// Not every transition changes the state or the attempts.
    async fn poll_messages(&mut self, api: &ApiState, watched: BTreeSet<Uuid>) -> Result<(), StoreError> {
        self.messages.retain(|id, _| watched.contains(id));
        let ids: Vec<Uuid> = watched.into_iter().collect();
        let full_reads: BTreeSet<Uuid> = ids
            .iter()
            .cycle()
            .skip(self.round % ids.len().max(1))
            .take(FEED_FULL_READS.min(ids.len()))
            .copied()
            .collect();
        self.round = self.round.wrapping_add(FEED_FULL_READS);
        for part in ids.chunks(MAX_PAGE as usize) {
            for (id, stage, attempts) in api.store.messages().states(part).await? {
                let is_same = |known: &WatchedMessage| known.stage == stage && known.attempts == attempts;
                if self.messages.get(&id).is_some_and(is_same) && !full_reads.contains(&id) {
                    continue;
                }
                let Some(row) = api.store.messages().get(id).await? else { continue };
                let steps = api.store.messages().transitions(id).await?;
                let trail = Event::trail(&row, steps, api.redaction(&row.queue));
                let events = trail.into_iter().map(|event| MessageEvent { message: id, event });
                let events = events.map(|event| sse_event("message", &event)).collect();
                self.messages.insert(id, WatchedMessage { stage, attempts, events });
            }
        }
        Ok(())
    }
}

fn queues_key(queues: &[Queue]) -> String {
    let stand = queues.iter().map(|queue| {
        (
            &queue.name,
            queue.paused,
            &queue.paused_by,
            &queue.paused_at,
            &queue.counts,
            &queue.oldest_waiting_at,
        )
    });
    to_json(&stand.collect::<Vec<_>>())
}

/// Returns the parts that a producer may see.
fn pauses_key(queues: &[Queue]) -> String {
    to_json(&queues.iter().map(|queue| (&queue.name, queue.paused, &queue.paused_at)).collect::<Vec<_>>())
}

fn nodes_key(nodes: &[NodeStatus]) -> String {
    to_json(&nodes.iter().map(|node| (&node.id, &node.name, node.alive)).collect::<Vec<_>>())
}

fn feed_action(row: ActionRow) -> FeedAction {
    let ActionRow { number, at, action } = row;
    FeedAction {
        number,
        at: at.to_string(),
        about: action.about,
        kind: action.kind,
        from: action.from,
        to: action.to,
        actor: action.actor,
        detail: action.detail,
    }
}

/// Formats a named event. JSON contains no raw line breaks.
fn sse_event(name: &str, value: &impl Serialize) -> String {
    format!("event: {name}\ndata: {}\n\n", to_json(value))
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|_| unreachable!("events have string keys, and writing to memory does not fail"))
}

#[cfg(test)]
mod tests {
    use ichido_core::time::Timestamp;
    use ichido_store::action;

    use super::*;

    fn row(number: u64) -> ActionRow {
        let action = action::AuditAction {
            subject: Uuid::nil(),
            about: "queue orders".to_owned(),
            kind: "paused".to_owned(),
            from: "running".to_owned(),
            to: "paused".to_owned(),
            actor: None,
            detail: None,
        };
        ActionRow { number, at: Timestamp::EPOCH, action }
    }

    #[test]
    fn each_action_is_new_once_even_when_it_is_committed_late() {
        let mut state = FeedState::default();
        let mut new = |numbers: &[u64]| -> Vec<u64> {
            let page = numbers.iter().map(|number| row(*number)).collect();
            state.new_actions(page).into_iter().map(|row| row.number).collect()
        };
        assert_eq!(new(&[7, 5]), [] as [u64; 0], "what was before is not new");
        assert_eq!(new(&[9, 8, 7, 5]), [8, 9], "in order");
        assert_eq!(new(&[9, 8, 7, 6, 5]), [6]);
        assert_eq!(new(&[9, 8, 7, 6, 5, 4]), [] as [u64; 0], "older than all that was seen");
        assert_eq!(new(&[9, 8, 7, 6, 5]), [] as [u64; 0]);
    }

    #[test]
    fn the_first_action_ever_is_new() {
        let mut state = FeedState::default();
        assert!(state.new_actions(Vec::new()).is_empty());
        assert_eq!(state.new_actions(vec![row(1)]).len(), 1);
    }
}
