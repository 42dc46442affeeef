//! Claiming, settling and renewing, on PostgreSQL.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use tokio::time::Instant;
use uuid::Uuid;

use super::Postgres;
use super::mark::{BEGINNING, Mark, Place};
use super::moment::Moment;
use super::step::apply;
use crate::columns::{Columns, number, small};
use crate::error::StoreError;
use crate::held::{End, Ending, lock};
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::micros;
use crate::placement::{Moves, Stamp};
use crate::rows::{end, work};

/// How often reports are looked at again when others about the same messages get ahead.
const ROUNDS_MAX: usize = 8;

/// The most messages that one claim takes.
const CLAIM_MAX: NonZeroU32 = NonZeroU32::new(limits::CLAIM_MAX).expect("not zero");

impl Postgres {
    /// Takes up to `count` messages, or one suspect alone.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let count = count.min(CLAIM_MAX);
        let Some(place) = self.marked(queue, |mark| mark.start(Instant::now())) else {
            return self.claim_from_the_beginning(queue, count, terms).await;
        };
        let begun = Instant::now();
        let work = self.claim_behind(queue, count, terms, place).await?;
        if work.is_empty() && self.marked(queue, |mark| mark.look_again(begun)) {
            // The end is reached; what is left may be before the mark.
            return self.claim_from_the_beginning(queue, count, terms).await;
        }
        self.marked(queue, |mark| mark.went_on(begun.elapsed()));
        Ok(work)
    }

    async fn claim_from_the_beginning(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let suspect = self.claim_suspect(queue, terms).await?;
        if !suspect.is_empty() {
            // The next claim asks for the next one.
            self.marked(queue, Mark::look_soon);
            return Ok(suspect);
        }
        let begun = Instant::now();
        let work = self.claim_behind(queue, count, terms, BEGINNING).await?;
        self.marked(queue, |mark| mark.looked(begun.elapsed()));
        Ok(work)
    }

    fn marked<T>(&self, queue: &QueueName, change: impl FnOnce(&mut Mark) -> T) -> T {
        change(lock(&self.marks).entry(queue.clone()).or_default())
    }

    async fn claim_behind(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
        place: Place,
    ) -> Result<Vec<Work>, StoreError> {
        let rows = sqlx::query(include_str!("sql/work_claim.sql"))
            .bind(queue.as_str())
            .bind(terms.node)
            .bind(place.0)
            .bind(place.1)
            .bind(i64::from(count.get()))
            .bind(micros(terms.lease))
            .bind(terms.marks)
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        let work = self.claimed(queue, terms, &rows)?;
        if let Some(last) = work.last() {
            self.marked(queue, |mark| mark.move_to((i16::from(last.priority), last.id)));
        }
        Ok(work)
    }

    async fn claim_suspect(&self, queue: &QueueName, terms: ClaimTerms) -> Result<Vec<Work>, StoreError> {
        let rows = sqlx::query(include_str!("sql/work_claim_suspect.sql"))
            .bind(queue.as_str())
            .bind(terms.node)
            .bind(micros(terms.lease))
            .bind(terms.marks)
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        self.claimed(queue, terms, &rows)
    }

    fn claimed(&self, queue: &QueueName, terms: ClaimTerms, rows: &[PgRow]) -> Result<Vec<Work>, StoreError> {
        let mut work: Vec<Work> = rows.iter().map(|row| work(queue, terms, row)).collect::<Result<_, _>>()?;
        work.sort_unstable_by_key(|work| (work.priority, work.id));
        self.held.claimed(&work);
        Ok(work)
    }

    /// Writes what came of messages. A report that comes again, as after a lost answer, is answered as the first time.
    pub(crate) async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Stepped>, StoreError> {
        let mut answers = vec![None; settlements.len()];
        let mut sent = Vec::new();
        let mut others = Vec::new();
        for (index, settlement) in settlements.iter().enumerate() {
            match Ending::of(index, settlement) {
                Ok(ending) if ending.last() == State::Sent => sent.push(ending),
                Ok(ending) => others.push(ending),
                Err(why) => answers[index] = Some(Stepped::Refused(why)),
            }
        }
        // By message, so that two batches about the same ones do not meet crosswise.
        sent.sort_by_key(Ending::pair);
        others.sort_by_key(Ending::pair);
        let mut stands = self.settle_sent(&sent).await?;
        stands.extend(self.settle_others(&others).await?);
        for ending in sent.iter().chain(&others) {
            answers[ending.index] = Some(if stands.contains(&ending.index) {
                Stepped::Now(ending.last())
            } else {
                self.settle_late(ending).await?
            });
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or(Stepped::NoSuchMessage)).collect())
    }

    /// Writes the successes; answers which of them stand.
    async fn settle_sent(&self, endings: &[Ending<'_>]) -> Result<HashSet<usize>, StoreError> {
        if endings.is_empty() {
            return Ok(HashSet::new());
        }
        let these = || endings.iter();
        let notes = || these().map(|ending| &ending.settlement.note);
        let rows = sqlx::query(include_str!("sql/settle_sent.sql"))
            .bind(these().map(|ending| ending.settlement.id).collect::<Vec<_>>())
            .bind(these().map(|ending| number(ending.fence)).collect::<Vec<_>>())
            .bind(these().map(|ending| Moment(ending.settlement.claimed_at)).collect::<Vec<_>>())
            .bind(these().map(|ending| count(ending.history.tries)).collect::<Vec<_>>())
            .bind(these().map(|ending| count(ending.history.deaths)).collect::<Vec<_>>())
            .bind(notes().map(|note| note.status.map(small)).collect::<Vec<_>>())
            .bind(
                notes()
                    .map(|note| note.result_digest.map(|digest| digest.as_bytes().to_vec()))
                    .collect::<Vec<_>>(),
            )
            .bind(notes().map(|note| note.receipt.as_deref()).collect::<Vec<_>>())
            .bind(fences(endings))
            .bind(self.held.over(these()).into_iter().map(number).collect::<Vec<_>>())
            .bind(self.skew())
            .bind(notes().map(|note| note.code.map(ErrorCode::as_str)).collect::<Vec<_>>())
            .bind(notes().map(|note| note.excerpt.as_deref()).collect::<Vec<_>>())
            .fetch_all(self.pool())
            .await?;
        self.held.let_go(endings);
        let stands: HashSet<(Uuid, Fence)> = rows.iter().map(of_message).collect::<Result<_, _>>()?;
        Ok(these().filter(|ending| stands.contains(&ending.pair())).map(|ending| ending.index).collect())
    }

    /// Writes the failures and what was given back; answers which of them stand.
    async fn settle_others(&self, endings: &[Ending<'_>]) -> Result<HashSet<usize>, StoreError> {
        if endings.is_empty() {
            return Ok(HashSet::new());
        }
        for _ in 0..ROUNDS_MAX {
            match self.settle_unended(endings).await {
                // Another report about one of these came in between and is committed: the next look sees it.
                Err(StoreError::Refused(sqlx::Error::Database(error))) if error.is_unique_violation() => (),
                outcome => return outcome,
            }
        }
        Err(StoreError::Busy)
    }

    async fn settle_unended(&self, endings: &[Ending<'_>]) -> Result<HashSet<usize>, StoreError> {
        let mut transaction = self.pool().begin().await?;
        let rows = sqlx::query(include_str!("sql/lease_hold.sql"))
            .bind(fences(endings))
            .bind(self.skew())
            .fetch_all(&mut *transaction)
            .await?;
        let held: HashMap<Fence, (Uuid, Timestamp)> = rows
            .iter()
            .map(|row| Ok((row.fence()?, (row.uuid("node")?, row.moment("now")?))))
            .collect::<Result<_, sqlx::Error>>()?;
        let mut ended: HashSet<(Uuid, Fence)> = ends(&mut transaction, endings).await?.into_keys().collect();
        let mut moves = Moves::default();
        let mut stands = HashSet::new();
        for ending in endings {
            let Some((node, now)) = held.get(&ending.fence) else { continue };
            if ended.insert(ending.pair()) {
                let claimed_at = Some(ending.settlement.claimed_at);
                let stamp = Stamp { fence: Some(ending.fence), claimed_at, node: Some(*node), now: *now };
                let Settlement { state, event, note, .. } = ending.settlement;
                moves.add(&ending.moving(), *state, *event, ending.states, note, stamp);
                stands.insert(ending.index);
            }
        }
        apply(&mut transaction, &moves, self.skew()).await?;
        let over = self.held.over(endings.iter().filter(|ending| held.contains_key(&ending.fence)));
        sqlx::query(include_str!("sql/lease_over.sql"))
            .bind(over.into_iter().map(number).collect::<Vec<_>>())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.held.let_go(endings);
        Ok(stands)
    }

    /// The message has ended under this claim before, or a rescue took it; a success is evidence even then.
    async fn settle_late(&self, ending: &Ending<'_>) -> Result<Stepped, StoreError> {
        let mut connection = self.pool().acquire().await?;
        let before = ends(&mut connection, std::slice::from_ref(ending)).await?.remove(&ending.pair());
        drop(connection);
        let Settlement { id, event, note, .. } = ending.settlement;
        if before == Some(ending.end()) {
            return Ok(Stepped::Now(ending.last()));
        }
        match event {
            Event::Succeeded { fence } => {
                Ok(self.step(*id, |_| Event::LateSuccess { fence: *fence }, note).await?.0)
            }
            _ => Ok(Stepped::Refused(Why::StaleFence)),
        }
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub(crate) async fn begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        let rows = sqlx::query(include_str!("sql/begin_mark.sql"))
            .bind(calls.iter().map(|(id, _)| *id).collect::<Vec<_>>())
            .bind(calls.iter().map(|(_, fence)| number(*fence)).collect::<Vec<_>>())
            .fetch_all(self.pool())
            .await?;
        let marked: HashSet<(Uuid, Fence)> = rows.iter().map(of_message).collect::<Result<_, _>>()?;
        Ok(calls.iter().map(|call| marked.contains(call)).collect())
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let rows = sqlx::query(include_str!("sql/lease_renew.sql"))
            .bind(fences.iter().map(|fence| number(*fence)).collect::<Vec<_>>())
            .bind(micros(lease))
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        let renewed: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
        self.held.renewed(fences, &renewed);
        Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
    }
}

/// The claims of these reports, each once.
fn fences(endings: &[Ending<'_>]) -> Vec<i64> {
    let fences: BTreeSet<i64> = endings.iter().map(|ending| number(ending.fence)).collect();
    fences.into_iter().collect()
}

/// How messages ended under their claims, where they have: the event and the state it led to.
async fn ends(
    connection: &mut PgConnection,
    endings: &[Ending<'_>],
) -> Result<HashMap<(Uuid, Fence), End>, StoreError> {
    let rows = sqlx::query(include_str!("sql/event_find.sql"))
        .bind(endings.iter().map(|ending| ending.settlement.id).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| number(ending.fence)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| Ok((of_message(row)?, end(row)?))).collect()
}

fn of_message(row: &PgRow) -> Result<(Uuid, Fence), StoreError> {
    Ok((row.uuid("message_id")?, row.fence()?))
}

pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
