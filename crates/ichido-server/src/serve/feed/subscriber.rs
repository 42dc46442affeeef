//! A listener to the feed.

use bytes::Bytes;
use ichido_http::server::permits::Permit;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::caller::ApiCaller;
use super::state::{FeedChanges, FeedState};
use crate::limits::{FEED_HEARTBEAT_INTERVAL, MAX_FEED_SLOW};

/// How soon a disconnected client reconnects, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";
const RESET: &str = "event: reset\ndata: {}\n\n";
/// The store does not respond, or does again.
pub(super) const STORE_AWAY: &str = "event: store\ndata: {\"available\":false}\n\n";
pub(super) const STORE_BACK: &str = "event: store\ndata: {\"available\":true}\n\n";
/// A comment, which clients ignore.
const HEARTBEAT: &str = ": still here\n\n";

pub(super) struct Subscriber {
    caller: ApiCaller,
    messages: Vec<MessageProgress>,
    sender: Sender<Bytes>,
    state: SubscriberState,
    /// When something was last sent to it.
    sent_at: Option<Instant>,
    /// When it must reconnect, so no stream lasts forever.
    expires_at: Instant,
    _permit: Permit<Uuid>,
}

/// A watched message, and how many of its transitions were sent.
struct MessageProgress {
    id: Uuid,
    sent: usize,
}

enum SubscriberState {
    /// Nothing was sent yet.
    New,
    /// Everything was sent.
    Current,
    /// It missed something, because it has not read what was sent before.
    Lagging { since: Instant },
}

/// The listener is gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disconnected;

impl Subscriber {
    pub(super) fn new(
        caller: ApiCaller,
        messages: Vec<Uuid>,
        sender: Sender<Bytes>,
        expires_at: Instant,
        permit: Permit<Uuid>,
    ) -> Self {
        let messages = messages.into_iter().map(|id| MessageProgress { id, sent: 0 }).collect();
        Self {
            caller,
            messages,
            sender,
            state: SubscriberState::New,
            sent_at: None,
            expires_at,
            _permit: permit,
        }
    }

    pub(super) const fn caller(&self) -> &ApiCaller {
        &self.caller
    }

