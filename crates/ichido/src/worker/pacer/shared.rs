//! The paces of all destinations, for operators: shown, and adjusted while workers run.

use ichido_core::pace::{Pace, PerSecond};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::node::SharedPace;

use super::MAX_ROUNDS;
use super::row::{PaceChange, PaceChanges, Row};

/// The paces that the workers of one database share.
#[derive(Clone)]
pub struct Paces(Store);

/// What all workers know of a destination.
#[derive(Clone, Debug, PartialEq)]
pub struct DestinationPace {
    /// How fast it is called, and whether it is paused or down.
    pub pace: Pace,
    /// The rate that an operator set instead of the configured one.
    pub max_rate: Option<PerSecond>,
    /// Whether an operator stopped all calls.
    pub is_paused: bool,
    /// Who set this rate.
    pub rate_change: Option<PaceChange>,
    /// Who paused it.
    pub pause_change: Option<PaceChange>,
}

impl DestinationPace {
    /// The pace of a destination that was never called.
    pub const NEW: Self =
        Self { pace: Pace::NEW, max_rate: None, is_paused: false, rate_change: None, pause_change: None };
}

impl From<Row> for DestinationPace {
    fn from(Row { pace, max_rate, is_paused, changes, .. }: Row) -> Self {
        let PaceChanges { rate, pause } = changes.as_deref().cloned().unwrap_or_default();
        Self { pace, max_rate, is_paused, rate_change: rate, pause_change: pause }
    }
}

impl Paces {
    /// Creates a view of the paces in a store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// Returns the pace of a destination; [`Pace::NEW`] if it was never called.
    pub async fn read(&self, destination: &str) -> Result<DestinationPace, StoreError> {
        Ok(Row::read(&self.0, destination).await?.into())
    }

    /// Returns the pace of every destination that was ever called, by name.
    pub async fn list(&self) -> Result<Vec<(String, DestinationPace)>, StoreError> {
        let rate = |(name, shared): (String, SharedPace)| {
            let row = Row::parse(&name, &shared);
            (name, row.into())
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
        change: &PaceChange,
    ) -> Result<(), StoreError> {
        let set =
            |row| Row { max_rate, ..row }.changed(|changes| changes.rate = max_rate.map(|_| change.clone()));
        self.change(destination, set).await
    }

    /// Stops all calls, of all workers, until [`Paces::resume`].
    ///
    /// They follow within a second; calls in flight finish.
    pub async fn pause(&self, destination: &str, change: &PaceChange) -> Result<(), StoreError> {
        let pause =
            |row| Row { is_paused: true, ..row }.changed(|changes| changes.pause = Some(change.clone()));
        self.change(destination, pause).await
    }

    /// Ends the pause of an operator, and the pause that the destination requested.
    ///
    /// If it requested one, one call probes it first; the workers continue once that is accepted.
    pub async fn resume(&self, destination: &str) -> Result<(), StoreError> {
        let resume = |row: Row| {
            let row = Row { pace: row.pace.resumed(), is_paused: false, ..row };
            row.changed(|changes| changes.pause = None)
        };
        self.change(destination, resume).await
    }

    /// Ends the pauses as [`resume`](Self::resume), and forgets how fast the destination may be called.
    pub async fn forget(&self, destination: &str) -> Result<(), StoreError> {
        let forget = |row: Row| {
            let row = Row { pace: row.pace.forgotten(), is_paused: false, ..row };
            row.changed(|changes| changes.pause = None)
        };
        self.change(destination, forget).await
    }

    async fn change(&self, destination: &str, change: impl Fn(Row) -> Row) -> Result<(), StoreError> {
        for _ in 0..MAX_ROUNDS {
            let row = Row::read(&self.0, destination).await?;
            let next = change(row.clone());
            if next == row || self.0.paces().write(destination, row.version, &next.to_bytes()).await? {
                return Ok(());
            }
        }
        Err(StoreError::Busy)
    }
}
