//! One attempt to run a request: claim, run, settle. It is a task of its own, so that once the claim has been asked for, nobody
//! who goes away leaves it half done.

use std::pin::pin;
use std::sync::Arc;

use http::Response;
use ichido_core::ledger::Outcome;
use ichido_store::error::StoreError;
use ichido_store::ledger::{Began, KeyClaimed, KeyOutcome};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::arrival::Arrival;
use super::body::Body;
use super::claim_guard::{ClaimGuard, panicked};
use super::handler::{self, HandlerOutcome};
use super::metrics;
use super::response::CapturedResponse;
use super::service::{Inner, Payload};
use super::settings::Settings;
use super::transactional;

/// What an attempt came to, for the request that asked.
pub(crate) enum AttemptOutcome<R: http_body::Body, E> {
    /// This is the answer.
    Responded(Result<Response<Body<R>>, E>),
    /// It was not run: this stood in its way.
    Blocked(KeyClaimed),
    /// It was not run: the store could not say.
    StoreFailed(StoreError),
    /// It was not run: the store has said nothing for too long. Should it have been claimed, the claim is given back.
    StoreTimedOut,
    /// It was not run: its claim lapsed before the handler began.
    ClaimLapsed,
}

/// The way back to the request.
pub(crate) type ResponseSender<R, E> = oneshot::Sender<AttemptOutcome<R, E>>;

pub(crate) fn respond<R: http_body::Body, E>(reply: ResponseSender<R, E>, outcome: AttemptOutcome<R, E>) {
    // Whoever asked may have gone away.
    drop(reply.send(outcome));
}

/// Claims, and if that succeeds runs and settles.
pub(crate) async fn attempt<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    // Before the store is asked: the lease is not longer than we think.
    let asked_at = settings.keeper.now();
    let store = settings.store().clone();
    let mut claiming = pin!(store.keys().claim(arrival.claim(&settings)));
    let Ok(claimed) = timeout(settings.store_wait(), claiming.as_mut()).await else {
        respond(reply, AttemptOutcome::StoreTimedOut);
        if let Ok(KeyClaimed::Run { fence, began }) = claiming.await {
            ClaimGuard::new(settings, arrival, (fence, began), asked_at).release().await;
        }
        return;
    };
    let claim = match claimed {
        Ok(KeyClaimed::Run { fence, began }) => {
            if began == Began::Expired {
                metrics::count(metrics::EXPIRED, &arrival.name.operation);
            }
            (fence, began)
        }
        Ok(other) => return respond(reply, AttemptOutcome::Blocked(other)),
        Err(error) => return respond(reply, AttemptOutcome::StoreFailed(error)),
    };
    let guard = ClaimGuard::new(settings, arrival, claim, asked_at);
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

/// The owner, if its claim still holds; else it is given back first, so that whoever asks again does not meet it.
async fn confirm_claim(guard: ClaimGuard) -> Option<ClaimGuard> {
    if guard.still_holds().await {
        return Some(guard);
    }
    guard.release().await;
    None
}

/// Runs the handler; the outcome is settled after it.
async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    guard: ClaimGuard,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    let (outcome, response) = match handler::call(&mut inner, guard.request()).await {
        HandlerOutcome::Responded(response) => {
            let captured = CapturedResponse::from(response, guard.settings()).await;
            (guard.outcome(&captured), Ok(captured.response))
        }
        HandlerOutcome::Failed(error) => (guard.without_response(Outcome::Lost), Err(error)),
        HandlerOutcome::Panicked => (guard.without_response(Outcome::Panicked), Ok(panicked())),
    };
    guard.finish(outcome, response, reply).await;
}
