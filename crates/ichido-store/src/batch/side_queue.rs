//! Side queue: failed batches, split and written one after another beside their stream.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use tokio::sync::mpsc;

use super::answer::Answer;
use super::{PendingJob, send_results};
use crate::error::StoreError;
use crate::split_retry::{BatchWriter, write_all, write_split};

/// The maximum number of waiting batches; beyond it their callers get `Busy`.
pub(super) const MAX_SIDE_BATCHES: usize = 8;

/// The result that a caller gets.
type JobResult<R> = Result<R, StoreError>;

/// Jobs that came together.
type PendingJobs<J, R> = Vec<PendingJob<J, JobResult<R>>>;

/// A batch that waits to be written beside the stream.
pub(super) struct SideBatch<J, R> {
    pub(super) jobs: Vec<J>,
    pub(super) answers: Vec<Answer<R>>,
    /// Set if the batch was written as a whole and failed. `None` if it waits behind another batch about the same subject.
    pub(super) tried: Option<FailedWhole>,
}

pub(super) struct FailedWhole {
    /// Whether it may have been done anyway.
    pub(super) was_lost: bool,
}

/// Sends batches to the side queue and tracks their subjects.
pub(super) struct SideQueue<J, R, W> {
    batches: mpsc::Sender<SideBatch<J, Result<R, StoreError>>>,
    subjects: Arc<Subjects>,
    writer: PhantomData<fn() -> W>,
}

/// The number of jobs in the side queue, by subject.
#[derive(Default)]
struct Subjects(Mutex<HashMap<u64, usize>>);

impl<J: Send + Sync + 'static, R: Send + 'static, W: BatchWriter<J, R>> SideQueue<J, R, W> {
    pub(super) fn start(writer: &Arc<W>) -> Self {
        let (batches, side_batches) = mpsc::channel(MAX_SIDE_BATCHES);
        let subjects = Arc::<Subjects>::default();
        tokio::spawn(run(side_batches, Arc::clone(&subjects), Arc::clone(writer)));
        Self { batches, subjects, writer: PhantomData }
    }

    /// Separates jobs that may be written now from jobs about a subject in the side queue.
    pub(super) fn partition(&self, batch: PendingJobs<J, R>) -> (PendingJobs<J, R>, PendingJobs<J, R>) {
        let subjects = lock(&self.subjects.0);
        if subjects.is_empty() {
            return (batch, Vec::new());
        }
        batch.into_iter().partition(|waiting| !subjects.contains_key(&W::about(&waiting.job)))
    }

    /// Adds a batch to the side queue, or returns it if the queue is full.
    pub(super) fn push(&self, batch: SideBatch<J, JobResult<R>>) -> Result<(), SideBatch<J, JobResult<R>>> {
        let about: Vec<u64> = batch.jobs.iter().map(W::about).collect();
        self.subjects.add(&about);
        self.batches.try_send(batch).map_err(|full| {
            self.subjects.remove(&about);
            full.into_inner()
        })
    }
}

/// Writes the batches of the side queue, one at a time.
async fn run<J: Send + Sync + 'static, R: Send + 'static, W: BatchWriter<J, R>>(
    mut side_batches: mpsc::Receiver<SideBatch<J, JobResult<R>>>,
    subjects: Arc<Subjects>,
    writer: Arc<W>,
) {
    while let Some(SideBatch { jobs, answers, tried }) = side_batches.recv().await {
        let about: Vec<u64> = jobs.iter().map(W::about).collect();
        let writer = Arc::clone(&writer);
        // In its own task, so a panic ends only this batch.
        let written = tokio::spawn(async move {
            match tried {
                Some(FailedWhole { was_lost }) => write_split(&*writer, &jobs, was_lost).await,
                None => write_all(&*writer, &jobs).await,
            }
        });
        let results = written.await;
        // Before the results are sent: a caller that submits again must not queue behind a finished batch.
        subjects.remove(&about);
        if let Ok(results) = results {
            send_results(answers, results);
        }
    }
}

impl Subjects {
    fn add(&self, about: &[u64]) {
        let mut subjects = lock(&self.0);
        for subject in about {
            *subjects.entry(*subject).or_default() += 1;
        }
    }

    fn remove(&self, about: &[u64]) {
        let mut subjects = lock(&self.0);
        for subject in about {
            if let Some(count) = subjects.get_mut(subject) {
                *count -= 1;
                if *count == 0 {
                    subjects.remove(subject);
                }
            }
        }
    }
}
