//! The paces of all destinations, for operators: shown, and adjusted while workers run.

use ichido_core::pace::{Pace, PerSecond};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::SharedPace;

use super::MAX_ROUNDS;
use super::row::Row;

/// The paces that the workers of one database share.
#[derive(Clone)]
pub struct Paces(Store);

/// What all workers know of a destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DestinationPace {
    /// How fast it is called, and whether it is paused or down.
    pub pace: Pace,
    /// The rate that an operator set instead of the configured one.
    pub max_rate: Option<PerSecond>,
}

impl Paces {
    /// Creates a view of the paces in a store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// Returns the pace of a destination; [`Pace::NEW`] if it was never called.
    pub async fn read(&self, destination: &str) -> Result<DestinationPace, StoreError> {
        let Row { pace, max_rate, .. } = Row::read(&self.0, destination).await?;
        Ok(DestinationPace { pace, max_rate })
    }

    /// Returns the pace of every destination that was ever called, by name.
    pub async fn list(&self) -> Result<Vec<(String, DestinationPace)>, StoreError> {
        let rate = |(name, shared): (String, SharedPace)| {
            let Row { pace, max_rate, .. } = Row::parse(&name, &shared);
            (name, DestinationPace { pace, max_rate })
        };
        Ok(self.0.paces().list().await?.into_iter().map(rate).collect())
    }

    /// Sets the maximum rate of all workers together; `None` restores their configuration.
    ///
    /// They follow within a second.
    pub async fn set_max_rate(
        &self,
        destination: &str,
        max_rate: Option<PerSecond>,
    ) -> Result<(), StoreError> {
        self.change(destination, |row| Row { max_rate, ..row }).await
    }

    /// Ends the pause that a destination requested.
    ///
    /// One call probes it first; the workers continue once that is accepted.
    pub async fn lift_pause(&self, destination: &str) -> Result<(), StoreError> {
        self.change(destination, |row| Row { pace: row.pace.resumed(), ..row }).await
    }

    async fn change(&self, destination: &str, change: impl Fn(Row) -> Row) -> Result<(), StoreError> {
        for _ in 0..MAX_ROUNDS {
            let row = Row::read(&self.0, destination).await?;
            let next = change(row);
            if next == row || self.0.paces().write(destination, row.version, &next.to_bytes()).await? {
                return Ok(());
            }
        }
        Err(StoreError::Busy)
    }
}
