//! Natural batching: while one write is in flight, arriving jobs form the next batch.
//!
//! A single caller does not wait: if nothing else is submitted, its write starts at once, in a task of its own and not by way of
//! the stream. Under load batches grow automatically, and one fsync or one round trip serves many callers. If a caller goes away,
//! its job is still done and only its result is dropped.
//!
//! Guarantee: each job is written at least once, or its caller learns that it was not, or that this is unknown. Jobs about one
//! subject are written in the order they came. One write is in flight, and a caller that goes away delays nobody.
//!
//! A batch that fails as a whole moves to a side queue and is split there, so a job that waits for a lock does not delay later
//! jobs. Later jobs about the same subjects queue behind it, which keeps two jobs about one subject in order.
//!
//! Each stream has one write in flight. Two were tried: enqueues and the ledger gained nothing beyond noise, batches became
//! smaller, and two reports about one message could overtake each other.

mod answer;
mod side_queue;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

use self::answer::{Answer, Unanswered};
use self::side_queue::{SideBatch, SideQueue};
use crate::error::StoreError;
use crate::split_retry::{BatchOutcome, or_unknown, write_all, write_whole};
pub use crate::split_retry::{BatchWriter, WriteMode};

/// Limits of a batch and of the queue in front of it.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// The maximum number of jobs in one batch.
    pub max_rows: usize,
    /// The maximum number of bytes in one batch; a single larger job goes alone.
    pub max_bytes: usize,
    /// The maximum number of waiting jobs; beyond it callers wait to submit.
    pub max_waiting: usize,
}

impl BatchLimits {
    /// A thousand jobs or 8 MiB in a batch, and ten thousand waiting jobs.
    pub const DEFAULT: Self = Self { max_rows: 1_000, max_bytes: 8 << 20, max_waiting: 10_000 };

    /// Splits jobs that were submitted together into batches.
    pub(crate) fn parts<'a, J>(&self, jobs: &'a [J], bytes_of: impl Fn(&J) -> usize) -> Vec<&'a [J]> {
        let mut parts = Vec::new();
        let mut begin = 0;
        let mut bytes = 0_usize;
        for (index, job) in jobs.iter().enumerate() {
            let more = bytes.saturating_add(bytes_of(job));
            if begin < index && (self.max_rows <= index - begin || self.max_bytes < more) {
                parts.push(&jobs[begin..index]);
                begin = index;
                bytes = bytes_of(job);
            } else {
                bytes = more;
            }
        }
        if begin < jobs.len() {
            parts.push(&jobs[begin..]);
        }
        parts
    }
}

struct PendingJob<J, R> {
    job: J,
    bytes: usize,
    answer: Answer<R>,
}

/// The entry to a stream of batches.
pub struct Batcher<J, R> {
    jobs: mpsc::Sender<PendingJob<J, Result<R, StoreError>>>,
    unanswered: Unanswered,
    turn: Arc<WriteTurn>,
    /// Writes a job beside the stream, in its own task.
    write_alone: Box<WriteAlone<J, R>>,
}

/// A wait for room among the waiting jobs.
type Room = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

type WriteAlone<J, R> = dyn Fn(PendingJob<J, Result<R, StoreError>>, OwnedMutexGuard<()>) + Send + Sync;

/// The right to write: one write of a stream is in flight.
#[derive(Default)]
struct WriteTurn {
    taken: Arc<Mutex<()>>,
    /// The number of jobs in the last batch.
    last_batch: AtomicUsize,
}

impl WriteTurn {
    /// Takes the turn for a job that is alone, if nobody has it.
    ///
    /// Not after a batch of several: their callers submit again one after another, and the first of them would go alone while
    /// the others wait for its commit.
    fn try_alone(&self) -> Option<OwnedMutexGuard<()>> {
        let was_alone = self.last_batch.load(Ordering::Relaxed) <= 1;
        was_alone.then(|| Arc::clone(&self.taken).try_lock_owned().ok()).flatten()
    }
}

impl<J: Send + Sync + 'static, R: Send + 'static> Batcher<J, R> {
    /// Starts the stream. It ends when the last `Batcher` is dropped and its jobs are done.
    pub fn start<W: BatchWriter<J, R>>(bounds: BatchLimits, writer: Arc<W>) -> Self {
        let (jobs, waiting) = mpsc::channel(bounds.max_waiting);
        let turn = Arc::<WriteTurn>::default();
        let side_queue = Arc::new(SideQueue::start(&writer));
        tokio::spawn(run(bounds, waiting, Arc::clone(&turn), Arc::clone(&writer), Arc::clone(&side_queue)));
        let write_alone = Box::new(move |job, turn| {
            let (writer, side_queue) = (Arc::clone(&writer), Arc::clone(&side_queue));
            tokio::spawn(async move { write_batch(vec![job], turn, &*writer, &side_queue).await });
        });
        Self { jobs, unanswered: Unanswered::default(), turn, write_alone }
    }

    /// Submits a job and returns a future of its result. The future does not hold the job.
    pub fn submit(&self, job: J, bytes: usize) -> impl Future<Output = Result<R, StoreError>> + Send {
        let (answer, answered, is_only) = self.unanswered.add();
        let job = PendingJob { job, bytes, answer };
        let waits = match is_only.then(|| self.turn.try_alone()).flatten() {
            Some(turn) => {
                (self.write_alone)(job, turn);
                Ok(None)
            }
            None => self.join_stream(job),
        };
        async move {
            if let Some(waits) = waits? {
                waits.await?;
            }
            // No result: the write panicked, and how far it got is unknown.
            answered.await.map_err(|_| StoreError::Unknown(sqlx::Error::WorkerCrashed))?
        }
    }

