//! Ours: the batch engine with a fresh store, which records every call before it is made and stores every answer.

use std::sync::Arc;
use std::time::Duration;

use ichido_llm::judge::{Judge, Outcome, Settings, Stop};
use ichido_store::Store;
use ichido_store::testing::sqlite::fresh_file;
use serde_json::Value;

use crate::load::{BatchTask, PARALLEL, form, model, retry};

const MAX_CONNECTIONS: u32 = 4;

pub(crate) async fn run(task: BatchTask) -> usize {
    let file = fresh_file();
    let store = Store::open(&file.url, MAX_CONNECTIONS).await.expect("the store opens");
    let settings =
        Settings { parallel: PARALLEL, interval: Duration::ZERO, retry: retry(), ..Settings::DEFAULT };
    let model = Arc::new(model(task.url).await);
    let judge = Judge::<Value>::with_store(model, form(), settings, &store, "bench").expect("valid settings");
    let report = judge.run(task.prompts, &Stop::new()).await.expect("the store responds");
    report.outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Judged(_))).count()
}
