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

/// Measured by results, not by time. The others get results while the locked jobs still wait.
#[tokio::test]
async fn locked_jobs_do_not_block_later_ones() {
    let gate = Arc::new(GatedWriter(Semaphore::new(0)));
    let bounds = BatchLimits { max_rows: 2, ..BatchLimits::DEFAULT };
    let batcher = Arc::new(Batcher::start(bounds, Arc::clone(&gate)));
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
    let batcher = Arc::new(Batcher::start(bounds, Arc::clone(&gate)));
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
    let batcher = Arc::new(Batcher::start(bounds, Arc::clone(&gate)));
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
