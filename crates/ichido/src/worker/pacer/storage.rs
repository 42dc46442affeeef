//! Where a pace is stored: in the store, for all nodes, or in this process.

use std::sync::Mutex;

use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::error::StoreError;

use super::row::Row;

pub(super) enum PaceStorage {
    Shared(Store),
    /// A row that nobody else sees.
    Alone(Mutex<Row>),
}

impl PaceStorage {
    /// Creates storage for a destination that nobody else calls.
    pub(super) fn alone() -> Self {
        Self::Alone(Mutex::new(Row::NEW))
    }

    pub(super) async fn read(&self, name: &str) -> Result<Row, StoreError> {
        match self {
            Self::Shared(store) => Row::read(store, name).await,
            Self::Alone(row) => Ok(lock(row).clone()),
        }
    }

    /// Writes the successor of this version. Returns `false` if somebody else was faster.
    pub(super) async fn write(&self, name: &str, next: &Row) -> Result<bool, StoreError> {
        match self {
            Self::Shared(store) => store.paces().write(name, next.version, &next.to_bytes()).await,
            Self::Alone(row) => {
                let mut row = lock(row);
                let is_next = row.version == next.version;
                if is_next {
                    *row = Row { version: next.version + 1, ..next.clone() };
                }
                Ok(is_next)
            }
        }
    }
}
