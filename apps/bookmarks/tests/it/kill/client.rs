//! Clients: each saves into its own queue, from which a sender sends, and dies now and then in the middle of it.
//!
//! The sender is the real one; only its backoff is shorter. Its other waits stay: a key that was claimed when the
//! service died is blocked until its lease expires (5 s), and the response says that it is in flight.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ichido::key::IdempotencyKey;
use ichido::retry::{Jitter, Retry, Schedule};
use ichido_client::queue::{
    AcceptOutcome, EntryFilter, OfflineQueue, QueueError, SendSettings, Sender, State,
};
use ichido_client::{Action, Client, ClientSettings, Token};
use ichido_store::testing::sqlite;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::client_log::ClientLog;

/// The number of clients.
const CLIENTS: u32 = 12;
/// Maximum number of waiting saves per client: it keeps saving while the service is away, up to this many.
const MAX_WAITING: u32 = 8;
/// Maximum number of responses, to all clients, in the life of one.
const MAX_ANSWERS_IN_A_LIFE: u32 = 12 * CLIENTS;
/// The destination of queued saves.
const DESTINATION: &str = "bookmarks";

/// All running clients.
pub(crate) struct Clients {
    /// The service may be back.
    online: watch::Sender<()>,
    /// Nothing new is saved.
    no_more: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Clients {
    pub(crate) fn start(log: &Arc<ClientLog>, url: &str, token: &Token) -> Self {
        let (online, no_more) = (watch::Sender::new(()), watch::Sender::new(false));
        let settings = ClientSettings { token: Some(token.clone()), ..ClientSettings::new(url) };
        let start = |_| {
            let device = Device {
                log: Arc::clone(log),
                client: Arc::new(settings.clone().resolve().unwrap()),
                online: online.subscribe(),
                no_more: no_more.subscribe(),
            };
            tokio::spawn(device.lives())
        };
        let tasks = (0..CLIENTS).map(start).collect();
        Self { online, no_more, tasks }
    }

    /// Signals that the network is back, as a phone's system does.
    pub(crate) fn notify_online(&self) {
        self.online.send_replace(());
    }

    /// Stops new saves and waits until all saves are sent.
    pub(crate) async fn finish(self) {
        self.no_more.send_replace(true);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// One client, over all its lives.
struct Device {
    log: Arc<ClientLog>,
    client: Arc<Client>,
    online: watch::Receiver<()>,
    no_more: watch::Receiver<bool>,
}

enum LifeEnd {
    Died,
    AllSent,
}

impl Device {
    async fn lives(mut self) {
        let temp_file = sqlite::fresh_file();
        let file = temp_file.folder().join("saves.queue");
        while let LifeEnd::Died = self.life(&file).await {}
    }

    /// Runs from opening the queue until everything is sent or, in the middle of whatever it does, the client dies.
    async fn life(&mut self, file: &Path) -> LifeEnd {
        let queue = OfflineQueue::open(file).await.unwrap();
        let mut sender = self.sender(&queue).await;
        let news = Notify::new();
        let on_event = |event| {
            self.log.record_event(event);
            news.notify_one();
        };
        let online = async {
            while self.online.changed().await.is_ok() {
                queue.wake();
            }
        };
        let person = SimulatedPerson { log: &self.log, queue: &queue, news: &news, no_more: &self.no_more };
        let end = tokio::select! {
            ended = sender.run(std::future::pending(), on_event) => panic!("the sender ended: {ended:?}"),
            () = online => panic!("the test ended before the client"),
            () = person.saves() => LifeEnd::AllSent,
            () = self.log.more(|tally| tally.answers, fastrand::u32(..MAX_ANSWERS_IN_A_LIFE)) => LifeEnd::Died,
        };
        if let LifeEnd::Died = end {
            let left = queue.list(&EntryFilter::default(), MAX_WAITING).await.unwrap();
            self.log.died(left.iter().any(|entry| entry.state == State::Sending));
        }
        drop(sender);
        queue.close().await;
        end
    }

    async fn sender(&self, queue: &OfflineQueue) -> Sender {
        let schedule = Schedule::List(vec![Duration::from_millis(10), Duration::from_millis(40)]);
        let retry = Retry { schedule, jitter: Jitter::None, max_attempts: NonZeroU32::new(3).unwrap() };
        loop {
            let terms = SendSettings { retry: retry.clone(), ..SendSettings::default() };
            match queue.sender(DESTINATION, Arc::clone(&self.client), terms).await {
                Ok(sender) => return sender,
                // A process that is being started also holds the lock of the previous life, until it executes its own
                // program.
                Err(QueueError::SenderBusy) => (),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A person who saves links and handles failures.
struct SimulatedPerson<'a> {
    log: &'a ClientLog,
    queue: &'a OfflineQueue,
    /// Something happened to an entry.
    news: &'a Notify,
    no_more: &'a watch::Receiver<bool>,
}

impl SimulatedPerson<'_> {
    /// Returns when there is nothing more to save and the queue is empty. Until then each event, good or bad, is an
    /// occasion to save.
    async fn saves(&self) {
        loop {
            let waiting = self.looks_after().await;
            match (waiting, self.is_over()) {
                (0, true) => return,
                (0, false) => self.saves_one().await,
                (1..MAX_WAITING, false) if fastrand::bool() => self.saves_one().await,
                _ => (),
            }
            // Something waits, so there will be an event.
            self.news.notified().await;
        }
    }

    /// Retries failed entries and returns how many are in the queue.
    async fn looks_after(&self) -> u32 {
        let entries = self.queue.list(&EntryFilter::default(), MAX_WAITING).await.unwrap();
        for entry in &entries {
            match entry.state {
                State::Failed => self.queue.retry(entry.id).await.unwrap(),
                // A second send would do no harm: one URL is one bookmark.
                State::Held => self.queue.release(entry.id).await.unwrap(),
                State::Waiting | State::Sending => (),
            }
        }
        u32::try_from(entries.len()).unwrap()
    }

    fn is_over(&self) -> bool {
        *self.no_more.borrow()
    }

    async fn saves_one(&self) {
        let save = self.log.begin();
        let body = json!({ "url": save.url, "created_from": "api" }).to_string();
        let key = IdempotencyKey::parse(&save.key).unwrap();
        let action = Action::new(http::Method::POST, "/v1/bookmarks", key, "application/json", body).unwrap();
        let accepted = self.queue.accept(DESTINATION, &[action]).await.unwrap();
        assert!(!matches!(accepted[..], [AcceptOutcome::Conflict { .. }]), "one key is one save");
        self.log.acknowledged(save);
    }
}
