//! Records what was saved and answered, and checks it against the service.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use ichido_client::queue::{Event, EventKind};
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

/// What all clients did and received.
#[derive(Default)]
pub(crate) struct ClientLog {
    notes: Mutex<Notes>,
    tally: watch::Sender<ClientCounts>,
}

/// A link, under a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Save {
    pub(crate) key: String,
    pub(crate) url: String,
}

#[derive(Default)]
struct Notes {
    /// The number of the next URL.
    next: usize,
    /// The URLs by key, of all saves that were started. A client that dies while it queues one does not know whether it
    /// is in the queue.
    begun: BTreeMap<String, String>,
    /// Saves that are, or were, in the queue.
    acknowledged: BTreeSet<Save>,
    /// The bookmarks that were returned for a key.
    answered: BTreeMap<String, BTreeSet<String>>,
    /// The service is killed and not yet restarted.
    is_away: bool,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientCounts {
    /// A save was answered.
    pub(crate) answers: u32,
    /// A save was queued while the service was down.
    saved_away: u32,
    /// An attempt was interrupted and may have arrived.
    cut_off: u32,
    /// An attempt found the service down.
    pub(crate) offline: u32,
    /// A key was blocked by a dead service, or by another client in flight.
    in_flight: u32,
    /// The service reported a failure.
    unwell: u32,
    /// An entry failed permanently, and a person retried it.
    failed: u32,
    /// A client died.
    died: u32,
    /// It died in the middle of a send.
    died_sending: u32,
}

/// The state of the service at the end.
pub(crate) struct FinalState {
    /// URL, id and job of each bookmark.
    pub(crate) bookmarks: Vec<(String, Uuid, Uuid)>,
    /// All jobs of the kind that comes with a bookmark.
    pub(crate) jobs: Vec<Uuid>,
    /// The response under each completed key.
    pub(crate) answers: Vec<(String, Vec<u8>)>,
}

impl ClientLog {
    /// Starts a save of a new or an old URL, under one of two keys per URL.
    pub(crate) fn begin(&self) -> Save {
        let mut notes = self.notes.lock().unwrap();
        let number = if fastrand::usize(..3) == 0 {
            fastrand::usize(..notes.next.max(1))
        } else {
            notes.next += 1;
            notes.next - 1
        };
        // The job refuses the private address at once, so nothing is fetched.
        let url = format!("http://127.0.0.1/{number}");
        let save = Save { key: format!("save-{number}-{}", fastrand::usize(..2)), url };
        notes.begun.insert(save.key.clone(), save.url.clone());
        save
    }

    pub(crate) fn acknowledged(&self, save: Save) {
        let mut notes = self.notes.lock().unwrap();
        notes.acknowledged.insert(save);
        self.tally.send_modify(|tally| tally.saved_away += u32::from(notes.is_away));
    }

    pub(crate) fn record_event(&self, event: Event) {
        if let EventKind::Sent { answer } = &event.kind {
            let (key, id) = (event.key.as_str().to_owned(), id_in(&answer.body));
            self.notes.lock().unwrap().answered.entry(key).or_default().insert(id);
        }
        self.tally.send_modify(|tally| match event.kind {
            EventKind::Sent { .. } => tally.answers += 1,
            EventKind::Failed { refused: Some(answer), .. } => panic!("{:?}", answer.problem()),
            EventKind::Failed { refused: None, .. } | EventKind::Held { .. } => tally.failed += 1,
            EventKind::Waits { reason, .. } if reason.code == "no_answer" => tally.cut_off += 1,
            EventKind::Waits { .. } => tally.unwell += 1,
            EventKind::InFlight { .. } => tally.in_flight += 1,
            EventKind::Offline { .. } => tally.offline += 1,
        });
    }

    pub(crate) fn died(&self, is_sending: bool) {
        self.tally.send_modify(|tally| {
            tally.died += 1;
            tally.died_sending += u32::from(is_sending);
        });
    }

    pub(crate) fn note_away(&self, is_away: bool) {
        self.notes.lock().unwrap().is_away = is_away;
    }

    /// Waits until something has happened this many more times.
    pub(crate) async fn more(&self, what: fn(&ClientCounts) -> u32, times: u32) {
        let enough = what(&self.tally.borrow()) + times;
        self.tally.subscribe().wait_for(|tally| enough <= what(tally)).await.unwrap();
    }

    pub(crate) fn summary(&self) -> String {
        let notes = self.notes.lock().unwrap();
        let urls: BTreeSet<&String> = notes.begun.values().collect();
        format!("{} URLs, {} saves; {:?}", urls.len(), notes.acknowledged.len(), *self.tally.borrow())
    }

    /// Asserts that each URL is one bookmark with one job, every acknowledged save was done, and every response named
    /// that bookmark.
    pub(crate) fn judge(&self, state: FinalState) {
        let notes = self.notes.lock().unwrap();
        let ids: HashMap<String, String> =
            state.bookmarks.iter().map(|(url, id, _)| (url.clone(), id.to_string())).collect();
        assert_eq!(ids.len(), state.bookmarks.len(), "a URL has two bookmarks");
        let jobs: BTreeSet<Uuid> = state.bookmarks.iter().map(|(_, _, job)| *job).collect();
        assert_eq!(jobs.len(), state.bookmarks.len(), "each bookmark has its own job");
        assert_eq!(jobs, state.jobs.into_iter().collect(), "each job has its bookmark");
        let begun: BTreeSet<&String> = notes.begun.values().collect();
        assert!(ids.keys().all(|url| begun.contains(url)), "a URL that nobody saved");
        let done: BTreeMap<String, String> =
            state.answers.into_iter().map(|(key, body)| (key, id_in(&body))).collect();
        for Save { key, url } in &notes.acknowledged {
            assert!(ids.contains_key(url) && done.contains_key(key), "{key} was acknowledged but is lost");
            assert_eq!(done[key], ids[url], "{key} is stored with the bookmark of its URL");
        }
        for (key, printed) in &notes.answered {
            let id = &ids[&notes.begun[key]];
            assert_eq!(printed.iter().collect::<Vec<_>>(), [id], "{key} returned the bookmark of its URL");
        }
    }

    /// Asserts that the kills interrupted work, so the case proves something.
    pub(crate) fn check_that_kills_hit(&self, kills: u32) {
        let ClientCounts { saved_away, cut_off, offline, died_sending, .. } = *self.tally.borrow();
        let seldom = [saved_away, cut_off, offline, died_sending].into_iter().min().unwrap();
        assert!(kills / 8 <= seldom, "the kills interrupted too little");
    }
}

/// Returns the bookmark's id in a response.
fn id_in(body: &[u8]) -> String {
    let bookmark: Value = serde_json::from_slice(body).unwrap();
    bookmark["id"].as_str().unwrap().to_owned()
}
