//! How often keys and messages were replayed.

use std::collections::HashMap;

use ichido_core::ledger::RecordName;
use ichido_core::series::HOURS_KEPT;
use uuid::Uuid;

use super::{Series, Store};
use crate::check;
use crate::columns::{Columns as _, Row};
use crate::counters::Replays;
use crate::error::StoreError;
use crate::future::StoreFuture;
use crate::message::limits::MAX_PAGE;
use crate::micros;
use crate::statement::{SqlValue, paired};
use crate::subject::key_subject;

/// How many rows a sweep deletes at most.
const MAX_SWEPT: i64 = 1_000;

/// What replays are counted of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// A key, whose stored response was sent again.
    Key(RecordName),
    /// A message, which was enqueued again.
    Message(Uuid),
}

impl<'s> Series<'s> {
    /// Returns the replays of each, in the same order; `None` if there were none. At most [`MAX_PAGE`].
    pub fn replays(self, of: &'s [Replayed]) -> StoreFuture<'s, Vec<Option<Replays>>> {
        Box::pin(async move {
            check::number(
                "the number of replayed",
                u32::try_from(of.len()).unwrap_or(u32::MAX),
                0..=MAX_PAGE,
            )?;
            let about: Vec<Uuid> = of.iter().map(Replayed::subject).collect();
            if about.is_empty() {
                return Ok(Vec::new());
            }
            let rows = self.0.driver.all(paired!("replay_find"), &[about.as_slice().into()]).await?;
            let found: HashMap<Uuid, Replays> = rows.iter().map(replays_row).collect::<Result<_, _>>()?;
            Ok(about.iter().map(|about| found.get(about).copied()).collect())
        })
    }
}

impl Replayed {
    fn subject(&self) -> Uuid {
        match self {
            Self::Key(name) => key_subject(name),
            Self::Message(id) => *id,
        }
    }
}

impl Store {
    /// Stores what this process has counted.
    pub(super) async fn add_replays(&self) -> Result<(), StoreError> {
        let taken = self.counters.take_replays();
        if taken.is_empty() {
            return Ok(());
        }
        let columns = [taken.keys().copied().collect(), taken.values().copied().collect()];
        let added =
            self.driver.execute(paired!("replay_add"), &[SqlValue::Rows(&columns), SqlValue::Now]).await;
        if added.is_err() && !matches!(added, Err(StoreError::Unknown(_))) {
            for (about, count) in taken {
                self.counters.replayed(about, count);
            }
        }
        added.map(drop)
    }

    pub(super) async fn sweep_replays(&self) -> Result<u64, StoreError> {
        let values = [micros(HOURS_KEPT).into(), SqlValue::Now, MAX_SWEPT.into()];
        self.driver.execute(paired!("replay_sweep"), &values).await
    }
}

fn replays_row(row: &Row) -> Result<(Uuid, Replays), StoreError> {
    let replays = Replays {
        count: row.number("count")?.unsigned_abs(),
        first_at: row.timestamp("first_at")?,
        last_at: row.timestamp("last_at")?,
    };
    Ok((row.uuid("about")?, replays))
}
