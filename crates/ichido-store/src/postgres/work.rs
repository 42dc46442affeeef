//! Claiming, settling and renewing, on PostgreSQL.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::time::Duration;

use ichido_core::digest::Digest;
use ichido_core::fence::Fence;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Begun, Doubt, Event, History, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::ErrorCode;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};
use tokio::time::Instant;
use uuid::Uuid;

use super::ledger::{fence, fence_from, number};
use super::moment::Moment;
use super::step::apply;
use super::{Postgres, lock, micros};
use crate::error::StoreError;
use crate::message::{ClaimTerms, QueueName, Settlement, Stepped, Work, limits};
use crate::placement::{Moves, Moving, Stamp, kind};

/// How long a claim may start behind its mark before it looks from the beginning again: what was committed late, requeued or
/// promoted is behind it.
const RESCAN_AFTER: Duration = Duration::from_millis(100);

/// The most messages that one claim takes.
const CLAIM_MAX: NonZeroU32 = NonZeroU32::new(limits::CLAIM_MAX).expect("not zero");

/// Where the last claim of a queue ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    priority: i16,
    message_id: Uuid,
    /// When the queue was last looked at from the beginning.
    scanned: Instant,
}

impl Mark {
    fn beginning(scanned: Instant) -> Self {
        Self { priority: i16::MIN, message_id: Uuid::nil(), scanned }
    }
}

impl Postgres {
    /// Takes up to `count` messages, or one suspect alone.
    pub(crate) async fn claim(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
    ) -> Result<Vec<Work>, StoreError> {
        let count = count.min(CLAIM_MAX);
        let now = Instant::now();
        let mark = match lock(&self.marks).get(queue) {
            Some(mark) if now.duration_since(mark.scanned) < RESCAN_AFTER => *mark,
            _ => Mark::beginning(now),
        };
        let from_the_beginning = mark.scanned == now;
        if from_the_beginning {
            let suspect = self.claim_suspect(queue, terms).await?;
            if !suspect.is_empty() {
                return Ok(suspect);
            }
        }
        let work = self.claim_behind(queue, count, terms, mark).await?;
        let short = work.len() < count.get() as usize;
        if short && !from_the_beginning {
            // The end is reached; what is left may be before the mark.
            lock(&self.marks).remove(queue);
            if work.is_empty() {
                return Box::pin(self.claim(queue, count, terms)).await;
            }
        } else if let Some(last) = work.last() {
            let mark = Mark { priority: i16::from(last.priority), message_id: last.id, ..mark };
            lock(&self.marks).insert(queue.clone(), mark);
        }
        Ok(work)
    }

    async fn claim_behind(
        &self,
        queue: &QueueName,
        count: NonZeroU32,
        terms: ClaimTerms,
        mark: Mark,
    ) -> Result<Vec<Work>, StoreError> {
        let rows = sqlx::query(include_str!("sql/work_claim.sql"))
            .bind(queue.as_str())
            .bind(terms.node)
            .bind(mark.priority)
            .bind(mark.message_id)
            .bind(i64::from(count.get()))
            .bind(micros(terms.lease))
            .bind(terms.marks)
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        self.claimed(queue, terms, &rows)
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
        if let Some(first) = work.first() {
            lock(&self.held).insert(first.fence, work.iter().map(|work| work.id).collect());
        }
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

    /// The claims that hold nothing any more once these messages have ended.
    fn over<'a>(&self, endings: impl Iterator<Item = &'a Ending<'a>>) -> Vec<i64> {
        let mut ids: HashMap<Fence, HashSet<Uuid>> = HashMap::new();
        for ending in endings {
            ids.entry(ending.fence).or_default().insert(ending.settlement.id);
        }
        let held = lock(&self.held);
        ids.iter()
            .filter(|(fence, ids)| held.get(fence).is_some_and(|held| held.is_subset(ids)))
            .map(|(fence, _)| number(*fence))
            .collect()
    }

