use std::sync::Mutex;

use super::*;
use ichido_core::sync::lock;

/// What a job does to its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestJob {
    Plain,
    /// Somebody else has locked its row.
    Locked,
    /// It breaks the connection.
    Breaking,
    Refused,
}
use TestJob::{Breaking, Locked, Plain, Refused};

/// A database that behaves as its jobs say, and records how it was written to.
#[derive(Default)]
struct FakeDatabase {
    /// How many of the first writes lose their answer, whatever they contain.
    loses: Mutex<u32>,
    is_unreachable: bool,
    writes: Mutex<Vec<(usize, WriteMode)>>,
}

impl BatchWriter<TestJob, bool> for FakeDatabase {
    const BUSY_FOR_ALL: bool = false;

    /// Returns, for each job, whether the write was a retry.
    async fn write(&self, jobs: &[TestJob], manner: WriteMode) -> Result<Vec<bool>, StoreError> {
        lock(&self.writes).push((jobs.len(), manner));
        let mut loses = lock(&self.loses);
        if self.is_unreachable && *loses == 0 {
            return Err(StoreError::Unavailable(sqlx::Error::PoolTimedOut));
        }
        if *loses > 0 || jobs.contains(&Breaking) {
            *loses = loses.saturating_sub(1);
            return Err(StoreError::Unknown(sqlx::Error::WorkerCrashed));
        }
        if jobs.contains(&Locked) {
            return Err(StoreError::Busy);
        }
        if jobs.contains(&Refused) {
            return Err(StoreError::Refused(sqlx::Error::RowNotFound));
        }
        Ok(jobs.iter().map(|_| manner.is_retry).collect())
    }
}

/// The same with a single writer.
struct OneWriter(FakeDatabase);

impl BatchWriter<TestJob, bool> for OneWriter {
    const BUSY_FOR_ALL: bool = true;

    async fn write(&self, jobs: &[TestJob], manner: WriteMode) -> Result<Vec<bool>, StoreError> {
        self.0.write(jobs, manner).await
    }
}

impl FakeDatabase {
    fn losing(answers: u32) -> Self {
        Self { loses: Mutex::new(answers), ..Self::default() }
    }

    fn writes(&self) -> Vec<(usize, WriteMode)> {
        lock(&self.writes).clone()
    }
}

fn jobs(count: usize, special: &[(usize, TestJob)]) -> Vec<TestJob> {
    let mut jobs = vec![Plain; count];
    for (place, job) in special {
        jobs[*place] = *job;
    }
    jobs
}

#[tokio::test(start_paused = true)]
async fn only_the_first_write_of_a_batch_waits_for_locks() {
    let database = FakeDatabase::default();
    let results = write_all(&database, &jobs(40, &[(3, Locked), (17, Locked), (39, Locked)])).await;
    let busy: Vec<usize> = (0..40).filter(|index| matches!(results[*index], Err(StoreError::Busy))).collect();
    assert_eq!(busy, [3, 17, 39]);
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 37);
    let waiting = database.writes().iter().filter(|(_, manner)| !manner.is_part).count();
    assert_eq!(waiting, 1, "all others are parts");
}

#[tokio::test(start_paused = true)]
async fn single_writer_does_not_split_a_busy_batch() {
    let database = OneWriter(FakeDatabase::default());
    let results = write_all(&database, &jobs(40, &[(3, Locked)])).await;
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Busy))));
    assert_eq!(database.0.writes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_is_refused_alone() {
    let database = FakeDatabase::default();
    let results = write_all(&database, &jobs(9, &[(0, Refused), (8, Refused)])).await;
    for (index, result) in results.iter().enumerate() {
        let refused = matches!(result, Err(StoreError::Refused(_)));
        assert_eq!(refused, index == 0 || index == 8, "{index}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_response_is_read_back() {
    let database = FakeDatabase::losing(1);
    let results = write_all(&database, &jobs(2, &[])).await;
    assert!(results.iter().all(|result| matches!(result, Ok(true))), "{results:?}");
}

/// The database still executes the lost write, or somebody else has locked the row. Neither means that nothing was done.
#[tokio::test(start_paused = true)]
async fn busy_after_a_lost_response_is_unknown() {
    for count in [1, 8] {
        let database = FakeDatabase::losing(1);
        let results = write_all(&database, &jobs(count, &[(0, Locked)])).await;
        assert!(matches!(results[0], Err(StoreError::Unknown(_))), "{:?}", results[0]);
        assert!(results[1..].iter().all(|result| matches!(result, Ok(true))), "{results:?}");
        let manners = database.writes();
        assert!(
            manners[1..].iter().all(|(_, manner)| manner.is_retry),
            "each part knows that it is a retry: {manners:?}"
        );
        assert!(manners.iter().filter(|(jobs, _)| *jobs == count).count() > 2, "it is retried");
    }
}

#[tokio::test(start_paused = true)]
async fn unavailable_after_a_lost_response_is_unknown() {
    let database = FakeDatabase { is_unreachable: true, ..FakeDatabase::losing(1) };
    let results = write_all(&database, &jobs(3, &[])).await;
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Unknown(_)))), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn unavailable_database_fails_the_whole_batch() {
    let database = FakeDatabase { is_unreachable: true, ..FakeDatabase::default() };
    let results = write_all(&database, &jobs(1_000, &[])).await;
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Unavailable(_)))));
    assert_eq!(database.writes().len(), 1);
}

/// A job that breaks every connection does not affect the others.
#[tokio::test(start_paused = true)]
async fn a_job_that_breaks_the_connection_is_found_and_is_unknown_alone() {
    let database = FakeDatabase::default();
    let results = write_all(&database, &jobs(1_000, &[(700, Breaking)])).await;
    let unknown: Vec<usize> =
        (0..1_000).filter(|index| matches!(results[*index], Err(StoreError::Unknown(_)))).collect();
    assert_eq!(unknown, [700]);
    assert!(results.iter().enumerate().all(|(index, result)| index == 700 || result.is_ok()));
}

#[tokio::test(start_paused = true)]
async fn batch_that_breaks_every_connection_stops_after_a_limit() {
    let database = FakeDatabase::default();
    let results = write_all(&database, &vec![Breaking; 1_000]).await;
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Unknown(_)))));
    assert_eq!(results.len(), 1_000);
    let bound = (MAX_RETRIES + 1) + MAX_BREAKS * (MAX_PART_RETRIES + 1);
    assert!(database.writes().len() <= bound as usize, "{} writes", database.writes().len());
}

#[tokio::test(start_paused = true)]
async fn batch_that_stays_locked_stops_after_a_limit() {
    let database = FakeDatabase::default();
    let results = write_all(&database, &vec![Locked; 1_000]).await;
    assert_eq!(results.len(), 1_000);
    assert!(results.iter().all(|result| matches!(result, Err(StoreError::Busy))));
    assert!(database.writes().len() <= 1 + MAX_PARTS as usize, "{} writes", database.writes().len());
}
