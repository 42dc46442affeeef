//! Seats limit which connections are served at once.
//!
//! Guarantee: at most `max` connections have a seat, at most `max_of_peer` of them from one peer, and at most
//! [`MAX_SPARES`] more are open. A connection with a request in flight keeps its seat. An idle connection loses its
//! seat when another one needs it: first one of the peer with the most connections, and among those the one that has
//! been idle longest. Health and metrics requests need no seat.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use ichido_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::limits::{MAX_SPARES, SEAT_WAIT};

/// Identifies a client for limits: an IPv4 address or an IPv6 /64 network.
///
/// One machine often has a whole /64 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl Peer {
    /// Returns the peer of an address.
    pub fn new(address: IpAddr) -> Self {
        const NETWORK: u128 = !(u64::MAX as u128);
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The seats of one server.
pub(super) struct Seats {
    table: Mutex<SeatTable>,
    /// Notifies waiting requests that a seat may be free.
    freed: Notify,
}

impl Seats {
    pub(super) fn new(max: usize, max_of_peer: usize) -> Arc<Self> {
        let table = Mutex::new(SeatTable { max, max_of_peer, ..SeatTable::default() });
        Arc::new(Self { table, freed: Notify::new() })
    }

    /// Registers a new connection, with a seat if one is available.
    pub(super) fn admit(self: &Arc<Self>, peer: Peer) -> Arc<Seat> {
        let evicted = Arc::new(Notify::new());
        let id = self.lock().admit(peer, Arc::clone(&evicted));
        // A request may have been waiting on a connection that was just evicted.
        self.freed.notify_waiters();
        Arc::new(Seat { seats: Arc::clone(self), id, peer, evicted })
    }

    fn lock(&self) -> MutexGuard<'_, SeatTable> {
        // Every change under the lock is complete, so a poisoned lock is safe to use.
        lock(&self.table)
    }
}

/// An open connection, registered until it is dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    id: u64,
    peer: Peer,
    evicted: Arc<Notify>,
}

/// No seat became free in time, or the connection was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSeat;

impl Seat {
    pub(super) const fn peer(&self) -> Peer {
        self.peer
    }

    /// Whether the connection has no seat.
    pub(super) fn is_spare(&self) -> bool {
        self.seats.lock().open.get(&self.id).is_none_or(|open| !open.is_seated)
    }

    /// Completes when the connection must close, because another one needs its seat.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Starts a request. Waits up to [`SEAT_WAIT`] if it needs a seat and has none.
    pub(super) async fn start_request(self: Arc<Self>, is_health: bool) -> Result<InFlightRequest, NoSeat> {
        let deadline = Instant::now() + SEAT_WAIT;
        loop {
            let mut freed = pin!(self.seats.freed.notified());
            // Enable before checking, so no notification is missed.
            freed.as_mut().enable();
            match self.seats.lock().start_request(self.id, is_health) {
                StartOutcome::Started => break,
                StartOutcome::NoSeat => (),
                // The request arrived while its connection was being closed.
                StartOutcome::Evicted => return Err(NoSeat),
            }
            timeout_at(deadline, freed).await.map_err(|_| NoSeat)?;
        }
        Ok(InFlightRequest(self))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().remove_connection(self.id);
        self.seats.freed.notify_waiters();
    }
}

/// A request in flight, until it is dropped.
pub(super) struct InFlightRequest(Arc<Seat>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.seats.lock().finish_request(self.0.id);
        self.0.seats.freed.notify_waiters();
    }
}

/// Whether a request could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartOutcome {
    Started,
    NoSeat,
    Evicted,
}

/// The open connections, in order of arrival.
#[derive(Default)]
struct SeatTable {
    max: usize,
    max_of_peer: usize,
    /// A logical clock that orders events.
    ticks: u64,
    open: BTreeMap<u64, OpenConnection>,
    all: SeatCount,
    /// Only peers that have a seat.
    peers: HashMap<Peer, SeatCount>,
}

struct OpenConnection {
    peer: Peer,
    is_seated: bool,
    in_flight: usize,
    idle_since: u64,
    evicted: Arc<Notify>,
}

/// Counts seated connections and the idle ones among them.
///
/// The counts are always current, so the table searches for an idle connection only if there is one.
#[derive(Clone, Copy, Default)]
struct SeatCount {
    seated: usize,
    idle: usize,
}

impl SeatCount {
    fn change(&mut self, before: Self, after: Self) {
        self.seated = self.seated + after.seated - before.seated;
        self.idle = self.idle + after.idle - before.idle;
    }
}

impl OpenConnection {
    fn is_idle(&self) -> bool {
        self.is_seated && self.in_flight == 0
    }

    fn count(&self) -> SeatCount {
        SeatCount { seated: usize::from(self.is_seated), idle: usize::from(self.is_idle()) }
    }
}

impl SeatTable {
    fn admit(&mut self, peer: Peer, evicted: Arc<Notify>) -> u64 {
        let id = self.tick();
        self.open
            .insert(id, OpenConnection { peer, is_seated: false, in_flight: 0, idle_since: id, evicted });
        let is_seated = self.seat(id, peer);
        if !is_seated && MAX_SPARES < self.open.len() - self.all.seated {
            // Spares are short-lived, so the oldest one is not a health check that has just arrived.
            let oldest = self.open.iter().find(|(_, open)| !open.is_seated).map(|(id, _)| *id);
            if let Some(oldest) = oldest {
                self.evict(oldest);
            }
        }
        id
    }

    fn start_request(&mut self, id: u64, is_health: bool) -> StartOutcome {
        let Some(open) = self.open.get(&id) else { return StartOutcome::Evicted };
        if !is_health && !open.is_seated && !self.seat(id, open.peer) {
            return StartOutcome::NoSeat;
        }
        self.change(id, |open| open.in_flight += 1);
        StartOutcome::Started
    }