    /// Whether the client is still connected.
    pub(super) fn is_connected(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Uuid> {
        self.messages.iter().map(|watched| watched.id)
    }

    /// Sends what is new to this listener.
    pub(super) fn publish(
        &mut self,
        feed: &FeedState,
        changes: &FeedChanges,
        now: Instant,
    ) -> Result<(), Disconnected> {
        if self.expires_at <= now {
            return Err(Disconnected);
        }
        let text = match self.state {
            SubscriberState::New if changes.has_state => format!("{RETRY}{}", self.snapshot(feed)),
            SubscriberState::Lagging { since } if self.sender.capacity() < self.sender.max_capacity() => {
                return if now < since + MAX_FEED_SLOW { Ok(()) } else { Err(Disconnected) };
            }
            SubscriberState::Lagging { .. } if changes.has_state => format!("{RESET}{}", self.snapshot(feed)),
            SubscriberState::Current if changes.has_state => self.changes(feed, changes),
            SubscriberState::New | SubscriberState::Lagging { .. } | SubscriberState::Current => {
                String::new()
            }
        };
        if !text.is_empty() {
            return self.send(text, SubscriberState::Current, now);
        }
        if self.sent_at.is_none_or(|sent_at| sent_at + FEED_HEARTBEAT_INTERVAL <= now) {
            let state = std::mem::replace(&mut self.state, SubscriberState::New);
            return self.send(HEARTBEAT.to_owned(), state, now);
        }
        Ok(())
    }

    /// Sends news of the store. A listener that is behind gets everything again later, and needs no more now.
    pub(super) fn notify(&mut self, event: &'static str, now: Instant) -> Result<(), Disconnected> {
        if matches!(self.state, SubscriberState::Lagging { .. }) {
            return if self.is_connected() { Ok(()) } else { Err(Disconnected) };
        }
        let state = std::mem::replace(&mut self.state, SubscriberState::New);
        self.send(event.to_owned(), state, now)
    }

    fn send(&mut self, text: String, then: SubscriberState, now: Instant) -> Result<(), Disconnected> {
        match self.sender.try_send(Bytes::from(text)) {
            Ok(()) => {
                self.sent_at = Some(now);
                self.state = then;
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                self.state = SubscriberState::Lagging { since: now };
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(Disconnected),
        }
    }

    /// Formats the whole state, as the caller may see it.
    fn snapshot(&mut self, feed: &FeedState) -> String {
        let mut text = feed.queues_event(&self.caller);
        if self.caller.require_viewer().is_ok() {
            text.push_str(&feed.nodes);
            text.push_str(&feed.destinations);
            text.push_str(&feed.alerts);
        }
        for watched in &mut self.messages {
            watched.sent = 0;
        }
        self.push_transitions(feed, &mut text);
        text
    }

    /// Formats the changes, as the caller may see them.
    fn changes(&mut self, feed: &FeedState, changes: &FeedChanges) -> String {
        let mut text = String::new();
        let sees_all = self.caller.require_viewer().is_ok();
        // A caller that may not see counts must not notice that one changed.
        if if sees_all { changes.queues_changed } else { changes.pauses_changed } {
            text.push_str(&feed.queues_event(&self.caller));
        }
        if sees_all {
            let parts = [
                (changes.nodes_changed, &feed.nodes),
                (changes.destinations_changed, &feed.destinations),
                (changes.alerts_changed, &feed.alerts),
            ];
            parts.iter().filter(|(changed, _)| *changed).for_each(|(_, part)| text.push_str(part));
            text.push_str(&changes.actions);
        }
        self.push_transitions(feed, &mut text);
        text
    }

    fn push_transitions(&mut self, feed: &FeedState, text: &mut String) {
        for watched in &mut self.messages {
            for transition in feed.transitions(watched.id, watched.sent) {
                text.push_str(transition);
                watched.sent += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ichido_store::token::TokenRole;
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;
    use ichido_http::server::permits::Permits;

    const BUFFERED: usize = 2;
    const LIVES: Duration = Duration::from_hours(1);

    fn subscriber(role: TokenRole, now: Instant) -> (Subscriber, Receiver<Bytes>) {
        let (sender, receiver) = channel(BUFFERED);
        let caller = ApiCaller { name: "screen".to_owned(), role, token: None };
        let permit = Permits::new(1, 1).try_take(caller.token).expect("a seat");
        (Subscriber::new(caller, Vec::new(), sender, now + LIVES, permit), receiver)
    }

    fn state() -> FeedState {
        let mut state = FeedState::default();
        state.nodes = "event: nodes\n\n".to_owned();
        state.destinations = "event: destinations\n\n".to_owned();
        state
    }

    fn nothing_new() -> FeedChanges {
        FeedChanges { has_state: true, ..FeedChanges::default() }
    }

    fn an_action() -> FeedChanges {
        FeedChanges { actions: "event: actions\n\n".to_owned(), ..nothing_new() }
    }

    fn read(receiver: &mut Receiver<Bytes>) -> Option<String> {
        receiver.try_recv().ok().map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[test]
    fn a_listener_gets_the_whole_state_then_changes() {
        let now = Instant::now();
        let (mut subscriber, mut receiver) = subscriber(TokenRole::Viewer, now);
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        let whole = read(&mut receiver).expect("the whole");
        assert!(
            whole.starts_with(RETRY) && whole.contains("event: queues") && whole.contains("event: nodes"),
            "{whole}"
        );
        assert!(!whole.contains("event: actions"), "it was not there when that happened");
        assert_eq!(subscriber.publish(&state(), &nothing_new(), now), Ok(()));
        assert_eq!(read(&mut receiver), None);
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        assert_eq!(read(&mut receiver).as_deref(), Some("event: actions\n\n"));
        let later = now + FEED_HEARTBEAT_INTERVAL;
        assert_eq!(subscriber.publish(&state(), &nothing_new(), later), Ok(()));
        assert_eq!(read(&mut receiver).as_deref(), Some(HEARTBEAT));
        assert_eq!(
            subscriber.publish(&state(), &nothing_new(), now + LIVES),
            Err(Disconnected),
            "it must reconnect"
        );
    }

    #[test]
    fn a_producer_gets_only_queue_events() {
        let now = Instant::now();
        let role = TokenRole::Producer { identity: "ann".to_owned(), queues: Vec::new() };
        let (mut subscriber, mut receiver) = subscriber(role, now);
        assert_eq!(subscriber.publish(&state(), &nothing_new(), now), Ok(()));
        let whole = read(&mut receiver).expect("the whole");
        assert!(whole.contains("event: queues") && !whole.contains("event: nodes"), "{whole}");
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        assert_eq!(read(&mut receiver), None);
        let counted = FeedChanges { queues_changed: true, ..nothing_new() };
        assert_eq!(subscriber.publish(&state(), &counted, now), Ok(()));
        assert_eq!(read(&mut receiver), None, "nor when others enqueue messages");
        let paused = FeedChanges { pauses_changed: true, ..counted };
        assert_eq!(subscriber.publish(&state(), &paused, now), Ok(()));
        assert!(read(&mut receiver).expect("the queues").contains("event: queues"));
    }

    #[test]
    fn lagging_listeners_get_a_reset_and_stalled_ones_are_disconnected() {
        let now = Instant::now();
        let (mut subscriber, mut receiver) = subscriber(TokenRole::Viewer, now);
        for _ in 0..=BUFFERED {
            assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        }
        assert!(matches!(subscriber.state, SubscriberState::Lagging { .. }));
        read(&mut receiver).expect("the whole");
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        assert_eq!(receiver.len(), BUFFERED - 1, "it gets nothing more until it has read all");
        read(&mut receiver).expect("an action");
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        let again = read(&mut receiver).expect("the whole again");
        assert!(again.starts_with(RESET) && again.contains("event: nodes"), "{again}");

        for _ in 0..=BUFFERED {
            assert_eq!(subscriber.publish(&state(), &an_action(), now), Ok(()));
        }
        assert_eq!(subscriber.publish(&state(), &nothing_new(), now + MAX_FEED_SLOW), Err(Disconnected));
    }

    #[test]
    fn news_of_the_store_change_nothing_else() {
        let now = Instant::now();
        let (mut subscriber, mut receiver) = subscriber(TokenRole::Viewer, now);
        assert_eq!(subscriber.notify(STORE_AWAY, now), Ok(()));
        assert_eq!(read(&mut receiver).as_deref(), Some(STORE_AWAY));
        assert_eq!(subscriber.publish(&state(), &nothing_new(), now), Ok(()));
        assert!(
            read(&mut receiver).expect("the whole").starts_with(RETRY),
            "a new listener still gets the whole"
        );
        assert_eq!(subscriber.notify(STORE_BACK, now), Ok(()));
        assert_eq!(read(&mut receiver).as_deref(), Some(STORE_BACK));
        for _ in 0..=BUFFERED {
            assert_eq!(subscriber.notify(STORE_AWAY, now), Ok(()));
        }
        assert!(matches!(subscriber.state, SubscriberState::Lagging { .. }));
        drop(receiver);
        assert_eq!(subscriber.notify(STORE_BACK, now), Err(Disconnected));
    }

    #[test]
    fn a_listener_gets_heartbeats_while_the_store_is_unavailable() {
        let now = Instant::now();
        let (mut subscriber, mut receiver) = subscriber(TokenRole::Viewer, now);
        assert_eq!(subscriber.publish(&FeedState::default(), &FeedChanges::none(), now), Ok(()));
        assert_eq!(read(&mut receiver).as_deref(), Some(HEARTBEAT));
        assert_eq!(subscriber.publish(&state(), &nothing_new(), now), Ok(()));
        assert!(read(&mut receiver).expect("the whole").starts_with(RETRY), "and the whole when it is back");
        drop(receiver);
        assert_eq!(subscriber.publish(&state(), &an_action(), now), Err(Disconnected));
    }
}
