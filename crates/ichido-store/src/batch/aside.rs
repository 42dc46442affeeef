//! Batches that were put aside: taken apart one after another, beside the stream that they came from.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use ichido_core::sync::lock;
use tokio::sync::{mpsc, oneshot};

use super::{Waiting, answer_all};
use crate::alone::{Write, write_all, write_apart};
use crate::error::StoreError;

/// Batches that may wait aside; beyond it their callers are told that the store is busy.
pub(super) const ASIDE_MAX: usize = 8;

/// What a caller is told.
type Answer<R> = Result<R, StoreError>;

/// Jobs that came together.
type Batch<J, R> = Vec<Waiting<J, Answer<R>>>;

/// A batch that waits to be written beside the stream.
pub(super) struct Aside<J, R> {
    pub(super) jobs: Vec<J>,
    pub(super) answers: Vec<oneshot::Sender<R>>,
    /// As a whole, and it failed; or not yet, because it is about what another batch aside is about.
    pub(super) tried: Option<Tried>,
}

pub(super) struct Tried {
    /// Whether it may have been done nevertheless.
    pub(super) was_lost: bool,
}

/// The way aside, and what the batches there are about.
pub(super) struct PutAside<J, R, W> {
    batches: mpsc::Sender<Aside<J, Result<R, StoreError>>>,
    things: Arc<Things>,
    writer: PhantomData<fn() -> W>,
}

/// How many jobs aside are about each thing.
#[derive(Default)]
struct Things(Mutex<HashMap<u64, usize>>);

impl<J: Send + Sync + 'static, R: Send + 'static, W: Write<J, R>> PutAside<J, R, W> {
    pub(super) fn start(writer: &Arc<W>) -> Self {
        let (batches, put_aside) = mpsc::channel(ASIDE_MAX);
        let things = Arc::<Things>::default();
        tokio::spawn(run(put_aside, Arc::clone(&things), Arc::clone(writer)));
        Self { batches, things, writer: PhantomData }
    }

    /// Parts a batch into what may be written now, and what is about something that waits aside.
    pub(super) fn part(&self, batch: Batch<J, R>) -> (Batch<J, R>, Batch<J, R>) {
        let things = lock(&self.things.0);
        if things.is_empty() {
            return (batch, Vec::new());
        }
        batch.into_iter().partition(|waiting| !things.contains_key(&W::about(&waiting.job)))
    }

    /// Puts a batch aside, or gives it back where too much waits there.
    pub(super) fn put(&self, batch: Aside<J, Answer<R>>) -> Result<(), Aside<J, Answer<R>>> {
        let about: Vec<u64> = batch.jobs.iter().map(W::about).collect();
        self.things.add(&about);
        self.batches.try_send(batch).map_err(|full| {
            self.things.remove(&about);
            full.into_inner()
        })
    }
}

/// Writes the batches that were put aside, one at a time.
async fn run<J: Send + Sync + 'static, R: Send + 'static, W: Write<J, R>>(
    mut put_aside: mpsc::Receiver<Aside<J, Answer<R>>>,
    things: Arc<Things>,
    writer: Arc<W>,
) {
    while let Some(Aside { jobs, answers, tried }) = put_aside.recv().await {
        let about: Vec<u64> = jobs.iter().map(W::about).collect();
        let writer = Arc::clone(&writer);
        // A task of its own, so that a panic in it ends this batch alone.
        let written = tokio::spawn(async move {
            match tried {
                Some(Tried { was_lost }) => write_apart(&*writer, &jobs, was_lost).await,
                None => write_all(&*writer, &jobs).await,
            }
        });
        let results = written.await;
        // Before they are answered: whoever comes again then is not sent behind what is over.
        things.remove(&about);
        if let Ok(results) = results {
            answer_all(answers, results);
        }
    }
}

impl Things {
    fn add(&self, about: &[u64]) {
        let mut things = lock(&self.0);
        for thing in about {
            *things.entry(*thing).or_default() += 1;
        }
    }

    fn remove(&self, about: &[u64]) {
        let mut things = lock(&self.0);
        for thing in about {
            if let Some(count) = things.get_mut(thing) {
                *count -= 1;
                if *count == 0 {
                    things.remove(thing);
                }
            }
        }
    }
}