    fn finish_request(&mut self, id: u64) {
        let now = self.tick();
        self.change(id, |open| {
            open.in_flight -= 1;
            open.idle_since = now;
        });
    }

    fn remove_connection(&mut self, id: u64) -> Option<OpenConnection> {
        let left = self.open.remove(&id)?;
        self.count(left.peer, left.count(), SeatCount::default());
        Some(left)
    }

    fn evict(&mut self, id: u64) {
        if let Some(left) = self.remove_connection(id) {
            left.evicted.notify_one();
        }
    }

    /// Gives a connection a seat, evicting an idle connection if necessary. Returns `false` if it cannot.
    fn seat(&mut self, id: u64, peer: Peer) -> bool {
        let of_peer = self.count_of(peer);
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

    /// Finds the idle connection to evict first, of one peer or of all.
    fn idle(&self, of: Option<Peer>) -> Option<u64> {
        let is_asked_for = |open: &OpenConnection| open.is_idle() && of.is_none_or(|peer| open.peer == peer);
        let idle = self.open.iter().filter(|(_, open)| is_asked_for(open));
        let worst =
            idle.min_by_key(|(_, open)| (usize::MAX - self.count_of(open.peer).seated, open.idle_since));
        worst.map(|(id, _)| *id)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut OpenConnection)) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let (peer, before) = (open.peer, open.count());
        change(open);
        let after = open.count();
        self.count(peer, before, after);
    }

    fn count(&mut self, peer: Peer, before: SeatCount, after: SeatCount) {
        self.all.change(before, after);
        let of_peer = self.peers.entry(peer).or_default();
        of_peer.change(before, after);
        if of_peer.seated == 0 {
            self.peers.remove(&peer);
        }
    }

    fn count_of(&self, peer: Peer) -> SeatCount {
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
        Peer::new(IpAddr::from([192, 0, 2, number]))
    }

    fn table(max: usize, max_of_peer: usize) -> SeatTable {
        SeatTable { max, max_of_peer, ..SeatTable::default() }
    }

    impl SeatTable {
        fn add(&mut self, number: u8) -> u64 {
            self.admit(peer(number), Arc::default())
        }

        fn status(&self, id: u64) -> Option<bool> {
            self.open.get(&id).map(|open| open.is_seated)
        }
    }

    const SEATED: Option<bool> = Some(true);
    const SPARE: Option<bool> = Some(false);
    const GONE: Option<bool> = None;

    #[test]
    fn full_server_evicts_the_longest_idle_seat() {
        let mut table = table(2, 2);
        let (first, second) = (table.add(1), table.add(1));
        assert_eq!(table.start_request(first, false), StartOutcome::Started);
        let third = table.add(2);
        assert_eq!((table.status(first), table.status(second), table.status(third)), (SEATED, GONE, SEATED));
        assert_eq!(table.start_request(second, false), StartOutcome::Evicted, "it came too late");
        assert_eq!(table.start_request(third, false), StartOutcome::Started);
        let fourth = table.add(3);
        assert_eq!(table.status(fourth), SPARE, "both are busy");
        assert_eq!(table.start_request(fourth, false), StartOutcome::NoSeat);
        assert_eq!(table.start_request(fourth, true), StartOutcome::Started, "health needs no seat");
        table.finish_request(fourth);
        table.finish_request(first);
        assert_eq!(table.start_request(fourth, false), StartOutcome::Started);
        assert_eq!((table.status(first), table.status(fourth)), (GONE, SEATED));
        table.remove_connection(third);
        table.remove_connection(fourth);
        assert!(table.open.is_empty() && table.peers.is_empty());
        assert_eq!((table.all.seated, table.all.idle), (0, 0));
    }

    #[test]
    fn one_peer_cannot_use_the_seats_of_others() {
        let mut table = table(4, 2);
        let (first, second) = (table.add(1), table.add(1));
        let third = table.add(1);
        assert_eq!((table.status(first), table.status(second), table.status(third)), (GONE, SEATED, SEATED));
        for id in [second, third] {
            assert_eq!(table.start_request(id, false), StartOutcome::Started);
        }
        let fourth = table.add(1);
        assert_eq!(table.status(fourth), SPARE, "its own are busy, though others are free");
        let other = table.add(2);
        assert_eq!((table.status(other), table.start_request(other, false)), (SEATED, StartOutcome::Started));
    }

    #[test]
    fn the_peer_with_the_most_connections_gives_up_first() {
        let mut table = table(3, 3);
        let lone = table.add(1);
        let (many, more) = (table.add(2), table.add(2));
        let new = table.add(3);
        let statuses = [lone, many, more, new].map(|id| table.status(id));
        assert_eq!(statuses, [SEATED, GONE, SEATED, SEATED], "the lone one is older, and stays");
    }

    #[test]
    fn spare_seats_are_limited_and_the_oldest_is_evicted() {
        let mut table = table(1, 1);
        let busy = table.add(1);
        assert_eq!(table.start_request(busy, false), StartOutcome::Started);
        let spares: Vec<u64> = (0..=MAX_SPARES).map(|_| table.add(1)).collect();
        assert_eq!(table.status(spares[0]), GONE);
        assert!(spares[1..].iter().all(|spare| table.status(*spare) == SPARE));
        assert_eq!(table.status(busy), SEATED);
        assert_eq!(table.open.len(), 1 + MAX_SPARES);
    }

    #[test]
    fn peer_is_an_ipv4_address_or_an_ipv6_network() {
        let of = |text: &str| Peer::new(text.parse().expect("an address"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
