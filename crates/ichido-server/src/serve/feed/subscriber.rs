//! One who listens.

use bytes::Bytes;
use ichido_http::server::permits::Permit;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::caller::ApiCaller;
use super::state::{FeedChanges, FeedState};
use crate::limits::{FEED_HEARTBEAT_EVERY, FEED_SLOW_MAX};

/// How soon a client that lost the feed comes back, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";
const RESET: &str = "event: reset\ndata: {}\n\n";
/// A comment, which clients pass over.
const HEARTBEAT: &str = ": still here\n\n";

pub(super) struct Subscriber {
    caller: ApiCaller,
    messages: Vec<MessageProgress>,
    tell: Sender<Bytes>,
    stands: SubscriberState,
    /// When it was last told something.
    told_at: Option<Instant>,
    /// When it must come back, so that no stream lasts for ever.
    leaves_at: Instant,
    _seat: Permit<Uuid>,
}

/// A message that it watches, and how many transitions it was told.
struct MessageProgress {
    id: Uuid,
    told: usize,
}

enum SubscriberState {
    /// It was told nothing.
    New,
    /// It was told everything.
    Current,
    /// It missed something, as what was before is not read yet.
    Lagging { since: Instant },
}

/// It listens no more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Disconnected;

impl Subscriber {
    pub(super) fn new(
        caller: ApiCaller,
        messages: Vec<Uuid>,
        tell: Sender<Bytes>,
        leaves_at: Instant,
        seat: Permit<Uuid>,
    ) -> Self {
        let messages = messages.into_iter().map(|id| MessageProgress { id, told: 0 }).collect();
        Self { caller, messages, tell, stands: SubscriberState::New, told_at: None, leaves_at, _seat: seat }
    }

    pub(super) const fn caller(&self) -> &ApiCaller {
        &self.caller
    }

