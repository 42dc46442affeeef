//! Where duplicates wait for the outcome of their key: however many there are in one process, the store is asked by one of them at
//! a time. Ten thousand that each looked for themselves would keep everybody else from it, and their own outcome with them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::sleep;

/// A record by the hash of its name.
type Name = [u8; 32];

/// One room for each key that somebody waits for.
#[derive(Default)]
pub(crate) struct Rooms(Mutex<HashMap<Name, Waiting>>);

struct Waiting {
    room: Arc<Room>,
    count: usize,
}

#[derive(Default)]
struct Room {
    /// Whoever has it looks for all.
    turn: tokio::sync::Mutex<()>,
    news: Notify,
}

impl Rooms {
    /// Waits until there is news of a key, or a turn to look at it has brought none, at most so long. `look` says whether something
    /// happened; it runs only when it is this one's turn. Whatever the end, the store is to be asked again.
    pub(crate) async fn wait(&self, name: Name, at_most: Duration, look: impl Future<Output = bool>) {
        let place = self.enter(name);
        let mut news = pin!(place.room.news.notified());
        // From here on no news is missed.
        news.as_mut().enable();
        let looked = async {
            let _turn = place.room.turn.lock().await;
            if look.await {
                place.room.news.notify_waiters();
            }
        };
        tokio::select! {
            biased;
            () = news => {}
            () = sleep(at_most) => {}
            () = looked => {}
        }
    }

    fn enter(&self, name: Name) -> Place<'_> {
        let mut rooms = self.lock();
        let waiting = rooms.entry(name).or_insert_with(|| Waiting { room: Arc::default(), count: 0 });
        waiting.count += 1;
        Place { rooms: self, name, room: Arc::clone(&waiting.room) }
    }

    /// Each change under the lock is whole, even if its holder panicked.
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Waiting>> {
        lock(&self.0)
    }
}

/// Somebody in a room, who leaves however the wait ends.
struct Place<'a> {
    rooms: &'a Rooms,
    name: Name,
    room: Arc<Room>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut rooms = self.rooms.lock();
        if let Some(waiting) = rooms.get_mut(&self.name) {
            waiting.count -= 1;
            if waiting.count == 0 {
                rooms.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    const NAME: Name = [7; 32];
    const LOOK: Duration = Duration::from_millis(250);
    /// Not a whole number of looks, so that the last one is cut short.
    const WAIT: Duration = Duration::from_millis(1_900);
    const MANY: usize = 1_000;

    /// How many looks it takes until everybody has left, where the look of this number brings news.
    async fn looks_of_many(news_at: usize) -> usize {
        let (rooms, looks) = (Arc::new(Rooms::default()), Arc::new(AtomicUsize::new(0)));
        let waiters = (0..MANY).map(|_| {
            let (rooms, looks) = (Arc::clone(&rooms), Arc::clone(&looks));
            tokio::spawn(async move {
                let until = Instant::now() + WAIT;
                while Instant::now() < until && looks.load(Ordering::SeqCst) < news_at {
                    let look = async {
                        let number = looks.fetch_add(1, Ordering::SeqCst) + 1;
                        sleep(LOOK).await;
                        number == news_at
                    };
                    rooms.wait(NAME, until.saturating_duration_since(Instant::now()), look).await;
                }
            })
        });
        for waiter in waiters.collect::<Vec<_>>() {
            waiter.await.expect("it leaves");
        }
        assert!(rooms.lock().is_empty(), "an empty room is closed");
        looks.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_that_wait_one_looks_at_a_time() {
        let began = Instant::now();
        assert_eq!(looks_of_many(usize::MAX).await, 8, "one look after another, for as long as they wait");
        assert_eq!(began.elapsed(), WAIT, "and all of them wait for no longer");
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_finds_is_news_for_all() {
        let began = Instant::now();
        assert_eq!(looks_of_many(3).await, 3);
        assert_eq!(began.elapsed(), LOOK * 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_passes_on_when_its_holder_goes_away() {
        let rooms = Rooms::default();
        let mut gone = Box::pin(rooms.wait(NAME, WAIT, std::future::pending()));
        let mut next = Box::pin(rooms.wait(NAME, WAIT, std::future::ready(true)));
        let both = std::future::poll_fn(|cx| {
            assert!(gone.as_mut().poll(cx).is_pending());
            assert!(next.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        });
        both.await;
        drop(gone);
        let began = Instant::now();
        next.await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(rooms.lock().is_empty());
    }
}
