//! The owner of a claim: it reports what came of it, and learns whether that stands.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use ichido_core::fence::Fence;
use ichido_core::ledger::{EffectMode, Outcome, Phase, Settlement, Standing, may_settle};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::ledger::{Began, KeyOutcome, KeyRecord, KeySettle, KeySettled};
use tokio::time::{Instant, timeout};

use super::arrival::Arrival;
use super::attempt::{AttemptOutcome, ResponseSender, respond};
use super::body::Body;
use super::claim::Claim;
use super::keeper::KeyClaims;
use super::metrics;
use super::problem::{Code, Problem};
use super::response::{CapturedResponse, replay, settlement};
use super::service::Payload;
use super::settings::{Pool, Settings, limits};
use crate::lease::Lease;

/// The first wait before a settle is tried again; it doubles.
const SETTLE_WAIT_FIRST: Duration = Duration::from_millis(50);

/// Whoever has the claim of a request, and keeps it alive.
pub(crate) struct ClaimGuard {
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    fence: Fence,
    /// Whether an earlier claim of the same action may have taken effect, whatever comes of this one.
    may_be_done: bool,
    claim: Lease<KeyClaims>,
}

impl ClaimGuard {
    pub(crate) fn new(
        settings: Arc<Settings>,
        arrival: Arc<Arrival>,
        (fence, began): (Fence, Began),
        asked_at: Duration,
    ) -> Self {
        // In transactional mode what was lost was rolled back.
        let may_be_done = matches!(began, Began::TakenOver { from: EffectMode::Keyed | EffectMode::Opaque });
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

    /// Whether the claim has not lapsed since it was made.
    pub(crate) async fn still_holds(&self) -> bool {
        // Half of a lease is ample for a call to leave the machine.
        self.claim.holds_for(self.settings.policy.lease() / 2).await
    }

    /// Whether the store knows the claim as the current one.
    pub(crate) async fn is_current(&self) -> bool {
        let found = self.store().keys().get(&self.arrival.name).await;
        matches!(found, Ok(Some(found)) if may_settle(&found.record, self.fence) == Standing::Owner)
    }

    /// The request as the handler gets it.
    pub(crate) fn request<B: http_body::Body<Data = Bytes>>(&self) -> Request<Body<B>> {
        let mut request = self.arrival.to_request();
        request.extensions_mut().insert(Claim { name: self.arrival.name.clone(), fence: self.fence });
        request
    }

    /// What is stored of a response.
    pub(crate) fn outcome<R: http_body::Body<Data = Bytes>>(
        &self,
        captured: &CapturedResponse<R>,
    ) -> KeyOutcome {
        match settlement(captured.outcome, &self.settings) {
            Settlement::Keep { outcome: settled, .. } => {
                let (response, result_digest) = captured.to_stored();
                let (message_id, ttl) = (captured.message_id, self.settings.policy.ttl());
                KeyOutcome::Keep { settled, response, result_digest, message_id, ttl }
            }
            Settlement::Release => KeyOutcome::Release,
            Settlement::Hold => KeyOutcome::Hold,
        }
    }

    /// What is stored where no response came.
    pub(crate) fn without_response(&self, outcome: Outcome) -> KeyOutcome {
        match settlement(outcome, &self.settings) {
            Settlement::Release => KeyOutcome::Release,
            // There is nothing to keep.
            Settlement::Hold | Settlement::Keep { .. } => KeyOutcome::Hold,
        }
    }

    pub(crate) fn to_settle(&self, outcome: KeyOutcome) -> KeySettle {
        let outcome = match outcome {
            // That this run did nothing says nothing of the one before it: the key stays bound to its request, and its age stays.
            KeyOutcome::Release if self.may_be_done => KeyOutcome::Hold,
            outcome => outcome,
        };
        KeySettle { name: self.arrival.name.clone(), fence: self.fence, outcome }
    }

    pub(crate) async fn settle(&self, outcome: KeyOutcome) -> Result<KeySettled, StoreError> {
        self.store().keys().settle(self.to_settle(outcome)).await
    }

    /// A transaction that settled the claim was committed: tells those who wait.
    pub(crate) fn committed(&self) {
        self.store().keys().wake(&self.arrival.name, self.fence);
    }

    /// Gives a key back whose work was not begun. Whether that reaches the store is its lease's business.
    pub(crate) async fn release(self) {
        if let Err(error) = self.settle(KeyOutcome::Release).await {
            tracing::debug!(error = error.in_full(), "a lapsed claim was not given back");
        }
    }

    /// Settles, and answers. If the store is away or silent, the answer is true all the same: it goes out, and settling goes on.
    pub(crate) async fn finish<R: Payload, E>(
        self,
        outcome: KeyOutcome,
        response: Result<Response<Body<R>>, E>,
        reply: ResponseSender<R, E>,
    ) {
        if matches!(outcome, KeyOutcome::Hold) {
            metrics::count(metrics::HELD, &self.arrival.name.operation);
        }
        let mut settling = pin!(self.settle(outcome.clone()));
        let Ok(settled) = timeout(self.settings.store_wait(), settling.as_mut()).await else {
            tracing::error!("the store is silent, and an outcome is not stored yet");
            respond(reply, AttemptOutcome::Responded(response));
            if settling.await.is_err() {
                self.settle_later(outcome).await;
            }
            return;
        };
        match settled {
            Ok(KeySettled::Stands) => respond(reply, AttemptOutcome::Responded(response)),
            Ok(KeySettled::AlreadySettled | KeySettled::Stale) => self.overtaken(response, reply).await,
            Err(error) => {
                tracing::error!(error = error.in_full(), "an outcome could not be stored; trying again");
                respond(reply, AttemptOutcome::Responded(response));
                self.settle_later(outcome).await;
            }
        }
    }

    /// Goes on settling when the store was away. The claim is renewed meanwhile, as far as that goes; should it lapse, a late
    /// settle still counts unless somebody took over.
    pub(crate) async fn settle_later(&self, outcome: KeyOutcome) {
        let mut wait = SETTLE_WAIT_FIRST;
        for _ in 0..limits::SETTLE_TRIES_MAX {
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(limits::SETTLE_WAIT_MAX);
            if let Ok(settled) = self.settle(outcome.clone()).await {
                tracing::info!(?settled, "an outcome was stored late");
                return;
            }
        }
        tracing::error!(
            "an outcome was not stored; its claim lapses, and its key is resolved as after a crash"
        );
    }

    /// Answers for an owner whose claim is over: with what the winner stored, or that it is still at it; with its own answer
    /// where the store has neither.
    pub(crate) async fn overtaken<R: Payload, E>(
        &self,
        own: Result<Response<Body<R>>, E>,
        reply: ResponseSender<R, E>,
    ) {
        metrics::count(metrics::OVERTAKEN, &self.arrival.name.operation);
        tracing::warn!("a handler ended after its claim was over; it answers with what is stored");
        let response = self.winner().await.map_or(own, Ok);
        respond(reply, AttemptOutcome::Responded(response));
    }

    async fn winner<R: http_body::Body<Data = Bytes>>(&self) -> Option<Response<Body<R>>> {
        let until = Instant::now() + self.settings.policy.in_flight_wait();
        loop {
            let found = self.store().keys().get(&self.arrival.name).await.ok()??;
            let is_in_flight = matches!(found.record.phase, Phase::Claimed { .. });
            if found.record.fingerprint != self.arrival.fingerprint {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if !is_in_flight || found.record.fence == self.fence || left.is_zero() {
                return self.response_from(found);
            }
            self.store().keys().wait(&self.arrival.name, left.min(limits::LOOK_EVERY)).await;
        }
    }

    fn response_from<R: http_body::Body<Data = Bytes>>(&self, found: KeyRecord) -> Option<Response<Body<R>>> {
        let numbers = self.settings.numbers();
        match (found.record.phase, found.response) {
            (Phase::Settled { .. }, Some(response)) if response.body.is_none() => {
                Some(Problem::not_kept(numbers, response.status).into_response())
            }
            (Phase::Settled { .. }, Some(response)) => {
                Some(replay(response, numbers.replay_marker).unwrap_or_else(Problem::into_response))
            }
            (Phase::Claimed { .. }, _) if found.record.fence != self.fence => {
                Some(Problem::in_flight(numbers).into_response())
            }
            _ => None,
        }
    }
}

pub(crate) fn panicked<R: http_body::Body<Data = Bytes>>() -> Response<Body<R>> {
    tracing::error!("a handler panicked");
    Problem::new(Code::HandlerFailed, "the service failed while it handled the request").into_response()
}
