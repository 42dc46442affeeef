//! Seats: which connections are served, and which only wait for one or ask for the server's health.
//!
//! Guarantee: at most `max` connections have a seat, and at most `max_of_peer` of one peer; at most [`SPARES_MAX`] more are
//! open. A connection that carries a request keeps its seat. One that is idle gives it up when somebody else needs it: the
//! peer with the most connections first, and of those the one that is idle for longest. A request for health or
//! metrics needs no seat.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::limits::{SEAT_WAIT, SPARES_MAX};

/// Who connections are counted by: an IPv4 address, or the /64 network of an IPv6 address, which one machine often has whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// The peer of an address.
    pub fn of(address: IpAddr) -> Self {
        const NETWORK: u128 = !(u64::MAX as u128);
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The seats of one server.
pub(super) struct Seats {
    table: Mutex<Table>,
    /// Tells those who wait that a seat may be free.
    freed: Notify,
}

impl Seats {
    pub(super) fn new(max: usize, max_of_peer: usize) -> Arc<Self> {
        let table = Mutex::new(Table { max, max_of_peer, ..Table::default() });
        Arc::new(Self { table, freed: Notify::new() })
    }

    /// Takes a new connection in, with a seat or without.
    pub(super) fn arrive(self: &Arc<Self>, peer: Peer) -> Arc<Seat> {
        let evicted = Arc::new(Notify::new());
        let id = self.lock().arrive(peer, Arc::clone(&evicted));
        // A request may have waited on a connection that has just been evicted.
        self.freed.notify_waiters();
        Arc::new(Seat { seats: Arc::clone(self), id, peer, evicted })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change under it is whole.
        lock(&self.table)
    }
}

/// One open connection, as long as it lives.
pub(super) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    peer: Peer,
    evicted: Arc<Notify>,
}

/// No seat became free in time, or the connection has just lost its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSeat;

impl Seat {
    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether it has no seat.
    pub(super) fn is_spare(&self) -> bool {
        self.seats.lock().open.get(&self.id).is_none_or(|open| !open.is_seated)
    }

    /// Ends when the connection must be closed, because somebody else needs its seat.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Begins a request; waits a little for a seat where it needs one and has none.
    pub(super) async fn begin(self: Arc<Self>, is_health: bool) -> Result<InFlight, NoSeat> {
        let by = Instant::now() + SEAT_WAIT;
        loop {
            let mut freed = pin!(self.seats.freed.notified());
            // Before the look, so that nothing that is freed after it is missed.
            freed.as_mut().enable();
            match self.seats.lock().begin(self.id, is_health) {
                Begun::Yes => break,
                Begun::NoSeat => (),
                // It came as its connection was being closed.
                Begun::Evicted => return Err(NoSeat),
            }
            timeout_at(by, freed).await.map_err(|_| NoSeat)?;
        }
        Ok(InFlight(self))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().leave(self.id);
        self.seats.freed.notify_waiters();
    }
}

/// A request that was begun, until it is dropped.
pub(super) struct InFlight(Arc<Seat>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.seats.lock().end(self.0.id);
        self.0.seats.freed.notify_waiters();
    }
}

/// Whether a request was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Yes,
    NoSeat,
    Evicted,
}

/// What is open, by the order of arrival.
#[derive(Default)]
struct Table {
    max: usize,
    max_of_peer: usize,
    /// Counts what happens, so that earlier can be told from later.
    ticks: u64,
    open: BTreeMap<u64, Open>,
    all: Count,
    /// Only peers that have a seat.
    peers: HashMap<Peer, Count>,
}

struct Open {
    peer: Peer,
    is_seated: bool,
    in_flight: usize,
    idle_since: u64,
    evicted: Arc<Notify>,
}

/// How many connections have a seat, and how many of those are idle. Known at any time, so that an idle one is looked for only where there is one.
#[derive(Clone, Copy, Default)]
struct Count {
    seated: usize,
    idle: usize,
}

impl Count {
    fn change(&mut self, before: Self, after: Self) {
        self.seated = self.seated + after.seated - before.seated;
        self.idle = self.idle + after.idle - before.idle;
    }
}

impl Open {
    fn is_idle(&self) -> bool {
        self.is_seated && self.in_flight == 0
    }

    fn count(&self) -> Count {
        Count { seated: usize::from(self.is_seated), idle: usize::from(self.is_idle()) }
    }
}