    /// Whether it has not hung up.
    pub(super) fn listens(&self) -> bool {
        !self.tell.is_closed()
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Uuid> {
        self.messages.iter().map(|watched| watched.id)
    }

    /// Tells it what is new to it.
    pub(super) fn tell(
        &mut self,
        looking: &FeedState,
        looked: &FeedChanges,
        now: Instant,
    ) -> Result<(), Disconnected> {
        if self.leaves_at <= now {
            return Err(Disconnected);
        }
        let text = match self.stands {
            SubscriberState::New if looked.is_whole => format!("{RETRY}{}", self.whole(looking)),
            SubscriberState::Lagging { since } if self.tell.capacity() < self.tell.max_capacity() => {
                return if now < since + FEED_SLOW_MAX { Ok(()) } else { Err(Disconnected) };
            }
            SubscriberState::Lagging { .. } if looked.is_whole => format!("{RESET}{}", self.whole(looking)),
            SubscriberState::Current if looked.is_whole => self.changes(looking, looked),
            SubscriberState::New | SubscriberState::Lagging { .. } | SubscriberState::Current => {
                String::new()
            }
        };
        if !text.is_empty() {
            return self.hand_on(text, SubscriberState::Current, now);
        }
        if self.told_at.is_none_or(|told_at| told_at + FEED_HEARTBEAT_EVERY <= now) {
            let stands = std::mem::replace(&mut self.stands, SubscriberState::New);
            return self.hand_on(HEARTBEAT.to_owned(), stands, now);
        }
        Ok(())
    }

    fn hand_on(&mut self, text: String, then: SubscriberState, now: Instant) -> Result<(), Disconnected> {
        match self.tell.try_send(Bytes::from(text)) {
            Ok(()) => {
                self.told_at = Some(now);
                self.stands = then;
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                self.stands = SubscriberState::Lagging { since: now };
                Ok(())
            }
            Err(TrySendError::Closed(_)) => Err(Disconnected),
        }
    }

    /// The whole state, as it may see it.
    fn whole(&mut self, looking: &FeedState) -> String {
        let mut text = looking.queues_told(&self.caller);
        if self.caller.views().is_ok() {
            text.push_str(&looking.nodes);
            text.push_str(&looking.destinations);
            text.push_str(&looking.alerts);
        }
        for watched in &mut self.messages {
            watched.told = 0;
        }
        self.push_transitions(looking, &mut text);
        text
    }

    /// What has changed, as it may see it.
    fn changes(&mut self, looking: &FeedState, looked: &FeedChanges) -> String {
        let mut text = String::new();
        let sees_all = self.caller.views().is_ok();
        // That something was counted is not told to who does not see counts.
        if if sees_all { looked.queues_changed } else { looked.pauses_changed } {
            text.push_str(&looking.queues_told(&self.caller));
        }
        if sees_all {
            let parts = [
                (looked.nodes_changed, &looking.nodes),
                (looked.destinations_changed, &looking.destinations),
                (looked.alerts_changed, &looking.alerts),
            ];
            parts.iter().filter(|(changed, _)| *changed).for_each(|(_, part)| text.push_str(part));
            text.push_str(&looked.actions);
        }
        self.push_transitions(looking, &mut text);
        text
    }

    fn push_transitions(&mut self, looking: &FeedState, text: &mut String) {
        for watched in &mut self.messages {
            for transition in looking.transitions(watched.id, watched.told) {
                text.push_str(transition);
                watched.told += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ichido_store::token::Role;
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;
    use ichido_http::server::permits::Permits;

    const BUFFERED: usize = 2;
    const LIVES: Duration = Duration::from_hours(1);

    fn subscriber(role: Role, now: Instant) -> (Subscriber, Receiver<Bytes>) {
        let (tell, told) = channel(BUFFERED);
        let caller = ApiCaller { name: "screen".to_owned(), role, token: None };
        let seat = Permits::new(1, 1).try_take(caller.token).expect("a seat");
        (Subscriber::new(caller, Vec::new(), tell, now + LIVES, seat), told)
    }

    fn state() -> FeedState {
        let mut state = FeedState::default();
        state.nodes = "event: nodes\n\n".to_owned();
        state.destinations = "event: destinations\n\n".to_owned();
        state
    }

    fn nothing_new() -> FeedChanges {
        FeedChanges { is_whole: true, ..FeedChanges::default() }
    }

    fn an_action() -> FeedChanges {
        FeedChanges { actions: "event: actions\n\n".to_owned(), ..nothing_new() }
    }

    fn read(told: &mut Receiver<Bytes>) -> Option<String> {
        told.try_recv().ok().map(|bytes| String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[test]
    fn it_is_told_the_whole_and_then_what_changes() {
        let now = Instant::now();
        let (mut subscriber, mut told) = subscriber(Role::Viewer, now);
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        let whole = read(&mut told).expect("the whole");
        assert!(
            whole.starts_with(RETRY) && whole.contains("event: queues") && whole.contains("event: nodes"),
            "{whole}"
        );
        assert!(!whole.contains("event: actions"), "it was not there when that happened");
        assert_eq!(subscriber.tell(&state(), &nothing_new(), now), Ok(()));
        assert_eq!(read(&mut told), None);
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        assert_eq!(read(&mut told).as_deref(), Some("event: actions\n\n"));
        let later = now + FEED_HEARTBEAT_EVERY;
        assert_eq!(subscriber.tell(&state(), &nothing_new(), later), Ok(()));
        assert_eq!(read(&mut told).as_deref(), Some(HEARTBEAT));
        assert_eq!(
            subscriber.tell(&state(), &nothing_new(), now + LIVES),
            Err(Disconnected),
            "it is let in anew"
        );
    }

    #[test]
    fn a_producer_is_told_of_queues_alone() {
        let now = Instant::now();
        let role = Role::Producer { identity: "ann".to_owned(), queues: Vec::new() };
        let (mut subscriber, mut told) = subscriber(role, now);
        assert_eq!(subscriber.tell(&state(), &nothing_new(), now), Ok(()));
        let whole = read(&mut told).expect("the whole");
        assert!(whole.contains("event: queues") && !whole.contains("event: nodes"), "{whole}");
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        assert_eq!(read(&mut told), None);
        let counted = FeedChanges { queues_changed: true, ..nothing_new() };
        assert_eq!(subscriber.tell(&state(), &counted, now), Ok(()));
        assert_eq!(read(&mut told), None, "nor when others put something in");
        let paused = FeedChanges { pauses_changed: true, ..counted };
        assert_eq!(subscriber.tell(&state(), &paused, now), Ok(()));
        assert!(read(&mut told).expect("the queues").contains("event: queues"));
    }

    #[test]
    fn one_that_lags_is_told_the_whole_again_and_one_that_never_reads_is_cut_off() {
        let now = Instant::now();
        let (mut subscriber, mut told) = subscriber(Role::Viewer, now);
        for _ in 0..=BUFFERED {
            assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        }
        assert!(matches!(subscriber.stands, SubscriberState::Lagging { .. }));
        read(&mut told).expect("the whole");
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        assert_eq!(told.len(), BUFFERED - 1, "it is told nothing more until it has read all");
        read(&mut told).expect("an action");
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        let again = read(&mut told).expect("the whole again");
        assert!(again.starts_with(RESET) && again.contains("event: nodes"), "{again}");

        for _ in 0..=BUFFERED {
            assert_eq!(subscriber.tell(&state(), &an_action(), now), Ok(()));
        }
        assert_eq!(subscriber.tell(&state(), &nothing_new(), now + FEED_SLOW_MAX), Err(Disconnected));
    }

    #[test]
    fn while_the_store_is_away_it_is_told_that_the_server_lives() {
        let now = Instant::now();
        let (mut subscriber, mut told) = subscriber(Role::Viewer, now);
        assert_eq!(subscriber.tell(&FeedState::default(), &FeedChanges::nothing(), now), Ok(()));
        assert_eq!(read(&mut told).as_deref(), Some(HEARTBEAT));
        assert_eq!(subscriber.tell(&state(), &nothing_new(), now), Ok(()));
        assert!(read(&mut told).expect("the whole").starts_with(RETRY), "and the whole when it is back");
        drop(told);
        assert_eq!(subscriber.tell(&state(), &an_action(), now), Err(Disconnected));
    }
}
