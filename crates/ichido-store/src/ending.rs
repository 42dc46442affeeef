//! How claims of messages end, on either database: what is read, and what reports of workers come to.

use std::collections::{BTreeSet, HashMap, HashSet};

use ichido_core::fence::Fence;
use ichido_core::lifecycle::Why;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::columns::{Columns as _, Row, number};
use crate::error::StoreError;
use crate::held::{End, Ending, Ends};
use crate::message::{Settlement, Stepped};
use crate::placement::{Moves, Stamp};
use crate::rows;
use crate::statement::{Column, Connection, Statement, Value, column, paired, sqlite_only};

/// A message and the claim that it is or was under.
pub(crate) type Pair = (Uuid, Fence);

/// Of these messages, those that their claims do not hold, as far as the leases tell that are still there.
pub(crate) async fn foreign(
    connection: &mut Connection<'_>,
    strangers: Vec<Pair>,
) -> Result<HashSet<Pair>, StoreError> {
    let mut strangers: HashSet<Pair> = strangers.into_iter().collect();
    if !strangers.is_empty() {
        let pairs: Vec<Pair> = strangers.iter().copied().collect();
        let fences: BTreeSet<i64> = pairs.iter().map(|(_, fence)| number(*fence)).collect();
        let fences: Vec<i64> = fences.into_iter().collect();
        let values = [Value::Rows(&columns(&pairs)), Value::Numbers(&fences)];
        let members = pairs_of(&connection.all(paired!("lease_members"), &values).await?)?;
        strangers.retain(|pair| !members.contains(pair));
    }
    Ok(strangers)
}

/// How messages ended under their claims, where they have.
pub(crate) async fn ends(
    connection: &mut Connection<'_>,
    endings: &[Ending<'_>],
) -> Result<Ends, StoreError> {
    let pairs: Vec<Pair> = endings.iter().map(Ending::pair).collect();
    rows::ends(&connection.all(paired!("event_find"), &[Value::Rows(&columns(&pairs))]).await?)
}

/// Those of these messages that a statement about their start marks returns.
pub(crate) async fn marks(
    connection: &mut Connection<'_>,
    statement: Statement,
    pairs: &[Pair],
) -> Result<HashSet<Pair>, StoreError> {
    pairs_of(&connection.all(statement, &[Value::Rows(&columns(pairs))]).await?)
}

/// Deletes leases, and the marks made under them.
pub(crate) async fn lease_over(connection: &mut Connection<'_>, fences: &[i64]) -> Result<(), StoreError> {
    if let Connection::Sqlite(..) = connection {
        connection.execute(sqlite_only!("lease_unmark"), &[Value::Numbers(fences)]).await?;
    }
    connection.execute(paired!("lease_over"), &[Value::Numbers(fences)]).await.map(drop)
}

/// The claims of these reports, each once, in order.
pub(crate) fn fences(endings: &[Ending<'_>]) -> Vec<i64> {
    let fences: BTreeSet<i64> = endings.iter().map(|ending| number(ending.fence)).collect();
    fences.into_iter().collect()
}

/// What reports come to whose claims still stand. `holder` says who holds the claim and what time it is; `may_have_begun` says whether
/// the mark of a message that is given back contradicts it. Returns what to write and the answers by index, and adds to `ends`. Reports
/// without an answer are late.
pub(crate) fn settle(
    endings: &[Ending<'_>],
    ends: &mut Ends,
    holder: impl Fn(&Ending<'_>) -> Option<(Uuid, Timestamp)>,
    may_have_begun: impl Fn(&Ending<'_>) -> bool,
) -> (Moves, HashMap<usize, Stepped>) {
    let (mut moves, mut settled) = (Moves::default(), HashMap::with_capacity(endings.len()));
    for ending in endings {
        let Some((node, now)) = holder(ending).filter(|_| !ends.ended.contains_key(&ending.pair())) else {
            continue;
        };
        let is_proven = ends.proven.contains(&ending.settlement.id);
        // The mark decides, whatever the holder remembers.
        let stepped = if !is_proven && may_have_begun(ending) {
            Stepped::Refused(Why::MayHaveBegun)
        } else {
            let Settlement { state, event, note, claimed_at, .. } = ending.settlement;
            let stamp =
                Stamp { fence: Some(ending.fence), claimed_at: Some(*claimed_at), node: Some(node), now };
            let states = if is_proven { ending.proven() } else { ending.states };
            moves.add(&ending.moving(), *state, *event, states, note, stamp);
            ends.ended.insert(ending.pair(), End::new(*event, states.0));
            Stepped::Now(states.1.unwrap_or(states.0))
        };
        settled.insert(ending.index, stepped);
    }
    (moves, settled)
}

/// Whether a report was refused, so that the message is still held.
pub(crate) fn is_refused(settled: &HashMap<usize, Stepped>, ending: &Ending<'_>) -> bool {
    matches!(settled.get(&ending.index), Some(Stepped::Refused(_)))
}

fn columns(pairs: &[Pair]) -> [Column<'_>; 2] {
    [column(pairs, |(id, _)| *id), column(pairs, |(_, fence)| number(*fence))]
}

fn pairs_of(rows: &[Row]) -> Result<HashSet<Pair>, StoreError> {
    rows.iter().map(|row| Ok((row.uuid("message_id")?, row.fence()?))).collect()
}
