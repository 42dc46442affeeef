//! The least SQL for the same work, as a contestant: it shows what the machine and the database allow.

use sqlx::postgres::PgPoolOptions;

use super::protocol::{Part, Task, done, ready};
use crate::floor;

pub(crate) async fn run(task: Task) {
    let options = PgPoolOptions::new().test_before_acquire(false);
    let pool = options.connect(&task.url).await.expect("connections");
    floor::tables(&pool).await;
    match task.part {
        Part::EnqueueOne => {
            ready(None);
            floor::enqueue_one(&pool, task.count).await;
        }
        Part::EnqueueBulk => {
            ready(None);
            floor::enqueue_bulk(&pool, task.count / 1_000).await;
        }
        Part::Drain => {
            floor::fill_leanest(&pool, i64::try_from(task.count).expect("small")).await;
            ready(None);
            floor::empty_leanest(&pool).await;
        }
        Part::Pickup | Part::Serve => panic!("there is no floor of this part"),
    }
    done(Vec::new());
}
