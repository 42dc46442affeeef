//! A batch written by hand: fixed slots, each with an item that waits its interval, is asked, and backs off after each
//! refusal.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ichido_bedrock::Bedrock;
use ichido_core::retry::Retry;
use ichido_core::verdict::ErrorCode;
use ichido_llm::models::{Model as _, Prompt};
use tokio::task::JoinSet;

use crate::load::{BatchTask, PARALLEL, model, retry};

/// Items that no slot has taken yet.
type PendingPrompts = Arc<Mutex<VecDeque<Prompt>>>;

pub(crate) async fn run(task: BatchTask, interval: Duration) -> usize {
    let model = Arc::new(model(task.url).await);
    let waiting = Arc::new(Mutex::new(VecDeque::from(task.prompts)));
    let mut slots = JoinSet::new();
    for _ in 0..PARALLEL.get() {
        slots.spawn(run_slot(Arc::clone(&model), Arc::clone(&waiting), interval));
    }
    slots.join_all().await.into_iter().sum()
}

/// Runs one slot: takes items until there are no more, and keeps each until it has ended.
async fn run_slot(model: Arc<Bedrock>, waiting: PendingPrompts, interval: Duration) -> usize {
    let retry = retry();
    let mut answered = 0;
    while let Some(prompt) = take(&waiting) {
        tokio::time::sleep(interval).await;
        answered += usize::from(is_answered(&model, &prompt, &retry).await);
    }
    answered
}

fn take(waiting: &PendingPrompts) -> Option<Prompt> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

async fn is_answered(model: &Bedrock, prompt: &Prompt, retry: &Retry) -> bool {
    let mut failure = NonZeroU32::MIN;
    loop {
        let Err(call_error) = model.ask(0, prompt).await.outcome else { return true };
        let is_throttled = call_error.verdict.code == Some(ErrorCode::RateLimited);
        if !is_throttled || !retry.has_attempts_left(failure.get()) {
            eprintln!("gave up: {}", call_error.why);
            return false;
        }
        tokio::time::sleep(retry.wait(failure, fastrand::f64(), None)).await;
        failure = failure.saturating_add(1);
    }
}