impl Table {
    fn arrive(&mut self, peer: Peer, evicted: Arc<Notify>) -> u64 {
        let id = self.tick();
        self.open.insert(id, Open { peer, is_seated: false, in_flight: 0, idle_since: id, evicted });
        let is_seated = self.seat(id, peer);
        if !is_seated && SPARES_MAX < self.open.len() - self.all.seated {
            // Spares live for moments, so that the oldest one is not the one of a health check that has just come.
            let oldest = self.open.iter().find(|(_, open)| !open.is_seated).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.evict(oldest);
            }
        }
        id
    }

    fn begin(&mut self, id: u64, is_health: bool) -> Begun {
        let Some(open) = self.open.get(&id) else { return Begun::Evicted };
        if !is_health && !open.is_seated && !self.seat(id, open.peer) {
            return Begun::NoSeat;
        }
        self.change(id, |open| open.in_flight += 1);
        Begun::Yes
    }

    fn end(&mut self, id: u64) {
        let now = self.tick();
        self.change(id, |open| {
            open.in_flight -= 1;
            open.idle_since = now;
        });
    }

    fn leave(&mut self, id: u64) -> Option<Open> {
        let left = self.open.remove(&id)?;
        self.count(left.peer, left.count(), Count::default());
        Some(left)
    }

    fn evict(&mut self, id: u64) {
        if let Some(left) = self.leave(id) {
            left.evicted.notify_one();
        }
    }

    /// Gives a connection a seat, an idle one's if all are taken; `false` if there is none.
    fn seat(&mut self, id: u64, peer: Peer) -> bool {
        let of_peer = self.of(peer);
        let is_peer_full = self.max_of_peer <= of_peer.seated;
        if is_peer_full || self.max <= self.all.seated {
            let (idle, of) = if is_peer_full { (of_peer.idle, Some(peer)) } else { (self.all.idle, None) };
            if idle == 0 {
                return false;
            }
            let Some(idle) = self.idle(of) else { return false };
            self.evict(idle);
        }
        self.change(id, |open| open.is_seated = true);
        true
    }

    /// The idle connection that others need most, of one peer or of all.
    fn idle(&self, of: Option<Peer>) -> Option<u64> {
        let is_asked_for = |open: &Open| open.is_idle() && of.is_none_or(|peer| open.peer == peer);
        let idle = self.open.iter().filter(|(_, open)| is_asked_for(open));
        let worst = idle.min_by_key(|(_, open)| (usize::MAX - self.of(open.peer).seated, open.idle_since));
        worst.map(|(id, _)| *id)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Open)) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let (peer, before) = (open.peer, open.count());
        change(open);
        let after = open.count();
        self.count(peer, before, after);
    }

    fn count(&mut self, peer: Peer, before: Count, after: Count) {
        self.all.change(before, after);
        let of_peer = self.peers.entry(peer).or_default();
        of_peer.change(before, after);
        if of_peer.seated == 0 {
            self.peers.remove(&peer);
        }
    }

    fn of(&self, peer: Peer) -> Count {
        self.peers.get(&peer).copied().unwrap_or_default()
    }

    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> Peer {
        Peer::of(IpAddr::from([192, 0, 2, number]))
    }

    fn table(max: usize, max_of_peer: usize) -> Table {
        Table { max, max_of_peer, ..Table::default() }
    }

    impl Table {
        fn came(&mut self, number: u8) -> u64 {
            self.arrive(peer(number), Arc::default())
        }

        fn stands(&self, id: u64) -> Option<bool> {
            self.open.get(&id).map(|open| open.is_seated)
        }
    }

    const SEATED: Option<bool> = Some(true);
    const SPARE: Option<bool> = Some(false);
    const GONE: Option<bool> = None;

    #[test]
    fn a_full_house_takes_the_seat_that_was_idle_for_longest_and_never_a_busy_one() {
        let mut table = table(2, 2);
        let (first, second) = (table.came(1), table.came(1));
        assert_eq!(table.begin(first, false), Begun::Yes);
        let third = table.came(2);
        assert_eq!((table.stands(first), table.stands(second), table.stands(third)), (SEATED, GONE, SEATED));
        assert_eq!(table.begin(second, false), Begun::Evicted, "it came too late");
        assert_eq!(table.begin(third, false), Begun::Yes);
        let fourth = table.came(3);
        assert_eq!(table.stands(fourth), SPARE, "both are busy");
        assert_eq!(table.begin(fourth, false), Begun::NoSeat);
        assert_eq!(table.begin(fourth, true), Begun::Yes, "health needs no seat");
        table.end(fourth);
        table.end(first);
        assert_eq!(table.begin(fourth, false), Begun::Yes);
        assert_eq!((table.stands(first), table.stands(fourth)), (GONE, SEATED));
        table.leave(third);
        table.leave(fourth);
        assert!(table.open.is_empty() && table.peers.is_empty());
        assert_eq!((table.all.seated, table.all.idle), (0, 0));
    }

    #[test]
    fn one_peer_has_its_seats_and_leaves_the_others_theirs() {
        let mut table = table(4, 2);
        let (first, second) = (table.came(1), table.came(1));
        let third = table.came(1);
        assert_eq!((table.stands(first), table.stands(second), table.stands(third)), (GONE, SEATED, SEATED));
        for id in [second, third] {
            assert_eq!(table.begin(id, false), Begun::Yes);
        }
        let fourth = table.came(1);
        assert_eq!(table.stands(fourth), SPARE, "its own are busy, though others are free");
        let other = table.came(2);
        assert_eq!((table.stands(other), table.begin(other, false)), (SEATED, Begun::Yes));
    }

    #[test]
    fn the_peer_with_the_most_connections_gives_up_first() {
        let mut table = table(3, 3);
        let lone = table.came(1);
        let (many, more) = (table.came(2), table.came(2));
        let new = table.came(3);
        let stand = [lone, many, more, new].map(|id| table.stands(id));
        assert_eq!(stand, [SEATED, GONE, SEATED, SEATED], "the lone one is older, and stays");
    }

    #[test]
    fn spares_are_bounded_and_the_oldest_makes_room() {
        let mut table = table(1, 1);
        let busy = table.came(1);
        assert_eq!(table.begin(busy, false), Begun::Yes);
        let spares: Vec<u64> = (0..=SPARES_MAX).map(|_| table.came(1)).collect();
        assert_eq!(table.stands(spares[0]), GONE);
        assert!(spares[1..].iter().all(|spare| table.stands(*spare) == SPARE));
        assert_eq!(table.stands(busy), SEATED);
        assert_eq!(table.open.len(), 1 + SPARES_MAX);
    }

    #[test]
    fn a_peer_is_an_address_or_a_network_that_one_machine_has() {
        let of = |text: &str| Peer::of(text.parse().expect("an address"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
