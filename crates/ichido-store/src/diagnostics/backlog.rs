//! The messages and alerts that wait for a person.

use ichido_core::time::Timestamp;

use crate::alert::limits::MAX_FIRING;
use crate::columns::Columns as _;
use crate::error::StoreError;
use crate::message::StateCount;
use crate::rows;
use crate::statement::{DbConnection, paired, shared};

/// What waits in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The messages of each queue in each state.
    pub counts: Vec<StateCount>,
    /// The queues with claimable messages, each with the time when its oldest one was enqueued.
    pub oldest: Vec<(String, Timestamp)>,
    /// The rules of the alerts that fire, each with what it is about.
    pub firing: Vec<(String, String)>,
    /// How many nodes are alive.
    pub living: usize,
    /// When this was read.
    pub now: Timestamp,
}

/// Reads what waits in a store of this program's version.
pub(super) async fn read(mut connection: DbConnection<'_>, now: Timestamp) -> Result<Backlog, StoreError> {
    let counts = connection.all(paired!("count_read"), &[]).await?;
    let counts = counts.iter().map(rows::count).collect::<Result<Vec<_>, StoreError>>()?;
    let mut oldest = Vec::new();
    for chunk in counts.chunk_by(|one, other| one.queue == other.queue) {
        let Some(StateCount { queue, .. }) = chunk.first() else { continue };
        let row = connection.one(shared!("queue_oldest"), &[queue.as_str().into()]).await?;
        oldest.extend(row.timestamp_or_none("oldest")?.map(|at| (queue.clone(), at)));
    }
    let firing = connection.all(shared!("alert_firing"), &[i64::from(MAX_FIRING).into()]).await?;
    let firing = firing
        .iter()
        .map(|row| Ok((row.text("rule")?.to_owned(), row.text("about")?.to_owned())))
        .collect::<Result<Vec<_>, StoreError>>()?;
    let nodes = connection.all(shared!("node_list"), &[]).await?;
    let nodes = nodes.iter().map(rows::node).collect::<Result<Vec<_>, StoreError>>()?;
    let living = nodes.iter().filter(|node| node.is_alive(now)).count();
    Ok(Backlog { counts, oldest, firing, living, now })
}
