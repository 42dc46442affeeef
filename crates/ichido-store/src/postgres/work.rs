//! Claiming, settling and renewing, on PostgreSQL.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Event, State, Why};
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
use super::step::apply;
use crate::alone::Manner;
use crate::columns::{Columns, number, small};
use crate::error::StoreError;
use crate::held::{Ending, Ends, lock};
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::micros;
use crate::moment::Moment;
use crate::placement::{Moves, Stamp};
use crate::promised::Promised;
use crate::rows::{self, work};
use crate::statement::shared;

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
                None => self.settle_late(lines, ending).await?,
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
        let mut strangers: HashSet<_> = self.held.strangers(pairs).into_iter().collect();
        if !strangers.is_empty() {
            let rows = lines
                .all(
                    sqlx::query(include_str!("sql/lease_members.sql"))
                        .bind(strangers.iter().map(|(id, _)| *id).collect::<Vec<_>>())
                        .bind(strangers.iter().map(|(_, fence)| number(*fence)).collect::<Vec<_>>()),
                )
                .await?;
            let members = of_messages(&rows)?;
            strangers.retain(|pair| !members.contains(pair));
        }
        Ok(strangers)
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
                let stand = of_messages(&lines.all(reporting(include_str!("sql/settle_sent.sql"))).await?)?;
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
        let rows = sqlx::query(include_str!("sql/lease_hold.sql"))
            .bind(fences(endings))
            .bind(self.skew())
            .fetch_all(&mut *transaction)
            .await?;
        let held: HashMap<Fence, (Uuid, Timestamp)> = rows
            .iter()
            .map(|row| Ok((row.fence()?, (row.uuid("node")?, row.moment("now")?))))
            .collect::<Result<_, sqlx::Error>>()?;
        let Ends { ended, proven } = ends(&mut transaction, endings).await?;
        let mut ended: HashSet<(Uuid, Fence)> = ended.into_keys().collect();
        let back = endings.iter().filter(|ending| {
            ending.is_given_back() && held.contains_key(&ending.fence) && !ended.contains(&ending.pair())
        });
        let is_proven = |ending: &Ending<'_>| proven.contains(&ending.settlement.id);
        let never_begun = never_begin(&mut transaction, back).await?;
        let mut moves = Moves::default();
        let mut settled = HashMap::new();
        for ending in endings {
            let Some((node, now)) = held.get(&ending.fence) else { continue };
            if ended.contains(&ending.pair()) {
                continue;
            }
            if ending.is_given_back() && !never_begun.contains(&ending.pair()) && !is_proven(ending) {
                settled.insert(ending.index, Stepped::Refused(Why::MayHaveBegun));
            } else {
                let claimed_at = Some(ending.settlement.claimed_at);
                let stamp = Stamp { fence: Some(ending.fence), claimed_at, node: Some(*node), now: *now };
                let Settlement { state, event, note, .. } = ending.settlement;
                let states = if is_proven(ending) { ending.proven() } else { ending.states };
                moves.add(&ending.moving(), *state, *event, states, note, stamp);
                ended.insert(ending.pair());
                settled.insert(ending.index, Stepped::Now(states.1.unwrap_or(states.0)));
            }
        }
        apply(&mut transaction, &moves, self.skew()).await?;
        // What was refused is still held.
        let let_go = || endings.iter().filter(|ending| !is_refused(settled.get(&ending.index)));
        let over = self.held.over(let_go().filter(|ending| held.contains_key(&ending.fence)));
        sqlx::query(include_str!("sql/lease_over.sql"))
            .bind(over.into_iter().map(number).collect::<Vec<_>>())
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.held.let_go(let_go());
        // What can be claimed again has its old place, which is behind the mark.
        for ending in endings.iter().filter(|ending| matches!(ending.last(), State::Queued { .. })) {
            self.marked(&ending.settlement.queue, Mark::look_soon);
        }
        Ok(settled)
    }

    /// The message has ended under this claim before, or a rescue took it; a success is evidence even then.
    async fn settle_late(&self, lines: &Lines, ending: &Ending<'_>) -> Result<Stepped, StoreError> {
        let looking =
            async |connection: &mut PgConnection| ends(connection, std::slice::from_ref(ending)).await;
        let mut ends = lines.talk(looking).await?;
        let Settlement { id, event, note, .. } = ending.settlement;
        let Some(before) = ends.ended.remove(&ending.pair()) else {
            // It was never this claim's: whatever the report says, it says it of another message.
            let message = sqlx::query(include_str!("sql/step_message.sql")).bind(id).bind(self.skew());
            let is_there = lines.optional(message).await?.is_some();
            return Ok(if is_there { Stepped::Refused(Why::StaleFence) } else { Stepped::NoSuchMessage });
        };
        if let Some(state) = ending.again(&before) {
            return Ok(Stepped::Now(state));
        }
        let Event::Succeeded { fence } = *event else { return Ok(Stepped::Refused(Why::StaleFence)) };
        let evidence = |_| Event::LateSuccess { fence };
        let stepping =
            async |connection: &mut PgConnection| self.step_over(connection, *id, evidence, note).await;
        let (stepped, _) = lines.talk(stepping).await?;
        if matches!(stepped, Stepped::Refused(_)) {
            // It may be this same evidence that stands in the way, whose answer was lost.
            let looking = async |connection: &mut PgConnection| {
                self.connection(connection).optional(shared!("late_find"), &[(*id).into()]).await
            };
            let before = lines.talk(looking).await?;
            return Ok(before.map_or(stepped, |_| Stepped::Now(State::Sent)));
        }
        Ok(stepped)
    }

    /// Marks that these calls are about to begin; answers which of them may.
    pub(crate) async fn begin(&self, calls: &[(Uuid, Fence)]) -> Result<Vec<bool>, StoreError> {
        let foreign = self.foreign(&self.calls, calls.iter().copied()).await?;
        // Sorted, so that two batches with the same ones do not meet crosswise.
        let sorted: BTreeSet<(Uuid, Fence)> =
            calls.iter().filter(|call| !foreign.contains(call)).copied().collect();
        let mut may = self.marks(include_str!("sql/begin_mark.sql"), &sorted).await?;
        if may.len() < sorted.len() {
            may.extend(self.marks(include_str!("sql/begin_find.sql"), &sorted).await?);
        }
        Ok(calls.iter().map(|call| may.contains(call)).collect())
    }

    async fn marks(
        &self,
        sql: &'static str,
        calls: &BTreeSet<(Uuid, Fence)>,
    ) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
        let rows = self
            .calls
            .all(
                sqlx::query(sql)
                    .bind(calls.iter().map(|(id, _)| *id).collect::<Vec<_>>())
                    .bind(calls.iter().map(|(_, fence)| number(*fence)).collect::<Vec<_>>()),
            )
            .await?;
        of_messages(&rows)
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let rows = self
            .calls
            .all(
                sqlx::query(include_str!("sql/lease_renew.sql"))
                    .bind(fences.iter().map(|fence| number(*fence)).collect::<Vec<_>>())
                    .bind(micros(lease))
                    .bind(self.skew()),
            )
            .await?;
        let renewed: HashSet<Fence> = rows.iter().map(Columns::fence).collect::<Result<_, _>>()?;
        self.held.renewed(fences, &renewed);
        Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
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

