//! Permits for listings, which may read much and hold large requests in memory.
//!
//! Guarantee: listings of producers never delay one of a viewer, an operator or an admin, and one token never takes all permits.

use ichido_http::server::permits::{Permit, Permits};
use ichido_store::token::TokenRole;
use uuid::Uuid;

use super::caller::ApiCaller;
use crate::limits::{
    MAX_LISTINGS, MAX_LISTINGS_PER_TOKEN, MAX_PRODUCER_LISTINGS, MAX_PRODUCER_LISTINGS_PER_TOKEN,
};

pub(super) struct ListingPermits {
    producers: Permits<Uuid>,
    others: Permits<Uuid>,
}

impl ListingPermits {
    pub(super) fn new() -> Self {
        Self {
            producers: Permits::new(MAX_PRODUCER_LISTINGS, MAX_PRODUCER_LISTINGS_PER_TOKEN),
            others: Permits::new(MAX_LISTINGS, MAX_LISTINGS_PER_TOKEN),
        }
    }

    /// Waits for a permit.
    pub(super) async fn acquire(&self, caller: &ApiCaller) -> Permit<Uuid> {
        match caller.role {
            TokenRole::Producer { .. } => self.producers.take(caller.token).await,
            TokenRole::Viewer | TokenRole::Operator | TokenRole::Admin => {
                self.others.take(caller.token).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn caller(token: u128, role: TokenRole) -> ApiCaller {
        ApiCaller { name: "ann".to_owned(), role, token: Some(Uuid::from_u128(token)) }
    }

    fn producer(token: u128) -> ApiCaller {
        caller(token, TokenRole::Producer { identity: "shop".to_owned(), queues: Vec::new() })
    }

    /// Returns a permit, if one is free.
    fn turn(listings: &ListingPermits, caller: &ApiCaller) -> Option<Permit<Uuid>> {
        match pin!(listings.acquire(caller)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn listings_of_producers_keep_no_operator_waiting() {
        let listings = ListingPermits::new();
        let first = turn(&listings, &producer(1)).expect("a turn");
        assert!(turn(&listings, &producer(1)).is_none(), "one token has one");
        let _second = turn(&listings, &producer(2)).expect("another producer has its own");
        assert!(turn(&listings, &producer(3)).is_none(), "and all together two");
        let viewer = caller(4, TokenRole::Viewer);
        let _viewers = [(); MAX_LISTINGS_PER_TOKEN].map(|()| turn(&listings, &viewer).expect("a turn"));
        assert!(turn(&listings, &viewer).is_none(), "one token has not all");
        let _operator = turn(&listings, &caller(5, TokenRole::Operator)).expect("it goes ahead");
        drop(first);
        assert!(turn(&listings, &producer(3)).is_some(), "what was given back");
    }
}
