//! Where a pace is kept: in the store, where all nodes share it, or in this process alone.

use std::sync::Mutex;

use ichido_core::sync::lock;
use ichido_store::Store;
use ichido_store::error::StoreError;

use super::row::Row;

pub(crate) enum Home {
    Shared(Store),
    Alone(Here),
}

/// A row that nobody else sees.
pub(crate) struct Here(Mutex<Row>);

impl Home {
    /// Of a destination that nobody else calls.
    pub(crate) fn alone() -> Self {
        Self::Alone(Here(Mutex::new(Row::NEW)))
    }

    pub(super) async fn read(&self, name: &str) -> Result<Row, StoreError> {
        match self {
            Self::Shared(store) => Row::read(store, name).await,
            Self::Alone(here) => Ok(*lock(&here.0)),
        }
    }

    /// Writes what follows the row of this version; `false` is that somebody was quicker.
    pub(super) async fn write(&self, name: &str, next: Row) -> Result<bool, StoreError> {
        match self {
            Self::Shared(store) => store.paces().write(name, next.version, &next.to_bytes()).await,
            Self::Alone(here) => {
                let mut row = lock(&here.0);
                let is_next = row.version == next.version;
                if is_next {
                    *row = Row { version: next.version + 1, ..next };
                }
                Ok(is_next)
            }
        }
    }
}
