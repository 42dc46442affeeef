//! Claiming, settling and renewing, on PostgreSQL.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;
use uuid::Uuid;

use super::Postgres;
use super::line::Lines;
use super::mark::{BEGINNING, Mark, Place};
use crate::alone::Manner;
use crate::columns::{Columns, count, number, small};
use crate::ending::{Pair, ends, fences, foreign, is_refused, lease_over, marks, settle};
use crate::error::StoreError;
use crate::held::Ending;
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::micros;
use crate::moment::Moment;
use crate::moves::apply;
use crate::promised::Promised;
use crate::rows::work;
use crate::statement::{Connection, Value, paired, postgres_only, shared};

/// How often reports are looked at again when others about the same messages get ahead.
const ROUNDS_MAX: usize = 8;

/// The most messages that one claim takes.
const CLAIM_MAX: NonZeroU32 = NonZeroU32::new(limits::CLAIM_MAX).expect("not zero");

impl Postgres {
    /// Takes up to `count` messages, or, where `suspects` are wanted, one of them alone.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
        suspects: bool,
    ) -> Result<Vec<Work>, StoreError> {
        let count = count.min(CLAIM_MAX);
        let Some(place) = self.marked(queue, |mark| mark.start(Instant::now())) else {
            return self.claim_from_the_beginning(queue, count, terms, suspects).await;
        };
        let begun = Instant::now();
        let work = self.claim_behind(queue, count, terms, place).await?;
        self.marked(queue, |mark| mark.went_on(begun.elapsed()));
        if work.is_empty() && self.marked(queue, |mark| mark.look_again(begun)) {
            // The end is reached; what is left may be before the mark.
            return self.claim_from_the_beginning(queue, count, terms, suspects).await;
        }
        Ok(work)
    }

    async fn claim_from_the_beginning(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
        suspects: bool,
    ) -> Result<Vec<Work>, StoreError> {
        let suspect = if suspects { self.claim_suspect(queue, terms).await? } else { Vec::new() };
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

    /// Somebody says that a queue has work.
    pub(crate) fn woken(&self, queue: &QueueName) {
        self.marked(queue, Mark::wake);
    }

    /// A message can be claimed again, which is older than the mark.
    pub(crate) fn came_back(&self, queue: &QueueName) {
        lock(&self.marks).remove(queue);
    }

    /// As after a while with somebody's old snapshot open: the mark is behind all there is, and a look from the beginning is dear.
    #[cfg(test)]
    pub(crate) fn mark_behind(&self, message: &crate::message::NewMessage) {
        self.marked(&message.queue, |mark| *mark = Mark::dear(i16::from(message.priority)));
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
        let promised = Promised::of(&terms);
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/work_claim.sql"))
                    .bind(queue.as_str())
                    .bind(terms.node)
                    .bind(place.0)
                    .bind(place.1)
                    .bind(i64::from(count.get()))
                    .bind(micros(terms.lease))
                    .bind(terms.marks)
                    .bind(self.skew())
                    .bind(promised.guarantee)
                    .bind(promised.keeps_for)
                    .bind(promised.travels_for),
            )
            .await?;
        let work = self.claimed(queue, terms, &rows)?;
        if let Some(last) = work.last() {
            self.marked(queue, |mark| mark.move_to((i16::from(last.priority), last.id)));
        }
        Ok(work)
    }

    async fn claim_suspect(&self, queue: &QueueName, terms: ClaimTerms) -> Result<Vec<Work>, StoreError> {
        let promised = Promised::of(&terms);
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/work_claim_suspect.sql"))
                    .bind(queue.as_str())
                    .bind(terms.node)
                    .bind(micros(terms.lease))
                    .bind(self.skew())
                    .bind(promised.guarantee)
                    .bind(promised.keeps_for)
                    .bind(promised.travels_for),
            )
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
    pub(crate) async fn settle(
        &self,
        settlements: &[Settlement],
        manner: Manner,
    ) -> Result<Vec<Stepped>, StoreError> {
        let lines = self.lines_for(manner);
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
        let foreign = self.foreign(lines, sent.iter().chain(&others).map(Ending::pair)).await?;
        let late: Vec<_> = sent
            .extract_if(.., |ending| foreign.contains(&ending.pair()))
            .chain(others.extract_if(.., |ending| foreign.contains(&ending.pair())))
            .collect();
        let mut settled = self.settle_sent(lines, &sent).await?;
        settled.extend(self.settle_others(lines, &others).await?);
        for ending in sent.iter().chain(&others).chain(&late) {
            answers[ending.index] = Some(match settled.get(&ending.index) {
                Some(stepped) => *stepped,
                None => lines.talk(async |connection| self.settle_late(connection, ending).await).await?,
            });
        }
        Ok(answers.into_iter().map(|answer| answer.unwrap_or(Stepped::NoSuchMessage)).collect())
    }

    /// Of these messages, those that their claims do not hold, as far as the leases tell that are still there.
    async fn foreign(
        &self,
        lines: &Lines,
        pairs: impl Iterator<Item = (Uuid, Fence)>,
    ) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
        let strangers = self.held.strangers(pairs);
        if strangers.is_empty() {
            return Ok(HashSet::new());
        }
        lines.talk(async |connection| foreign(&mut self.connection(connection), strangers).await).await
    }

    /// Writes the successes; answers those that stand, by index.
    async fn settle_sent(
        &self,
        lines: &Lines,
        endings: &[Ending<'_>],
    ) -> Result<HashMap<usize, Stepped>, StoreError> {
        if endings.is_empty() {
            return Ok(HashMap::new());
        }
        let over: Vec<i64> = self.held.over(endings.iter()).into_iter().map(number).collect();
        let reporting = |sql| sent_reports(sql, endings, &over, self.skew());
        // A report comes again only after a lost answer, so a batch is first taken to have none that does.
        let stands = match lines.all(reporting(include_str!("sql/settle_sent_new.sql"))).await {
            Ok(rows) => {
                let stand: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
                endings.iter().filter(|ending| stand.contains(&ending.fence)).collect()
            }
            Err(StoreError::Refused(sqlx::Error::Database(error))) if error.is_unique_violation() => {
                let rows = lines.all(reporting(include_str!("sql/settle_sent.sql"))).await?;
                let stand: HashSet<_> = rows.iter().map(of_message).collect::<Result<_, _>>()?;
                endings.iter().filter(|ending| stand.contains(&ending.pair())).collect::<Vec<_>>()
            }
            Err(error) => return Err(error),
        };
        self.held.let_go(endings.iter());
        Ok(stands.into_iter().map(|ending| (ending.index, Stepped::Now(ending.last()))).collect())
    }

    /// Writes the failures and what was given back; answers what stands and what its mark contradicts, by index.
    async fn settle_others(
        &self,
        lines: &Lines,
        endings: &[Ending<'_>],
    ) -> Result<HashMap<usize, Stepped>, StoreError> {
        if endings.is_empty() {
            return Ok(HashMap::new());
        }
        for _ in 0..ROUNDS_MAX {
            let settling =
                async |connection: &mut PgConnection| self.settle_unended(connection, endings).await;
            match lines.talk(settling).await {
                // Another report about one of these came in between and is committed: the next look sees it.
                Err(StoreError::Refused(sqlx::Error::Database(error))) if error.is_unique_violation() => (),
                outcome => return outcome,
            }
        }
        Err(StoreError::Busy)
    }

    async fn settle_unended(
        &self,
        connection: &mut PgConnection,
        endings: &[Ending<'_>],
    ) -> Result<HashMap<usize, Stepped>, StoreError> {
        let mut transaction = connection.begin().await?;
        let mut connection = self.connection(&mut transaction);
        let values = [Value::Numbers(&fences(endings)), Value::Now];
        let held: HashMap<Fence, (Uuid, Timestamp)> = connection
            .all(paired!("lease_hold"), &values)
            .await?
            .iter()
            .map(|row| Ok((row.fence()?, (row.uuid("node")?, row.moment("now")?))))
            .collect::<Result<_, sqlx::Error>>()?;
        let mut ends = ends(&mut connection, endings).await?;
        let back = endings.iter().filter(|ending| {
            ending.is_given_back()
                && held.contains_key(&ending.fence)
                && !ends.ended.contains_key(&ending.pair())
        });
        let back: Vec<Pair> = back.map(Ending::pair).collect();
        // What is given back can begin no more; what was marked before may have begun.
        let never_begun = match &*back {
            [] => HashSet::new(),
            back => marks(&mut connection, postgres_only!("begin_never"), back).await?,
        };
        let holder = |ending: &Ending<'_>| held.get(&ending.fence).copied();
        let may_have_begun =
            |ending: &Ending<'_>| ending.is_given_back() && !never_begun.contains(&ending.pair());
        let (moves, settled) = settle(endings, &mut ends, holder, may_have_begun);
        apply(&mut connection, &moves).await?;
        // What was refused is still held.
        let let_go = || endings.iter().filter(|ending| !is_refused(&settled, ending));
        let gone = self.held.over(let_go().filter(|ending| held.contains_key(&ending.fence)));
        lease_over(&mut connection, &gone.into_iter().map(number).collect::<Vec<_>>()).await?;
        transaction.commit().await?;
        self.held.let_go(let_go());
        // What can be claimed again has its old place, which is behind the mark.
        for ending in endings.iter().filter(|ending| matches!(ending.last(), State::Queued { .. })) {
            self.marked(&ending.settlement.queue, Mark::look_soon);
        }
        Ok(settled)
    }

    /// The message has ended under this claim before, or a rescue took it; a success is evidence even then.
    async fn settle_late(
        &self,
        connection: &mut PgConnection,
        ending: &Ending<'_>,
    ) -> Result<Stepped, StoreError> {
        let mut ends = ends(&mut self.connection(connection), std::slice::from_ref(ending)).await?;
        let Settlement { id, event, note, .. } = ending.settlement;
        let Some(before) = ends.ended.remove(&ending.pair()) else {
            // It was never this claim's: whatever the report says, it says it of another message.
            let message = [(*id).into(), Value::Now];
            let message = self.connection(connection).optional(paired!("step_message"), &message).await?;
            return Ok(message.map_or(Stepped::NoSuchMessage, |_| Stepped::Refused(Why::StaleFence)));
        };
        if let Some(state) = ending.again(&before) {
            return Ok(Stepped::Now(state));
        }
        let Event::Succeeded { fence } = *event else { return Ok(Stepped::Refused(Why::StaleFence)) };
        let (stepped, _) = self.step_over(connection, *id, |_| Event::LateSuccess { fence }, note).await?;
        if matches!(stepped, Stepped::Refused(_)) {
            // It may be this same evidence that stands in the way, whose answer was lost.
            let before = self.connection(connection).optional(shared!("late_find"), &[(*id).into()]).await?;
            return Ok(before.map_or(stepped, |_| Stepped::Now(State::Sent)));
        }
        Ok(stepped)
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub(crate) async fn begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        let foreign = self.foreign(&self.calls, calls.iter().copied()).await?;
        // Sorted, so that two batches with the same ones do not meet crosswise.
        let sorted: BTreeSet<Pair> = calls.iter().filter(|call| !foreign.contains(call)).copied().collect();
        let sorted: Vec<Pair> = sorted.into_iter().collect();
        let marked = async |mut it: Connection<'_>| marks(&mut it, paired!("begin_mark"), &sorted).await;
        let mut may = self.change(marked).await?;
        if may.len() < sorted.len() {
            let found = async |mut it: Connection<'_>| marks(&mut it, paired!("begin_find"), &sorted).await;
            may.extend(self.change(found).await?);
        }
        Ok(calls.iter().map(|call| may.contains(call)).collect())
    }

    /// Claims were renewed, those of `renewed`.
    pub(crate) fn renewed(&self, fences: &[Fence], renewed: &HashSet<Fence>, _lease: Duration) {
        self.held.renewed(fences, renewed);
    }
}

/// The statement that writes successes, with what it is about.
fn sent_reports<'q>(
    sql: &'static str,
    endings: &'q [Ending<'q>],
    over: &[i64],
    skew: i64,
) -> Query<'q, sqlx::Postgres, PgArguments> {
    let these = || endings.iter();
    let notes = || these().map(|ending| &ending.settlement.note);
    let digests = notes().map(|note| note.result_digest.map(|digest| digest.as_bytes().to_vec()));
    sqlx::query(sql)
        .bind(these().map(|ending| ending.settlement.id).collect::<Vec<_>>())
        .bind(these().map(|ending| number(ending.fence)).collect::<Vec<_>>())
        .bind(these().map(|ending| Moment(ending.settlement.claimed_at)).collect::<Vec<_>>())
        .bind(these().map(|ending| count(ending.history.tries)).collect::<Vec<_>>())
        .bind(these().map(|ending| count(ending.history.deaths)).collect::<Vec<_>>())
        .bind(notes().map(|note| note.status.map(small)).collect::<Vec<_>>())
        .bind(digests.collect::<Vec<_>>())
        .bind(notes().map(|note| note.receipt.as_deref()).collect::<Vec<_>>())
        .bind(fences(endings))
        .bind(over.to_vec())
        .bind(skew)
        .bind(notes().map(|note| note.code.map(ErrorCode::as_str)).collect::<Vec<_>>())
        .bind(notes().map(|note| note.excerpt.as_deref()).collect::<Vec<_>>())
}

fn of_message(row: &PgRow) -> Result<(Uuid, Fence), StoreError> {
    Ok((row.uuid("message_id")?, row.fence()?))
}