    /// Adds a job to those that wait. Returns a future if there is no room.
    fn join_stream(&self, job: PendingJob<J, Result<R, StoreError>>) -> Result<Option<Room>, StoreError> {
        match self.jobs.try_send(job) {
            Ok(()) => Ok(None),
            Err(TrySendError::Closed(_)) => Err(StoreError::Busy),
            // Few callers wait to submit. Boxed, or every caller's future would reserve the space for it.
            Err(TrySendError::Full(waiting)) => {
                let jobs = self.jobs.clone();
                Ok(Some(Box::pin(async move { jobs.send(waiting).await.map_err(|_| StoreError::Busy) })))
            }
        }
    }
}

async fn run<J: Send + Sync + 'static, R: Send + 'static, W: BatchWriter<J, R>>(
    bounds: BatchLimits,
    mut waiting: mpsc::Receiver<PendingJob<J, Result<R, StoreError>>>,
    turn: Arc<WriteTurn>,
    writer: Arc<W>,
    side_queue: Arc<SideQueue<J, R, W>>,
) {
    let mut carried_over = None;
    loop {
        let first = match carried_over.take() {
            Some(first) => first,
            None => match waiting.recv().await {
                Some(first) => first,
                None => return,
            },
        };
        // A job that went alone may be in flight; those that come meanwhile join this batch.
        let taken = Arc::clone(&turn.taken).lock_owned().await;
        let batch = gather(bounds, first, &mut waiting, &mut carried_over);
        turn.last_batch.store(batch.len(), Ordering::Relaxed);
        let (writer, side_queue) = (Arc::clone(&writer), Arc::clone(&side_queue));
        // In its own task, so a panic ends only this batch, and its callers learn that the result is unknown. One at a time, so
        // two jobs about one subject never overtake each other.
        drop(tokio::spawn(async move { write_batch(batch, taken, &*writer, &side_queue).await }).await);
        // Callers that just got a result may submit again at once. Yielding once lets them all join the next batch.
        tokio::task::yield_now().await;
    }
}

/// Collects the first job and the jobs waiting behind it, up to the limits.
fn gather<J, R>(
    bounds: BatchLimits,
    first: PendingJob<J, R>,
    waiting: &mut mpsc::Receiver<PendingJob<J, R>>,
    carried_over: &mut Option<PendingJob<J, R>>,
) -> Vec<PendingJob<J, R>> {
    let mut bytes = first.bytes;
    let mut batch = vec![first];
    while batch.len() < bounds.max_rows {
        let Ok(next) = waiting.try_recv() else { break };
        if bounds.max_bytes < bytes.saturating_add(next.bytes) {
            *carried_over = Some(next);
            break;
        }
        bytes += next.bytes;
        batch.push(next);
    }
    batch
}

/// Writes one batch and sends the results, or moves it to the side queue. The turn ends before the results are sent: a caller
/// may submit again at once.
async fn write_batch<J: Send + Sync + 'static, R: Send + 'static, W: BatchWriter<J, R>>(
    batch: Vec<PendingJob<J, Result<R, StoreError>>>,
    turn: OwnedMutexGuard<()>,
    writer: &W,
    side_queue: &SideQueue<J, R, W>,
) {
    let (batch, behind) = side_queue.partition(batch);
    if !behind.is_empty() {
        let (jobs, answers) = unzip_jobs(behind);
        queue_aside(side_queue, SideBatch { jobs, answers, tried: None });
    }
    if batch.is_empty() {
        return;
    }
    let (jobs, answers) = unzip_jobs(batch);
    if W::BUSY_FOR_ALL {
        // With a single writer nothing else could proceed meanwhile.
        let results = write_all(writer, &jobs).await;
        drop(turn);
        return send_results(answers, results);
    }
    match write_whole(writer, &jobs).await {
        BatchOutcome::Answered(results) => {
            drop(turn);
            send_results(answers, results);
        }
        BatchOutcome::Split { was_lost } => {
            queue_aside(
                side_queue,
                SideBatch { jobs, answers, tried: Some(side_queue::FailedWhole { was_lost }) },
            );
        }
    }
}

fn queue_aside<J: Send + Sync + 'static, R: Send + 'static, W: BatchWriter<J, R>>(
    side_queue: &SideQueue<J, R, W>,
    batch: SideBatch<J, Result<R, StoreError>>,
) {
    if let Err(SideBatch { answers, tried, .. }) = side_queue.push(batch) {
        let was_lost = tried.is_some_and(|tried| tried.was_lost);
        let busy = answers.iter().map(|_| Err(or_unknown(StoreError::Busy, was_lost))).collect();
        send_results(answers, busy);
    }
}

fn unzip_jobs<J, R>(batch: Vec<PendingJob<J, R>>) -> (Vec<J>, Vec<Answer<R>>) {
    batch.into_iter().map(|waiting| (waiting.job, waiting.answer)).unzip()
}

fn send_results<R>(answers: Vec<Answer<R>>, results: Vec<R>) {
    for (answer, result) in answers.into_iter().zip(results) {
        answer.send(result);
    }
}

#[cfg(test)]
mod tests;
