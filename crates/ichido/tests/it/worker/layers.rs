//! Tower middleware around handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use ichido::destination::{
    DeliveryOutcome, Handler, HandlerFuture, HandlerRequest, HandlerService, JobError, JobSuccess,
};
use ichido_core::lifecycle::StateName;
use ichido_core::verdict::Effect;
use tower::layer::layer_fn;
use tower::util::{MapErrLayer, MapFutureLayer, MapRequestLayer};
use tower::{Service, ServiceBuilder};

use super::fixture::{BACKOFF, FakeReceiver, WorkerFixture, both_databases};

/// A service that is never ready.
#[derive(Clone)]
struct NeverReady;

impl Service<HandlerRequest> for NeverReady {
    type Response = DeliveryOutcome;
    type Error = JobError;
    type Future = HandlerFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), JobError>> {
        Poll::Pending
    }

    fn call(&mut self, _: HandlerRequest) -> HandlerFuture {
        Box::pin(async { Ok(JobSuccess::default().into()) })
    }
}

both_databases! {
    #[test]
    async fn a_layer_sees_each_attempt_once(fixture: WorkerFixture) {
        let (receiver, begun, ended) = (FakeReceiver::default(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (first, last) = (Arc::clone(&begun), Arc::clone(&ended));
        let layers = ServiceBuilder::new()
            .layer(MapRequestLayer::new(move |request: HandlerRequest| {
                first.fetch_max(request.attempt.attempt, Ordering::SeqCst);
                request
            }))
            .layer(MapFutureLayer::new(move |attempt: HandlerFuture| {
                let last = Arc::clone(&last);
                async move {
                    let outcome: Result<_, JobError> = attempt.await;
                    last.fetch_add(1, Ordering::SeqCst);
                    outcome
                }
            }));
        let handler = receiver.handler(|number, _| async move {
            if number < 2 { Err(JobError::retry("busy")) } else { Ok(JobSuccess::default()) }
        });
        let _worker = fixture.work(handler.layer(layers));
        let id = fixture.put("k1").await;
        fixture.until(id, StateName::Failed).await;
        fixture.pass(BACKOFF);
        fixture.until(id, StateName::Sent).await;
        assert_eq!((begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst), receiver.count()), (2, 2, 2));
    }

    /// A layer decides what a failure means, as a handler does.
    #[test]
    async fn a_layer_can_change_the_outcome(fixture: WorkerFixture) {
        let handler = FakeReceiver::default().handler(|_, _| async { Err(JobError::unknown("who knows")) });
        let _worker = fixture.work(handler.layer(MapErrLayer::new(|_: JobError| JobError::dead("the layer knows"))));
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Dead).await;
        assert_eq!((row.effect, row.last_error_text.as_deref()), (Effect::NotDone, Some("the layer knows")));
    }

    /// A layer whose error says nothing of the effect leaves it unknown.
    #[test]
    async fn the_error_of_a_layer_is_an_unknown_effect(fixture: WorkerFixture) {
        let handler = FakeReceiver::default().handler(|_, _| async { Err(JobError::retry("busy")) });
        let _worker = fixture.work(handler.layer(MapErrLayer::new(|_: JobError| std::io::Error::other("the layer failed"))));
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Parked).await;
        assert_eq!((row.effect, row.last_error_text.as_deref()), (Effect::Unknown, Some("the layer failed")));
    }

    /// Nothing was done, so even a message that must not be repeated is retried.
    #[test]
    async fn an_attempt_that_no_layer_was_ready_for_is_retried(fixture: WorkerFixture) {
        let receiver = FakeReceiver::default();
        let handler: Handler = receiver.done().layer(layer_fn(|_: HandlerService| NeverReady));
        let _worker = fixture.work(handler.timeout(Duration::from_millis(50)));
        let id = fixture.put("k1").await;
        let row = fixture.until(id, StateName::Failed).await;
        assert_eq!((row.attempts, row.effect), (1, Effect::NotDone));
        assert_eq!(row.last_error_text.as_deref(), Some("the handler's layers were not ready within 50ms"));
        assert_eq!(receiver.count(), 0);
    }
}
