//! The guard of a claim: it keeps the claim alive and settles its outcome.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use ichido_core::fence::Fence;
use ichido_core::ledger::{
    OperationGuarantee, RecordPhase, RequestOutcome, SettleRight, Settlement, may_settle,
};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{ClaimOrigin, KeyOutcome, KeyRecord, KeySettle, KeySettled};
use tokio::time::{Instant, timeout};

use super::arrival::Arrival;
use super::attempt::{AttemptOutcome, ResponseSender, respond};
use super::body::Body;
use super::claim::Claim;
use super::fields;
use super::keeper::KeyClaims;
use super::metrics;
use super::problem::{Code, Problem};
use super::response::{replay, settlement};
use super::service::Payload;
use super::settings::{Settings, limits};
use crate::handler_tx::Pool;
use crate::lease::Lease;

/// The first wait before settling is retried; it doubles.
const SETTLE_WAIT_FIRST: Duration = Duration::from_millis(50);

/// Keeps the claim of a request alive until it is settled.
pub(crate) struct ClaimGuard {
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    fence: Fence,
    /// Whether an earlier claim of the same action may have taken effect.
    may_be_done: bool,
    claim: Lease<KeyClaims>,
}

impl ClaimGuard {
    pub(crate) fn new(
        settings: Arc<Settings>,
        arrival: Arc<Arrival>,
        (fence, began): (Fence, ClaimOrigin),
        asked_at: Duration,
    ) -> Self {
        // In transactional mode, whatever was lost was rolled back.
        let may_be_done = matches!(
            began,
            ClaimOrigin::TakenOver { from: OperationGuarantee::Keyed | OperationGuarantee::None }
        );
        let claim =
            settings.keeper.hold_claim(arrival.name.clone(), fence, settings.policy.lease(), asked_at);
        Self { settings, arrival, fence, may_be_done, claim }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn store(&self) -> &Store {
        self.settings.store()
    }

    pub(crate) fn pool(&self) -> Option<Pool> {
        self.settings.pool.clone()
    }

    /// Returns whether the claim still holds.
    pub(crate) async fn still_holds(&self) -> bool {
        // Half a lease is ample for a call to leave the machine.
        self.claim.holds_for(self.settings.policy.lease() / 2).await
    }

    /// Returns whether the store considers this claim current.
    pub(crate) async fn is_current(&self) -> bool {
        let found = self.store().keys().get(&self.arrival.name).await;
        matches!(found, Ok(Some(found)) if may_settle(&found.record, self.fence) == SettleRight::Owner)
    }

    /// Returns the request as the handler receives it.
    pub(crate) fn request<B: http_body::Body<Data = Bytes>>(&self) -> Request<Body<B>> {
        let mut request = self.arrival.to_request();
        request.extensions_mut().insert(Claim { name: self.arrival.name.clone(), fence: Some(self.fence) });
        request
    }

    /// Returns what to store if there was no response.
    pub(crate) fn without_response(&self, outcome: RequestOutcome) -> KeyOutcome {
        match settlement(outcome, &self.settings) {
            Settlement::Release => KeyOutcome::Release,
            // There is nothing to store.
            Settlement::Hold | Settlement::Keep { .. } => KeyOutcome::Hold,
        }
    }

    pub(crate) fn to_settle(&self, outcome: KeyOutcome) -> KeySettle {
        let outcome = match outcome {
            // This run did nothing, but the previous one may have: the key stays bound to its request, and its age stays.
            KeyOutcome::Release if self.may_be_done => KeyOutcome::Hold,
            outcome => outcome,
        };
        KeySettle { name: self.arrival.name.clone(), fence: self.fence, outcome }
    }

    pub(crate) async fn settle(&self, outcome: KeyOutcome) -> Result<KeySettled, StoreError> {
        self.store().keys().settle(self.to_settle(outcome)).await
    }

    /// Wakes waiters after a transaction that settled the claim was committed.
    pub(crate) fn committed(&self) {
        self.store().keys().wake(&self.arrival.name, self.fence);
    }

    /// Releases a key whose work was not started.
    ///
    /// If the store is not reached, the lease lapses.
    pub(crate) async fn release(self) {
        if let Err(error) = self.settle(KeyOutcome::Release).await {
            tracing::debug!(error = error.with_causes(), "failed to release a claim; it will lapse");
        }
    }

    /// Settles and responds.
    ///
    /// If the store is unreachable or silent, the response is still correct: it is sent, and settling continues.
    pub(crate) async fn finish<R: Payload, E>(
        self,
        outcome: KeyOutcome,
        response: Result<Response<Body<R>>, E>,
        reply: ResponseSender<R, E>,
    ) {
        let response = match outcome {
            KeyOutcome::Hold | KeyOutcome::HoldAnswered => self.held(response),
            KeyOutcome::Keep { .. } | KeyOutcome::Release => response,
        };
        let mut settling = pin!(self.settle(outcome.clone()));
        let Ok(settled) = timeout(self.settings.store_wait(), settling.as_mut()).await else {
            tracing::error!("storing an outcome timed out; still trying");
            respond(reply, AttemptOutcome::Responded(response));
            if settling.await.is_err() {
                self.settle_later(outcome).await;
            }
            return;
        };
        match settled {
            Ok(KeySettled::Settled) => respond(reply, AttemptOutcome::Responded(response)),
            Ok(KeySettled::AlreadySettled | KeySettled::Stale) => self.overtaken(response, reply).await,
            Err(error) => {
                tracing::error!(error = error.with_causes(), "failed to store an outcome; retrying");
                respond(reply, AttemptOutcome::Responded(response));
                self.settle_later(outcome).await;
            }
        }
    }

    /// Reports an unknown outcome, and marks the response if the next request under the key will not run.
    ///
    /// The caller gets the handler's own response, and learns that a retry is useless. A handler that says "processing"
    /// knows more.
    // Spec: F2.
    fn held<R: Payload, E>(
        &self,
        mut response: Result<Response<Body<R>>, E>,
    ) -> Result<Response<Body<R>>, E> {
        metrics::count(metrics::HELD, &self.arrival.name.operation);
        self.store().counters().request_parked(&self.arrival.name.operation);
        if self.settings.holds_unknown() {
            let status = response.as_ref().ok().map(|response| response.status().as_u16());
            tracing::warn!(status, "outcome unknown; key held");
            if let Ok(response) = &mut response {
                response.headers_mut().entry(fields::STATUS_NAME).or_insert(fields::UNKNOWN);
            }
        }
        response
    }

    /// Keeps settling after the store was unreachable.
    ///
    /// The claim is still renewed where possible. If it lapses, a late settle counts unless another claim took over.
    pub(crate) async fn settle_later(&self, outcome: KeyOutcome) {
        let mut wait = SETTLE_WAIT_FIRST;
        for _ in 0..limits::MAX_SETTLE_ATTEMPTS {
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(limits::MAX_SETTLE_WAIT);
            if let Ok(settled) = self.settle(outcome.clone()).await {
                tracing::info!(?settled, "stored an outcome late");
                return;
            }
        }
        tracing::error!("gave up storing an outcome; its key will be resolved as after a crash");
    }

    /// Responds for a guard whose claim was taken over.
    ///
    /// Returns what the winner stored, or that it is still running; its own response if the store has neither.
    pub(crate) async fn overtaken<R: Payload, E>(
        &self,
        own: Result<Response<Body<R>>, E>,
        reply: ResponseSender<R, E>,
    ) {
        metrics::count(metrics::OVERTAKEN, &self.arrival.name.operation);
        self.store().counters().request_fenced(&self.arrival.name.operation);
        tracing::warn!("handler finished after its claim ended; returning the stored outcome");
        let response = self.winner().await.map_or(own, Ok);
        respond(reply, AttemptOutcome::Responded(response));
    }

    async fn winner<R: http_body::Body<Data = Bytes>>(&self) -> Option<Response<Body<R>>> {
        let until = Instant::now() + self.settings.policy.in_flight_wait();
        loop {
            let found = self.store().keys().get(&self.arrival.name).await.ok()??;
            let is_in_flight = matches!(found.record.phase, RecordPhase::Claimed { .. });
            if found.record.fingerprint != self.arrival.fingerprint {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if !is_in_flight || found.record.fence == self.fence || left.is_zero() {
                return self.response_from(found);
            }
            self.store().keys().wait(&self.arrival.name, left.min(limits::POLL_INTERVAL)).await;
        }
    }

    fn response_from<R: http_body::Body<Data = Bytes>>(&self, found: KeyRecord) -> Option<Response<Body<R>>> {
        let numbers = self.settings.numbers();
        match (found.record.phase, found.response) {
            (RecordPhase::Settled { .. }, Some(response)) if response.body.is_none() => {
                Some(Problem::not_stored(numbers, response.status).into_response())
            }
            (RecordPhase::Settled { .. }, Some(response)) => {
                Some(replay(response, numbers.replay_marker).unwrap_or_else(Problem::into_response))
            }
            (RecordPhase::Claimed { .. }, _) if found.record.fence != self.fence => {
                Some(Problem::in_flight(numbers).into_response())
            }
            _ => None,
        }
    }
}

pub(crate) fn panicked<R: http_body::Body<Data = Bytes>>() -> Response<Body<R>> {
    tracing::error!("handler panicked");
    Problem::new(Code::HandlerFailed, "the service failed while handling the request").into_response()
}
