//! Claiming, settling and renewing, on SQLite.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use uuid::Uuid;

use super::step::step;
use super::{Sqlite, Writing};
use crate::columns::{Columns as _, fence_from, number};
use crate::ending::{Pair, ends, fences, foreign, is_refused, lease_over, marks, settle};
use crate::error::StoreError;
use crate::held::{End, Ending};
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::micros;
use crate::moves::add_counts;
use crate::promised::Promised;
use crate::rows::work;
use crate::statement::{Value, column, paired, shared, sqlite_only};

impl Sqlite {
    /// Takes up to `count` messages, or, where `suspects` are wanted, one of them alone.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
        suspects: bool,
    ) -> Result<Vec<Work>, StoreError> {
        let mut writing = self.write().await?;
        // Drawn when the lease is written: a look at an empty queue writes nothing.
        let fence = fence_from(writing.last.saturating_add(1))?;
        let mut connection = writing.either();
        let values = [
            queue.as_str().into(),
            number(fence).into(),
            Value::Now,
            i64::from(count.get().min(limits::CLAIM_MAX)).into(),
        ];
        let mut rows = Vec::new();
        if suspects {
            rows = connection.all(sqlite_only!("work_pick_suspect"), &values).await?;
        }
        let suspect = !rows.is_empty();
        if !suspect {
            rows = connection.all(sqlite_only!("work_pick"), &values).await?;
        }
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let work: Vec<Work> = rows.iter().map(|row| work(queue, terms, row)).collect::<Result<_, _>>()?;
        take(&mut writing, queue, terms, &work, suspect).await?;
        writing.draw(1);
        writing.commit().await?;
        self.held.claimed(&work);
        self.own.hold(fence, terms.lease);
        Ok(work)
    }

    /// Writes what came of messages; the caller commits and then calls [`Sqlite::reported`]. All of a batch stands or none of it, and
    /// a report that comes again, as after a lost answer, is answered as the first time.
    pub(super) async fn settle<'a>(
        &self,
        writing: &mut Writing,
        settlements: &[&'a Settlement],
    ) -> Result<Reports<'a>, StoreError> {
        let mut answers = vec![Stepped::NoSuchMessage; settlements.len()];
        let mut endings = Vec::with_capacity(settlements.len());
        for (index, settlement) in settlements.iter().enumerate() {
            match Ending::of(index, settlement) {
                Ok(ending) => endings.push(ending),
                Err(why) => answers[index] = Stepped::Refused(why),
            }
        }
        // Of two reports about one claim a success is heard first.
        endings.sort_by_key(|ending| ending.last() != State::Sent);
        if endings.is_empty() {
            return Ok(Reports { answers, endings, over: Vec::new() });
        }
        let strangers = self.held.strangers(endings.iter().map(Ending::pair));
        let now = writing.now;
        let mut connection = writing.either();
        let foreign = foreign(&mut connection, strangers).await?;
        let rows = connection.all(paired!("lease_hold"), &[Value::Numbers(&fences(&endings))]).await?;
        let held: HashMap<Fence, Uuid> = rows
            .iter()
            .map(|row| Ok((row.fence()?, row.uuid("node")?)))
            .collect::<Result<_, StoreError>>()?;
        let mut ends = ends(&mut connection, &endings).await?;
        let back: Vec<Pair> =
            endings.iter().filter(|ending| ending.is_given_back()).map(Ending::pair).collect();
        let begun = match &*back {
            [] => HashSet::new(),
            back => marks(&mut connection, paired!("begin_find"), back).await?,
        };
        let holder = |ending: &Ending<'_>| {
            let node = held.get(&ending.fence).filter(|_| !foreign.contains(&ending.pair()));
            node.map(|node| (*node, now))
        };
        let may_have_begun = |ending: &Ending<'_>| begun.contains(&ending.pair());
        let (mut moves, settled) = settle(&endings, &mut ends, holder, may_have_begun);
        writing.apply(&mut moves).await?;
        let let_go = |ending: &&Ending<'_>| held.contains_key(&ending.fence) && !is_refused(&settled, ending);
        let over = self.held.over(endings.iter().filter(let_go));
        if !over.is_empty() {
            let fences: Vec<i64> = over.iter().copied().map(number).collect();
            lease_over(&mut writing.either(), &fences).await?;
        }
        for ending in &endings {
            answers[ending.index] = match settled.get(&ending.index) {
                Some(stepped) => *stepped,
                None => settle_late(writing, ending, ends.ended.get(&ending.pair())).await?,
            };
        }
        endings.retain(|ending| !is_refused(&settled, ending));
        Ok(Reports { answers, endings, over })
    }

    /// Lets go of what has ended, once that is committed.
    pub(super) fn reported(&self, reports: Reports<'_>) -> Vec<Stepped> {
        self.held.let_go(reports.endings.iter());
        for fence in reports.over {
            self.own.release(fence);
        }
        reports.answers
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub(crate) async fn begin(&self, calls: &[Pair]) -> Result<Vec<bool>, StoreError> {
        let mut writing = self.write().await?;
        let strangers = self.held.strangers(calls.iter().copied());
        let foreign = foreign(&mut writing.either(), strangers).await?;
        let own: Vec<Pair> = calls.iter().filter(|call| !foreign.contains(call)).copied().collect();
        let marked = marks(&mut writing.either(), paired!("begin_mark"), &own).await?;
        writing.commit().await?;
        Ok(calls.iter().map(|call| marked.contains(call)).collect())
    }

    /// Claims were renewed, those of `renewed`.
    pub(crate) fn renewed(&self, fences: &[Fence], renewed: &HashSet<Fence>, lease: Duration) {
        self.held.renewed(fences, renewed);
        for fence in renewed {
            self.own.hold(*fence, lease);
        }
    }
}

