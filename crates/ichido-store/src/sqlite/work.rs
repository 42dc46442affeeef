//! Claiming, settling and renewing, on SQLite.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use serde_json::json;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::step::{apply, count_add, step};
use super::{Sqlite, Writing};
use crate::columns::{Columns, fence_from, number};
use crate::error::StoreError;
use crate::held::{End, Ending, Ends};
use crate::json;
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::placement::{Moves, Stamp};
use crate::promised::Promised;
use crate::rows::{self, work};
use crate::statement::{Value, paired, shared};

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
        let mut rows = if suspects { pick_suspect(&mut writing, queue, fence).await? } else { Vec::new() };
        let suspect = !rows.is_empty();
        if !suspect {
            rows = pick(&mut writing, queue, count, fence).await?;
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
        let foreign = self.foreign(writing, endings.iter().map(Ending::pair)).await?;
        let held = holders(writing, &endings).await?;
        let Ends { mut ended, proven } = ends(writing, &endings).await?;
        let begun = begun(writing, &endings).await?;
        let mut moves = Moves::default();
        let mut late = Vec::new();
        let mut kept = HashSet::new();
        for ending in &endings {
            match held.get(&ending.fence).filter(|_| !foreign.contains(&ending.pair())) {
                // The mark decides, whatever the holder remembers.
                Some(_)
                    if !ended.contains_key(&ending.pair())
                        && begun.contains(&ending.pair())
                        && !proven.contains(&ending.settlement.id) =>
                {
                    answers[ending.index] = Stepped::Refused(Why::MayHaveBegun);
                    kept.insert(ending.index);
                }
                Some(node) if !ended.contains_key(&ending.pair()) => {
                    let Settlement { state, event, note, claimed_at, .. } = ending.settlement;
                    let stamp = Stamp {
                        fence: Some(ending.fence),
                        claimed_at: Some(*claimed_at),
                        node: Some(*node),
                        now: writing.now,
                    };
                    let is_proven = proven.contains(&ending.settlement.id);
                    let states = if is_proven { ending.proven() } else { ending.states };
                    moves.add(&ending.moving(), *state, *event, states, note, stamp);
                    ended.insert(ending.pair(), End::new(*event, states.0));
                    answers[ending.index] = Stepped::Now(states.1.unwrap_or(states.0));
                }
                _ => late.push(ending),
            }
        }
        apply(writing, &moves).await?;
        let let_go = |ending: &&Ending<'_>| held.contains_key(&ending.fence) && !kept.contains(&ending.index);
        let over = self.held.over(endings.iter().filter(let_go));
        lease_over(writing, over.iter().copied()).await?;
        for ending in late {
            let before = ended.get(&ending.pair());
            answers[ending.index] = settle_late(writing, ending, before).await?;
        }
        endings.retain(|ending| !kept.contains(&ending.index));
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

    /// Of these messages, those that their claims do not hold, as far as the leases tell that are still there.
    async fn foreign(
        &self,
        writing: &mut Writing,
        pairs: impl Iterator<Item = (Uuid, Fence)>,
    ) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
        let mut strangers: HashSet<_> = self.held.strangers(pairs).into_iter().collect();
        if !strangers.is_empty() {
            let fences: HashSet<Fence> = strangers.iter().map(|(_, fence)| *fence).collect();
            let rows = sqlx::query(include_str!("sql/lease_members.sql"))
                .bind(json::text(strangers.iter().map(|(id, fence)| json!([json::id(*id), number(*fence)]))))
                .bind(numbers(fences.into_iter()))
                .fetch_all(writing.connection())
                .await?;
            let members: HashSet<_> = rows.iter().map(of_message).collect::<Result<_, _>>()?;
            strangers.retain(|pair| !members.contains(pair));
        }
        Ok(strangers)
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub(crate) async fn begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        let mut writing = self.write().await?;
        let foreign = self.foreign(&mut writing, calls.iter().copied()).await?;
        let rows = calls
            .iter()
            .filter(|call| !foreign.contains(call))
            .map(|(id, fence)| json!([json::id(*id), number(*fence)]));
        let rows = sqlx::query(include_str!("sql/begin_mark.sql"))
            .bind(json::text(rows))
            .fetch_all(writing.connection())
            .await?;
        let marked: HashSet<(Uuid, Fence)> = rows.iter().map(of_message).collect::<Result<_, _>>()?;
        writing.commit().await?;
        Ok(calls.iter().map(|call| marked.contains(call)).collect())
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let mut writing = self.write().await?;
        let until = writing.now.plus(lease).as_micros();
        let rows = sqlx::query(include_str!("sql/lease_renew.sql"))
            .bind(numbers(fences.iter().copied()))
            .bind(until)
            .fetch_all(writing.connection())
            .await?;
        let renewed: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
        writing.commit().await?;
        self.held.renewed(fences, &renewed);
        for fence in &renewed {
            self.own.hold(*fence, lease);
        }
        Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
    }
}

