//! One attempt to run a request: claim, run, settle; or without a claim, in [`unclaimed`].
//!
//! It runs in its own task, so a disconnecting client cannot leave it half done once the claim was requested.

use std::pin::pin;
use std::sync::Arc;

use http::Response;
use ichido_core::ledger::RequestOutcome;
use ichido_store::error::StoreError;
use ichido_store::ledger::{ClaimOrigin, KeyClaimed, KeyOutcome};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::arrival::Arrival;
use super::body::Body;
use super::claim_guard::{ClaimGuard, panicked};
use super::handler::{self, HandlerOutcome};
use super::keeper::KeyReservation;
use super::metrics;
use super::response::CapturedResponse;
use super::service::{Inner, Payload};
use super::settings::Settings;
use super::transactional;
use super::unclaimed;

/// The outcome of an attempt, for the request that started it.
pub(crate) enum AttemptOutcome<R: http_body::Body, E> {
    /// The handler's response.
    Responded(Result<Response<Body<R>>, E>),
    /// Not run: the key's record prevents it.
    Blocked(KeyClaimed),
    /// Not run: the store failed.
    StoreFailed(StoreError),
    /// Not run: the store did not respond in time.
    ///
    /// If it did claim the key, the claim is released.
    StoreTimedOut,
    /// Not run: the claim lapsed before the handler started.
    ClaimLapsed,
    /// Not run: the same request runs in this process, without a claim.
    RunsHere,
}

/// Sends the outcome back to the request.
pub(crate) struct ResponseSender<R: http_body::Body, E> {
    sender: oneshot::Sender<AttemptOutcome<R, E>>,
    reservation: Option<KeyReservation>,
}

impl<R: http_body::Body, E> ResponseSender<R, E> {
    pub(crate) fn new(sender: oneshot::Sender<AttemptOutcome<R, E>>) -> Self {
        Self { sender, reservation: None }
    }

    /// Keeps a reservation until the response is sent.
    pub(crate) fn reserving(self, reservation: KeyReservation) -> Self {
        Self { reservation: Some(reservation), ..self }
    }
}

pub(crate) fn respond<R: http_body::Body, E>(reply: ResponseSender<R, E>, outcome: AttemptOutcome<R, E>) {
    let ResponseSender { sender, reservation } = reply;
    // First, because the caller may send its next request at once.
    drop(reservation);
    // The request may be gone.
    drop(sender.send(outcome));
}

/// Runs the handler unless the key's record prevents it, and stores its outcome.
///
/// `has_waited`: another request with the key ended just before.
pub(crate) async fn attempt<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    inner: S,
    has_waited: bool,
    reply: ResponseSender<R, S::Error>,
) {
    match &settings.pool {
        Some(pool) if !settings.claim_first => {
            let pool = pool.clone();
            unclaimed::attempt(settings, arrival, &pool, inner, has_waited, reply).await;
        }
        _ => claim_and_run(settings, arrival, inner, reply).await,
    }
}

/// Claims the key. Otherwise responds, and returns `None`.
pub(crate) async fn claim<R: Payload, E>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    reply: ResponseSender<R, E>,
) -> Option<(ClaimGuard, ResponseSender<R, E>)> {
    // Read before the store is asked, so the lease is never shorter than assumed.
    let asked_at = settings.keeper.now();
    let store = settings.store().clone();
    let mut claiming = pin!(store.keys().claim(arrival.claim(&settings)));
    let Ok(claimed) = timeout(settings.store_wait(), claiming.as_mut()).await else {
        respond(reply, AttemptOutcome::StoreTimedOut);
        if let Ok(KeyClaimed::Run { fence, began }) = claiming.await {
            ClaimGuard::new(settings, arrival, (fence, began), asked_at).release().await;
        }
        return None;
    };
    let claim = match claimed {
        Ok(KeyClaimed::Run { fence, began }) => {
            if began == ClaimOrigin::Expired {
                metrics::count(metrics::EXPIRED, &arrival.name.operation);
            }
            (fence, began)
        }
        Ok(other) => {
            respond(reply, AttemptOutcome::Blocked(other));
            return None;
        }
        Err(error) => {
            respond(reply, AttemptOutcome::StoreFailed(error));
            return None;
        }
    };
    Some((ClaimGuard::new(settings, arrival, claim, asked_at), reply))
}

/// Claims the key; on success, runs the handler and settles.
pub(crate) async fn claim_and_run<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    let Some((guard, reply)) = claim(settings, arrival, reply).await else { return };
    if let Err(error) = handler::ready(&mut inner).await {
        return guard.finish(KeyOutcome::Release, Err(error), reply).await;
    }
    let wait = guard.settings().store_wait();
    let mut confirming = pin!(confirm_claim(guard));
    let guard = match timeout(wait, confirming.as_mut()).await {
        Ok(Some(guard)) => guard,
        Ok(None) => return respond(reply, AttemptOutcome::ClaimLapsed),
        Err(_) => {
            respond(reply, AttemptOutcome::StoreTimedOut);
            if let Some(guard) = confirming.await {
                guard.release().await;
            }
            return;
        }
    };
    match guard.pool() {
        None => run(guard, inner, reply).await,
        Some(pool) => transactional::run(guard, &pool, inner, reply).await,
    }
}

/// Returns the guard if its claim still holds.
///
/// Otherwise releases the claim first, so a retry does not find it.
async fn confirm_claim(guard: ClaimGuard) -> Option<ClaimGuard> {
    if guard.still_holds().await {
        return Some(guard);
    }
    guard.release().await;
    None
}

/// Runs the handler, then settles its outcome.
async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    guard: ClaimGuard,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    let (outcome, response) = match handler::call(&mut inner, guard.request()).await {
        HandlerOutcome::Responded(response) => {
            let captured = CapturedResponse::from(response, guard.settings()).await;
            (captured.to_outcome(guard.settings()), Ok(captured.response))
        }
        HandlerOutcome::Failed(error) => (guard.without_response(RequestOutcome::Lost), Err(error)),
        HandlerOutcome::Panicked => (guard.without_response(RequestOutcome::Panicked), Ok(panicked())),
    };
    guard.finish(outcome, response, reply).await;
}
