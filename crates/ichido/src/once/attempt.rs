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
use super::handler::{self, Ran};
use super::kept::Heard;
use super::meter;
use super::owner::{Owner, panicked};
use super::service::{Inner, Payload};
use super::settings::Settings;
use super::transactional;

/// What an attempt came to, for the request that asked.
pub(crate) enum Came<R: http_body::Body, E> {
    /// This is the answer.
    Answered(Result<Response<Body<R>>, E>),
    /// It was not run: this stood in its way.
    InTheWay(KeyClaimed),
    /// It was not run: the store could not say.
    StoreFailed(StoreError),
    /// It was not run: the store has said nothing for too long. Should it have been claimed, the claim is given back.
    StoreSilent,
    /// It was not run: its claim lapsed before the handler began.
    TooLate,
}

/// The way back to the request.
pub(crate) type Answer<R, E> = oneshot::Sender<Came<R, E>>;

pub(crate) fn tell<R: http_body::Body, E>(answer: Answer<R, E>, came: Came<R, E>) {
    // Whoever asked may have gone away.
    drop(answer.send(came));
}

/// Claims, and if that succeeds runs and settles.
pub(crate) async fn attempt<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    mut inner: S,
    answer: Answer<R, S::Error>,
) {
    // Before the store is asked: the lease is not longer than we think.
    let asked_at = settings.keeper.now();
    let store = settings.store().clone();
    let mut claiming = pin!(store.keys().claim(arrival.claim(&settings)));
    let Ok(claimed) = timeout(settings.store_wait(), claiming.as_mut()).await else {
        tell(answer, Came::StoreSilent);
        if let Ok(KeyClaimed::Run { fence, began }) = claiming.await {
            Owner::new(settings, arrival, (fence, began), asked_at).let_go().await;
        }
        return;
    };
    let claim = match claimed {
        Ok(KeyClaimed::Run { fence, began }) => {
            if began == Began::Expired {
                meter::count(meter::EXPIRED, &arrival.name.operation);
            }
            (fence, began)
        }
        Ok(other) => return tell(answer, Came::InTheWay(other)),
        Err(error) => return tell(answer, Came::StoreFailed(error)),
    };
    let owner = Owner::new(settings, arrival, claim, asked_at);
    if let Err(error) = handler::ready(&mut inner).await {
        return owner.finish(KeyOutcome::Release, Err(error), answer).await;
    }
    let wait = owner.settings().store_wait();
    let mut holding = pin!(held(owner));
    let owner = match timeout(wait, holding.as_mut()).await {
        Ok(Some(owner)) => owner,
        Ok(None) => return tell(answer, Came::TooLate),
        Err(_) => {
            tell(answer, Came::StoreSilent);
            if let Some(owner) = holding.await {
                owner.let_go().await;
            }
            return;
        }
    };
    match owner.pool() {
        None => run(owner, inner, answer).await,
        Some(pool) => transactional::run(owner, &pool, inner, answer).await,
    }
}

/// The owner, if its claim still holds; else it is given back first, so that whoever asks again does not meet it.
async fn held(owner: Owner) -> Option<Owner> {
    if owner.still_holds().await {
        return Some(owner);
    }
    owner.let_go().await;
    None
}

/// Runs the handler; the outcome is settled after it.
async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    owner: Owner,
    mut inner: S,
    answer: Answer<R, S::Error>,
) {
    let (outcome, response) = match handler::call(&mut inner, owner.request()).await {
        Ran::Responded(response) => {
            let heard = Heard::from(response, owner.settings()).await;
            (owner.outcome(&heard), Ok(heard.response))
        }
        Ran::Failed(error) => (owner.without_response(Outcome::Lost), Err(error)),
        Ran::Panicked => (owner.without_response(Outcome::Panicked), Ok(panicked())),
    };
    owner.finish(outcome, response, answer).await;
}