/// Reports that are written and not yet committed.
pub(super) struct Reports<'a> {
    answers: Vec<Stepped>,
    endings: Vec<Ending<'a>>,
    /// Claims that hold nothing any more.
    over: Vec<Fence>,
}

async fn pick_suspect(
    writing: &mut Writing,
    queue: &QueueName,
    fence: Fence,
) -> Result<Vec<SqliteRow>, StoreError> {
    let now = writing.now.as_micros();
    Ok(sqlx::query(include_str!("sql/work_pick_suspect.sql"))
        .bind(queue.as_str())
        .bind(number(fence))
        .bind(now)
        .fetch_all(writing.connection())
        .await?)
}

async fn pick(
    writing: &mut Writing,
    queue: &QueueName,
    count: NonZeroU32,
    fence: Fence,
) -> Result<Vec<SqliteRow>, StoreError> {
    let now = writing.now.as_micros();
    Ok(sqlx::query(include_str!("sql/work_pick.sql"))
        .bind(queue.as_str())
        .bind(i64::from(count.get().min(limits::CLAIM_MAX)))
        .bind(number(fence))
        .bind(now)
        .fetch_all(writing.connection())
        .await?)
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
    let rows = work.iter().map(|work| json!([work.priority, json::id(work.id)]));
    sqlx::query(include_str!("sql/work_take.sql"))
        .bind(queue.as_str())
        .bind(json::text(rows))
        .execute(writing.connection())
        .await?;
    let (now, promised) = (writing.now, Promised::of(&terms));
    sqlx::query(include_str!("sql/lease_add.sql"))
        .bind(number(fence))
        .bind(queue.as_str())
        .bind(terms.node)
        .bind(now.as_micros())
        .bind(now.plus(terms.lease).as_micros())
        .bind(terms.marks || suspect)
        .bind(suspect)
        .bind(promised.guarantee)
        .bind(promised.keeps_for)
        .bind(promised.travels_for)
        .bind(json::text(work.iter().map(|work| json::id(work.id))))
        .execute(writing.connection())
        .await?;
    let count = i64::try_from(work.len()).unwrap_or(i64::MAX);
    count_add(writing, [(queue.as_str(), "queued", -count), (queue.as_str(), "sending", count)]).await
}

/// The claims of these reports that still stand, and who holds them.
async fn holders(writing: &mut Writing, endings: &[Ending<'_>]) -> Result<HashMap<Fence, Uuid>, StoreError> {
    let fences: HashSet<Fence> = endings.iter().map(|ending| ending.fence).collect();
    let rows = sqlx::query(include_str!("sql/lease_hold.sql"))
        .bind(numbers(fences.into_iter()))
        .fetch_all(writing.connection())
        .await?;
    rows.iter().map(|row| Ok((row.fence()?, row.uuid("node")?))).collect()
}

/// How messages ended under their claims, where they have.
async fn ends(writing: &mut Writing, endings: &[Ending<'_>]) -> Result<Ends, StoreError> {
    let pairs = endings.iter().map(|ending| json!([json::id(ending.settlement.id), number(ending.fence)]));
    let rows = sqlx::query(include_str!("sql/event_find.sql"))
        .bind(json::text(pairs))
        .fetch_all(writing.connection())
        .await?;
    rows::ends(&rows)
}

/// Of messages that are given back, those whose call is marked as begun.
async fn begun(writing: &mut Writing, endings: &[Ending<'_>]) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
    let back = endings.iter().filter(|ending| ending.is_given_back());
    let pairs: Vec<_> =
        back.map(|ending| json!([json::id(ending.settlement.id), number(ending.fence)])).collect();
    if pairs.is_empty() {
        return Ok(HashSet::new());
    }
    let rows = sqlx::query(include_str!("sql/begin_find.sql"))
        .bind(json::text(pairs))
        .fetch_all(writing.connection())
        .await?;
    rows.iter().map(of_message).collect()
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

/// Deletes lease rows, and the marks made under them.
pub(super) async fn lease_over(
    writing: &mut Writing,
    fences: impl Iterator<Item = Fence>,
) -> Result<(), StoreError> {
    let fences: Vec<Fence> = fences.collect();
    if fences.is_empty() {
        return Ok(());
    }
    let fences = numbers(fences.into_iter());
    writing.run(include_str!("sql/lease_unmark.sql"), fences.clone()).await?;
    writing.run(include_str!("sql/lease_over.sql"), fences).await?;
    Ok(())
}

fn numbers(fences: impl Iterator<Item = Fence>) -> String {
    json::text(fences.map(number))
}

fn of_message(row: &SqliteRow) -> Result<(Uuid, Fence), StoreError> {
    Ok((row.uuid("message_id")?, row.fence()?))
}
