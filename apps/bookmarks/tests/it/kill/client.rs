//! Clients: each saves into a queue of its own, from which a sender sends, and dies now and then in the middle of it.
//!
//! The sender is the one that people have; only the waits after a try that failed are shorter. What it waits for by itself stays: a key
//! that was claimed when the service died is blocked until its lease is over (5 s), and whoever asks is told that it is in flight.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ichido_client::queue::{Accepted, Filter, Queue, QueueError, SendTerms, Sender, State};
use ichido_client::{Action, Client, ClientSettings, Token};
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::{Jitter, Retry, Schedule};
use ichido_store::testing::sqlite;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::client_log::ClientLog;

/// How many save at once.
const CLIENTS: u32 = 12;
/// How many saves a client has waiting at most: it saves on while the service is away, until there are so many.
const WAITING_MAX: u32 = 8;
/// The most answers, to all clients, in the life of one.
const ANSWERS_IN_A_LIFE_MAX: u32 = 12 * CLIENTS;
/// The name under which saves are queued.
const DESTINATION: &str = "bookmarks";

/// All of them, at work.
pub(crate) struct Clients {
    /// The service may be back.
    online: watch::Sender<()>,
    /// Nothing new is to be saved.
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

    /// As the system of a phone tells its programs.
    pub(crate) fn tell_online(&self) {
        self.online.send_replace(());
    }

    /// Nothing new is saved, and what was is sent.
    pub(crate) async fn all_sent(self) {
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

    /// From the opening of the queue until everything is sent or, in the middle of whatever it does, it dies.
    async fn life(&mut self, file: &Path) -> LifeEnd {
        let queue = Queue::open(file).await.unwrap();
        let mut sender = self.sender(&queue).await;
        let news = Notify::new();
        let on_event = |event| {
            self.log.heard(event);
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
            () = online => panic!("the case is over, and the client is not"),
            () = person.saves() => LifeEnd::AllSent,
            () = self.log.more(|tally| tally.answers, fastrand::u32(..ANSWERS_IN_A_LIFE_MAX)) => LifeEnd::Died,
        };
        if let LifeEnd::Died = end {
            let left = queue.list(&Filter::default(), WAITING_MAX).await.unwrap();
            self.log.died(left.iter().any(|entry| entry.state == State::Sending));
        }
        drop(sender);
        queue.close().await;
        end
    }

    async fn sender(&self, queue: &Queue) -> Sender {
        let schedule = Schedule::List(vec![Duration::from_millis(10), Duration::from_millis(40)]);
        let retry = Retry { schedule, jitter: Jitter::None, tries: NonZeroU32::new(3).unwrap() };
        loop {
            let terms = SendTerms { retry: retry.clone(), ..SendTerms::default() };
            match queue.sender(DESTINATION, Arc::clone(&self.client), terms).await {
                Ok(sender) => return sender,
                // The lock of the life before is also held by a process that is being started, for the moment until it is its own program.
                Err(QueueError::SenderBusy) => (),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Who saves, and looks after what failed.
struct SimulatedPerson<'a> {
    log: &'a ClientLog,
    queue: &'a Queue,
    /// Something happened to an entry.
    news: &'a Notify,
    no_more: &'a watch::Receiver<bool>,
}

impl SimulatedPerson<'_> {
    /// Back when there is nothing more to save, and nothing left in the queue. Else each news is an occasion to save, bad ones too.
    async fn saves(&self) {
        loop {
            let waiting = self.looks_after().await;
            match (waiting, self.is_over()) {
                (0, true) => return,
                (0, false) => self.saves_one().await,
                (1..WAITING_MAX, false) if fastrand::bool() => self.saves_one().await,
                _ => (),
            }
            // Something waits, of which there will be news.
            self.news.notified().await;
        }
    }

    /// Has what failed tried again, and says how many are in the queue.
    async fn looks_after(&self) -> u32 {
        let entries = self.queue.list(&Filter::default(), WAITING_MAX).await.unwrap();
        for entry in &entries {
            match entry.state {
                State::Failed => self.queue.retry(entry.id).await.unwrap(),
                // Twice would be no harm: one URL is one bookmark.
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
        let body = json!({ "url": save.url, "created_from": "test" }).to_string();
        let key = IdempotencyKey::parse(&save.key).unwrap();
        let action = Action::new(http::Method::POST, "/v1/bookmarks", key, "application/json", body).unwrap();
        let accepted = self.queue.accept(DESTINATION, &[action]).await.unwrap();
        assert!(!matches!(accepted[..], [Accepted::Different { .. }]), "one key is one save");
        self.log.acknowledged(save);
    }
}