/// The claims of these reports, each once.
fn fences(endings: &[Ending<'_>]) -> Vec<i64> {
    let fences: BTreeSet<i64> = endings.iter().map(|ending| number(ending.fence)).collect();
    fences.into_iter().collect()
}

/// Of messages that are given back, those whose call was not marked as begun; it can begin no more.
async fn never_begin<'a>(
    connection: &mut PgConnection,
    back: impl Iterator<Item = &'a Ending<'a>>,
) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
    let (ids, fences): (Vec<Uuid>, Vec<i64>) =
        back.map(|ending| (ending.settlement.id, number(ending.fence))).unzip();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let rows =
        sqlx::query(include_str!("sql/begin_never.sql")).bind(ids).bind(fences).fetch_all(connection).await?;
    of_messages(&rows)
}

/// How messages ended under their claims, where they have.
async fn ends(connection: &mut PgConnection, endings: &[Ending<'_>]) -> Result<Ends, StoreError> {
    let rows = sqlx::query(include_str!("sql/event_find.sql"))
        .bind(endings.iter().map(|ending| ending.settlement.id).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| number(ending.fence)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    rows::ends(&rows)
}

fn of_message(row: &PgRow) -> Result<(Uuid, Fence), StoreError> {
    Ok((row.uuid("message_id")?, row.fence()?))
}

fn of_messages(rows: &[PgRow]) -> Result<HashSet<(Uuid, Fence)>, StoreError> {
    rows.iter().map(of_message).collect()
}

fn is_refused(stepped: Option<&Stepped>) -> bool {
    matches!(stepped, Some(Stepped::Refused(_)))
}

pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