    /// Remembers that these messages have ended, or have gone with their claim.
    fn let_go(&self, endings: &[Ending<'_>]) {
        let mut held = lock(&self.held);
        for ending in endings {
            if let Some(ids) = held.get_mut(&ending.fence) {
                ids.remove(&ending.settlement.id);
                if ids.is_empty() {
                    held.remove(&ending.fence);
                }
            }
        }
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
            .bind(notes().map(|note| status(note.status)).collect::<Vec<_>>())
            .bind(
                notes()
                    .map(|note| note.result_digest.map(|digest| digest.as_bytes().to_vec()))
                    .collect::<Vec<_>>(),
            )
            .bind(notes().map(|note| note.receipt.as_deref()).collect::<Vec<_>>())
            .bind(fences(endings))
            .bind(self.over(these()))
            .bind(self.skew())
            .bind(notes().map(|note| note.code.map(ErrorCode::as_str)).collect::<Vec<_>>())
            .bind(notes().map(|note| note.excerpt.as_deref()).collect::<Vec<_>>())
            .fetch_all(self.pool())
            .await?;
        self.let_go(endings);
        let stands: HashSet<(Uuid, i64)> = rows
            .iter()
            .map(|row| Ok::<_, sqlx::Error>((row.try_get("message_id")?, row.try_get("fence")?)))
            .collect::<Result<_, _>>()?;
        Ok(these().filter(|ending| stands.contains(&ending.pair())).map(|ending| ending.index).collect())
    }

    /// Writes the failures and what was given back; answers which of them stand.
    async fn settle_others(&self, endings: &[Ending<'_>]) -> Result<HashSet<usize>, StoreError> {
        if endings.is_empty() {
            return Ok(HashSet::new());
        }
        let mut transaction = self.pool().begin().await?;
        let rows = sqlx::query(include_str!("sql/lease_hold.sql"))
            .bind(fences(endings))
            .bind(self.skew())
            .fetch_all(&mut *transaction)
            .await?;
        let held: HashMap<i64, (Uuid, Timestamp)> = rows
            .iter()
            .map(|row| {
                let now = row.try_get::<Moment, _>("now")?.0;
                Ok::<_, sqlx::Error>((row.try_get("fence")?, (row.try_get("node")?, now)))
            })
            .collect::<Result<_, _>>()?;
        let mut ended: HashSet<(Uuid, i64)> = ends(&mut transaction, endings).await?.into_keys().collect();
        let mut moves = Moves::default();
        let mut stands = HashSet::new();
        for ending in endings {
            let Some((node, now)) = held.get(&number(ending.fence)) else { continue };
            if ended.insert(ending.pair()) {
                let claimed_at = Some(ending.settlement.claimed_at);
                let stamp = Stamp { fence: Some(ending.fence), claimed_at, node: Some(*node), now: *now };
                let Settlement { state, event, note, .. } = ending.settlement;
                moves.add(&moving(ending.settlement), *state, *event, ending.states, note, stamp);
                stands.insert(ending.index);
            }
        }
        apply(&mut transaction, &moves, self.skew()).await?;
        sqlx::query(include_str!("sql/lease_over.sql"))
            .bind(self.over(endings.iter().filter(|ending| held.contains_key(&number(ending.fence)))))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.let_go(endings);
        Ok(stands)
    }

    /// The message has ended under this claim before, or a rescue took it; a success is evidence even then.
    async fn settle_late(&self, ending: &Ending<'_>) -> Result<Stepped, StoreError> {
        let mut connection = self.pool().acquire().await?;
        let before = ends(&mut connection, std::slice::from_ref(ending)).await?.remove(&ending.pair());
        drop(connection);
        let Settlement { id, event, note, .. } = ending.settlement;
        if before.is_some_and(|(kind_before, to)| kind_before == kind(*event) && to == ending.states.0.name())
        {
            return Ok(Stepped::Now(ending.last()));
        }
        match event {
            Event::Succeeded { fence } => {
                self.step(*id, |_| Event::LateSuccess { fence: *fence }, note).await
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
        let marked: HashSet<(Uuid, i64)> = rows
            .iter()
            .map(|row| Ok::<_, sqlx::Error>((row.try_get("message_id")?, row.try_get("fence")?)))
            .collect::<Result<_, _>>()?;
        Ok(calls.iter().map(|(id, fence)| marked.contains(&(*id, number(*fence)))).collect())
    }

    /// Prolongs claims; answers which of them still stand.
    pub(crate) async fn renew(&self, fences: &[Fence], lease: Duration) -> Result<Vec<bool>, StoreError> {
        let rows = sqlx::query(include_str!("sql/lease_renew.sql"))
            .bind(fences.iter().map(|fence| number(*fence)).collect::<Vec<_>>())
            .bind(micros(lease))
            .bind(self.skew())
            .fetch_all(self.pool())
            .await?;
        let renewed: HashSet<Fence> = rows.iter().map(fence).collect::<Result<_, _>>()?;
        // A claim that was rescued is no longer ours to end.
        lock(&self.held).retain(|fence, _| renewed.contains(fence) || !fences.contains(fence));
        Ok(fences.iter().map(|fence| renewed.contains(fence)).collect())
    }
}

/// A report of a message's holder, with what it comes to.
struct Ending<'a> {
    /// Its place among the reports.
    index: usize,
    settlement: &'a Settlement,
    fence: Fence,
    history: History,
    states: (State, Option<State>),
}

impl<'a> Ending<'a> {
    fn of(index: usize, settlement: &'a Settlement) -> Result<Self, Why> {
        let State::Sending { fence, history, .. } = settlement.state else {
            return Err(Why::StaleFence);
        };
        match settlement.state.advance(settlement.event, settlement.claimed_at) {
            // A call that begins has not ended.
            Ok((State::Sending { .. }, _)) => Err(Why::NotFromHere),
            Ok(states) => Ok(Self { index, settlement, fence, history, states }),
            Err(illegal) => Err(illegal.why),
        }
    }

    fn last(&self) -> State {
        self.states.1.unwrap_or(self.states.0)
    }

    fn pair(&self) -> (Uuid, i64) {
        (self.settlement.id, number(self.fence))
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
) -> Result<HashMap<(Uuid, i64), (String, String)>, StoreError> {
    let rows = sqlx::query(include_str!("sql/event_find.sql"))
        .bind(endings.iter().map(|ending| ending.settlement.id).collect::<Vec<_>>())
        .bind(endings.iter().map(|ending| number(ending.fence)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            let pair = (row.try_get("message_id")?, row.try_get("fence")?);
            Ok((pair, (row.try_get("kind")?, row.try_get("to_state")?)))
        })
        .collect()
}

pub(super) fn moving(settlement: &Settlement) -> Moving {
    Moving { id: settlement.id, queue: settlement.queue.clone(), priority: settlement.priority }
}

pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(super) fn status(status: Option<u16>) -> Option<i16> {
    status.map(|status| i16::try_from(status).unwrap_or(i16::MAX))
}

/// What has been tried, from the columns that every moving row has.
pub(super) fn history_of(row: &PgRow, tries_allowed: i32) -> Result<History, StoreError> {
    let corrupt = |detail: &str| StoreError::Corrupt { table: "messages", detail: detail.to_owned() };
    let positive = |column: &str| -> Result<u32, StoreError> {
        u32::try_from(row.try_get::<i32, _>(column)?).map_err(|_| corrupt("a count is negative"))
    };
    let moment = |column: &str| -> Result<_, sqlx::Error> {
        Ok(row.try_get::<Option<Moment>, _>(column)?.map(|moment| moment.0))
    };
    Ok(History {
        tries: positive("tries")?,
        tries_allowed: u32::try_from(tries_allowed)
            .ok()
            .and_then(NonZeroU32::new)
            .ok_or_else(|| corrupt("no try is allowed"))?,
        deaths: positive("deaths")?,
        suspect: row.try_get("suspect")?,
        doubt: match (moment("doubt_since")?, moment("travels_until")?) {
            (Some(since), Some(travels_until)) => Some(Doubt { since, travels_until }),
            (None, None) => None,
            _ => return Err(corrupt("a doubt has one of its moments only")),
        },
        last_fence: row.try_get::<Option<i64>, _>("last_fence")?.map(fence_from).transpose()?,
    })
}

fn work(queue: &QueueName, terms: ClaimTerms, row: &PgRow) -> Result<Work, StoreError> {
    let corrupt = |detail: String| StoreError::Corrupt { table: "messages", detail };
    let fence = fence(row)?;
    let before = history_of(row, row.try_get("tries_allowed")?)?;
    let digest: [u8; 32] = row
        .try_get::<&[u8], _>("digest")?
        .try_into()
        .map_err(|_| corrupt("a digest is not 32 bytes long".to_owned()))?;
    Ok(Work {
        id: row.try_get("id")?,
        queue: queue.clone(),
        identity: row.try_get("identity")?,
        key: IdempotencyKey::parse(row.try_get("key")?).map_err(|error| corrupt(error.to_string()))?,
        content_type: row.try_get("content_type")?,
        request: row.try_get("request")?,
        digest: Digest::from_bytes(digest),
        trace: row.try_get("trace")?,
        priority: u8::try_from(row.try_get::<i16, _>("priority")?).unwrap_or(u8::MAX),
        created_at: row.try_get::<Moment, _>("created_at")?.0,
        claimed_at: row.try_get::<Moment, _>("claimed_at")?.0,
        fence,
        begun: if terms.marks { Begun::NotYet } else { Begun::NotTracked },
        history: History { tries: before.tries.saturating_add(1), last_fence: Some(fence), ..before },
    })
}