/// Reports that are written and not yet committed.
pub(super) struct Reports<'a> {
    answers: Vec<Stepped>,
    endings: Vec<Ending<'a>>,
    /// Claims that hold nothing any more.
    over: Vec<Fence>,
}

/// What was picked leaves the ready table, under one lease row.
async fn take(
    writing: &mut Writing,
    queue: &QueueName,
    terms: ClaimTerms,
    work: &[Work],
    suspect: bool,
) -> Result<(), StoreError> {
    let Some(fence) = work.first().map(|work| work.fence) else { return Ok(()) };
    let rows = [column(work, |work| i16::from(work.priority)), column(work, |work| work.id)];
    let mut connection = writing.either();
    connection.execute(sqlite_only!("work_take"), &[queue.as_str().into(), Value::Rows(&rows)]).await?;
    let promised = Promised::of(&terms);
    let ids: Vec<Uuid> = work.iter().map(|work| work.id).collect();
    let values = [
        number(fence).into(),
        queue.as_str().into(),
        terms.node.into(),
        Value::Now,
        micros(terms.lease).into(),
        (terms.marks || suspect).into(),
        suspect.into(),
        promised.guarantee.into(),
        promised.keeps_for.into(),
        promised.travels_for.into(),
        Value::Ids(&ids),
    ];
    connection.execute(sqlite_only!("lease_add"), &values).await?;
    let count = i32::try_from(work.len()).unwrap_or(i32::MAX);
    let queue = queue.as_str();
    add_counts(&mut connection, [(queue, "queued", -count), (queue, "sending", count)]).await
}

/// The message has ended under this claim before, or a rescue took it; a success is evidence even then.
async fn settle_late(
    writing: &mut Writing,
    ending: &Ending<'_>,
    before: Option<&End>,
) -> Result<Stepped, StoreError> {
    let Settlement { id, event, note, .. } = ending.settlement;
    let Some(before) = before else {
        // It was never this claim's: whatever the report says, it says it of another message.
        let message = writing.either().optional(paired!("step_message"), &[(*id).into(), Value::Now]).await?;
        let is_there = message.is_some();
        return Ok(if is_there { Stepped::Refused(Why::StaleFence) } else { Stepped::NoSuchMessage });
    };
    if let Some(state) = ending.again(before) {
        return Ok(Stepped::Now(state));
    }
    let Event::Succeeded { fence } = *event else { return Ok(Stepped::Refused(Why::StaleFence)) };
    let (stepped, _) = step(writing, *id, |_| Event::LateSuccess { fence }, note).await?;
    if matches!(stepped, Stepped::Refused(_)) {
        // It may be this same evidence that stands in the way, whose answer was lost.
        let before = writing.either().optional(shared!("late_find"), &[(*id).into()]).await?;
        return Ok(before.map_or(stepped, |_| Stepped::Now(State::Sent)));
    }
    Ok(stepped)
}
