//! Parses message bodies, a few large ones at a time.
//!
//! Guarantee: large bodies are parsed on blocking threads, at most [`MAX_LARGE_PARSES`] at once and
//! [`MAX_LARGE_PARSES_PER_TOKEN`] per token. If the caller hangs up, the permit is held until its body is parsed.

use ichido_http::server::permits::Permits;
use uuid::Uuid;

use super::caller::ApiCaller;
use super::problem::{Code, Problem};
use crate::accept::{ParsedSubmission, Submission, parse};
use crate::limits::{MAX_INLINE_BYTES, MAX_LARGE_PARSES, MAX_LARGE_PARSES_PER_TOKEN};

pub(super) struct BodyParser {
    permits: Permits<Uuid>,
}

impl BodyParser {
    pub(super) fn new() -> Self {
        Self { permits: Permits::new(MAX_LARGE_PARSES, MAX_LARGE_PARSES_PER_TOKEN) }
    }

    /// Parses a submission into a message.
    ///
    /// A large one waits for a permit; a small one is parsed at once.
    pub(super) async fn parse(
        &self,
        caller: &ApiCaller,
        submission: Submission,
    ) -> Result<ParsedSubmission, Problem> {
        let parsed = if submission.body.len() <= MAX_INLINE_BYTES {
            parse(submission)
        } else {
            self.run_blocking(caller, move || parse(submission)).await?
        };
        parsed.map_err(|refused| Problem::from_submission(&refused))
    }

    /// Runs work on a blocking thread, once there is a permit.
    async fn run_blocking<T: Send + 'static>(
        &self,
        caller: &ApiCaller,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.permits.take(caller.token).await;
        // The thread owns the permit: it continues when the client hangs up.
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "failed to parse body");
            Problem::new(Code::StoreRefused, "the server failed to parse the body; nothing was done")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::pin::Pin;
    use std::sync::mpsc;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use ichido_core::key::IdempotencyKey;
    use ichido_store::message::QueueName;
    use ichido_store::token::TokenRole;
    use tokio::time::timeout;

    use super::*;
    use crate::config::Intake;
    use crate::schedule::Schedule;
    use ichido_http::server::permits::Full;

    /// The clock is paused, so this passes as soon as nothing runs.
    const LONG: Duration = Duration::from_hours(1);

    fn caller(token: u128) -> ApiCaller {
        ApiCaller { name: "ann".to_owned(), role: TokenRole::Operator, token: Some(Uuid::from_u128(token)) }
    }

    fn submission(bytes: usize) -> Submission {
        Submission {
            queue: QueueName::parse("orders").unwrap(),
            identity: "ann".to_owned(),
            key: IdempotencyKey::parse("k").unwrap(),
            content_type: "text/plain".to_owned(),
            body: vec![b'x'; bytes],
            hops: None,
            trace: None,
            max_attempts: NonZeroU32::MIN,
            schedule: Schedule::default(),
            intake: Intake::default(),
        }
    }

    type PendingWork<'a> = Pin<Box<dyn Future<Output = Result<(), Problem>> + 'a>>;

    /// Starts work that ends when the sender is dropped; returns once it runs.
    async fn begun(parsing: &BodyParser, token: u128) -> (PendingWork<'_>, mpsc::Sender<()>) {
        let (began, runs) = tokio::sync::oneshot::channel();
        let (ends, ended) = mpsc::channel::<()>();
        let work = move || {
            began.send(()).unwrap();
            ended.recv().unwrap_err();
        };
        let mut future: PendingWork<'_> =
            Box::pin(async move { parsing.run_blocking(&caller(token), work).await });
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Pending));
        runs.await.expect("there is a permit for it");
        (future, ends)
    }

    #[tokio::test]
    async fn at_most_four_large_bodies_are_parsed_at_once_and_two_of_one_token() {
        let parsing = BodyParser::new();
        let full = |token| parsing.permits.try_take(Some(Uuid::from_u128(token))).err();
        let (first, first_ends) = begun(&parsing, 1).await;
        let (second, second_ends) = begun(&parsing, 1).await;
        assert_eq!((full(1), full(2)), (Some(Full::Own), None));
        let (third, third_ends) = begun(&parsing, 2).await;
        let (fourth, fourth_ends) = begun(&parsing, 3).await;
        assert_eq!((full(2), full(4)), (Some(Full::All), Some(Full::All)));

        drop((first, second));
        assert_eq!(full(4), Some(Full::All), "threads go on when their clients have hung up");
        drop((first_ends, second_ends, third_ends, fourth_ends));
        third.await.unwrap();
        fourth.await.unwrap();
        parsing.run_blocking(&caller(2), || ()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_a_permit_and_a_small_one_does_not() {
        let parsing = BodyParser::new();
        let large = |token| {
            let parsing = &parsing;
            async move { timeout(LONG, parsing.parse(&caller(token), submission(MAX_INLINE_BYTES + 1))).await }
        };
        let held = [parsing.permits.take(caller(1).token).await, parsing.permits.take(caller(1).token).await];
        assert!(large(1).await.is_err(), "its token has two");
        assert!(large(2).await.is_ok_and(|parsed| parsed.is_ok()), "another token has its own");
        parsing.parse(&caller(1), submission(MAX_INLINE_BYTES)).await.unwrap();
        drop(held);
        assert!(large(1).await.is_ok_and(|parsed| parsed.is_ok()));
    }
}
