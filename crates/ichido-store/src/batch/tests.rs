use std::sync::Mutex;

use ichido_core::sync::lock;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::side_queue::MAX_SIDE_BATCHES;
use super::*;
use crate::split_retry::WriteMode;

/// A database in which even jobs are locked until the gate opens. A batch that is not a part fails at once.
struct GatedWriter(Semaphore);

impl BatchWriter<u32, u32> for GatedWriter {
    const BUSY_FOR_ALL: bool = false;

    /// From a thousand on, an odd job has the same subject as the job before it.
    fn about(job: &u32) -> u64 {
        u64::from(if *job < 1_000 { *job } else { job & !1 })
    }

    async fn write(&self, jobs: &[u32], manner: WriteMode) -> Result<Vec<u32>, StoreError> {
        if jobs.iter().any(|job| job.is_multiple_of(2)) {
            if !manner.is_part {
                return Err(StoreError::Busy);
            }
            drop(self.0.acquire().await);
        }
        Ok(jobs.to_vec())
    }
}

/// Writes a shared batch of odd jobs: the next job does not go alone then.
async fn sharing(batcher: Batcher<u32, u32>) -> Arc<Batcher<u32, u32>> {
    let jobs: Vec<_> = [1, 3, 5].map(|job| batcher.submit(job, 1)).into_iter().collect();
    for job in jobs {
        job.await.unwrap();
    }
    Arc::new(batcher)
}

/// Measured by results, not by time. The others get results while the locked jobs still wait.
#[tokio::test]
async fn locked_jobs_do_not_block_later_ones() {
    let gate = Arc::new(GatedWriter(Semaphore::new(0)));
    let bounds = BatchLimits { max_rows: 2, ..BatchLimits::DEFAULT };
    let batcher = sharing(Batcher::start(bounds, Arc::clone(&gate))).await;
    let submit = |job: u32| {
        let batcher = Arc::clone(&batcher);
        tokio::spawn(async move { batcher.submit(job, 1).await })
    };
    let held = [submit(0), submit(2)];
    for job in [1, 3, 5] {
        assert_eq!(submit(job).await.unwrap().unwrap(), job);
    }
    assert!(held.iter().all(|held| !held.is_finished()));
    gate.0.add_permits(10);
    for (held, job) in held.into_iter().zip([0, 2]) {
        assert_eq!(held.await.unwrap().unwrap(), job);
    }
}

#[tokio::test]
async fn job_for_a_locked_row_waits_behind_it() {
    let gate = Arc::new(GatedWriter(Semaphore::new(0)));
    let bounds = BatchLimits { max_rows: 2, ..BatchLimits::DEFAULT };
    let batcher = sharing(Batcher::start(bounds, Arc::clone(&gate))).await;
    let submit = |job: u32| {
        let batcher = Arc::clone(&batcher);
        tokio::spawn(async move { batcher.submit(job, 1).await })
    };
    let held = [submit(1_000), submit(1_002), submit(1_001)];
    for job in [1, 3, 5] {
        assert_eq!(submit(job).await.unwrap().unwrap(), job);
    }
    assert!(held.iter().all(|held| !held.is_finished()), "1001 is free, and waits for 1000");
    gate.0.add_permits(10);
    for (held, job) in held.into_iter().zip([1_000, 1_002, 1_001]) {
        assert_eq!(held.await.unwrap().unwrap(), job);
    }
    assert_eq!(submit(1_001).await.unwrap().unwrap(), 1_001, "nothing is aside any more");
}

#[tokio::test]
async fn too_many_locked_jobs_return_busy() {
    let gate = Arc::new(GatedWriter(Semaphore::new(0)));
    let bounds = BatchLimits { max_rows: 2, ..BatchLimits::DEFAULT };
    let batcher = sharing(Batcher::start(bounds, Arc::clone(&gate))).await;
    let mut answers: Vec<_> = (0..100)
        .map(|job| {
            let batcher = Arc::clone(&batcher);
            tokio::spawn(async move { batcher.submit(job * 2, 1).await })
        })
        .collect();
    // One batch is being split, the side queue is full, and all others get `Busy`.
    let kept = 2 * (MAX_SIDE_BATCHES + 1);
    while answers.iter().filter(|answer| answer.is_finished()).count() < 100 - kept {
        tokio::task::yield_now().await;
    }
    gate.0.add_permits(200);
    let mut busy = 0;
    for answer in answers.drain(..) {
        busy += usize::from(matches!(answer.await.unwrap(), Err(StoreError::Busy)));
    }
    assert_eq!(busy, 100 - kept);
}

/// A database that notes the size of each batch, and writes it when the gate opens.
struct NotingWriter {
    sizes: Mutex<Vec<usize>>,
    gate: Semaphore,
}

impl NotingWriter {
    fn with_gate(permits: usize) -> Arc<Self> {
        Arc::new(Self { sizes: Mutex::default(), gate: Semaphore::new(permits) })
    }
}

impl BatchWriter<u32, u32> for NotingWriter {
    const BUSY_FOR_ALL: bool = false;

    async fn write(&self, jobs: &[u32], _manner: WriteMode) -> Result<Vec<u32>, StoreError> {
        lock(&self.sizes).push(jobs.len());
        self.gate.acquire().await.unwrap().forget();
        Ok(jobs.to_vec())
    }
}

#[tokio::test]
async fn a_lone_job_does_not_pass_through_the_stream() {
    let writer = NotingWriter::with_gate(3);
    let batcher = Batcher::start(BatchLimits::DEFAULT, Arc::clone(&writer));
    tokio::task::yield_now().await;
    let alive = || Handle::current().metrics().num_alive_tasks();
    let tasks = alive();
    for job in 0..3 {
        let result = batcher.submit(job, 1);
        assert_eq!(alive(), tasks + 1, "the stream has not run yet, and the write has its task");
        assert_eq!(result.await.unwrap(), job);
    }
    assert_eq!(*lock(&writer.sizes), [1, 1, 1]);
}

#[tokio::test]
async fn jobs_that_come_during_a_write_share_the_next_one() {
    let writer = NotingWriter::with_gate(0);
    let batcher = Batcher::start(BatchLimits::DEFAULT, Arc::clone(&writer));
    let first: Vec<_> = (0..4).map(|job| batcher.submit(job, 1)).collect();
    writer.gate.add_permits(10);
    for result in first {
        result.await.unwrap();
    }
    // Nothing is in flight now. After a batch of several, the first caller does not go alone.
    let then: Vec<_> = (0..3).map(|job| batcher.submit(job, 1)).collect();
    for result in then {
        result.await.unwrap();
    }
    assert_eq!(*lock(&writer.sizes), [1, 3, 3]);
}

/// A caller may hold a future without polling it, as in `select!`.
#[tokio::test]
async fn a_lone_job_is_written_although_nobody_awaits_it() {
    let writer = NotingWriter::with_gate(2);
    let batcher = Batcher::start(BatchLimits::DEFAULT, Arc::clone(&writer));
    let held = batcher.submit(1, 1);
    assert_eq!(batcher.submit(2, 1).await.unwrap(), 2);
    assert_eq!(held.await.unwrap(), 1);
    drop(batcher.submit(3, 1));
    writer.gate.add_permits(1);
    while lock(&writer.sizes).len() < 3 {
        tokio::task::yield_now().await;
    }
}
