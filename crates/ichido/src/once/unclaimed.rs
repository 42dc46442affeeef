//! Runs a transactional handler without a claim: the last statement of its transaction records the outcome.
//!
//! Guarantee: of all requests with one key, the transaction of one commits. A unique index decides which; nothing is written
//! before. Within a process, one request runs at a time, because it reserves the key in memory. Across processes,
//! two may run at the same time; the second to record finds the key taken, is rolled back and replays the first.
//!
//! | case | what happens |
//! |---|---|
//! | stored outcome, or a different request | replayed, or refused, from the look-up |
//! | the same request runs in this process | it waits, then looks up |
//! | a different request runs in this process | refused |
//! | a record is claimed: by a node with [`Once::claim_first`](super::Once::claim_first), or before a change of guarantee | it waits for that record |
//! | an expired record, a lapsed claim, a lost outcome | claimed first, which replaces the record |
//! | 2xx or 3xx | recorded, then committed |
//! | the key is taken when recording | rolled back; the next look-up finds the winner: replayed, or refused if it was a different request |
//! | a stored refusal, such as 422 | rolled back, then claimed and settled; if that fails, 503, because nothing was done |
//! | 5xx, 429 and the like, a panic, an error | rolled back; nothing was written, so the key is free |
//! | the process dies before the commit | the database rolls back, and the key is free at once |
//! | the process dies after the commit | replayed |
//! | the process stalls and another node runs the request | the key is taken when recording |
//! | a commit of unknown outcome | the key is claimed, which waits for a commit in flight; a record of this attempt proves the commit |
//! | a conflict with other transactions | looked up and run again, a bounded number of times |
// Spec: A3, C6.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{Request, Response};
use ichido_store::ledger::{KeyClaimed, KeyLookup, KeyOutcome, KeyRecorded, KeyRecording, KeySettle};
use tokio::time::timeout;
use uuid::Uuid;

use super::arrival::Arrival;
use super::attempt::{AttemptOutcome, ResponseSender, claim, claim_and_run, respond};
use super::body::Body;
use super::claim::Claim;
use super::claim_guard::panicked;
use super::handler::{self, HandlerOutcome};
use super::metrics;
use super::problem::Problem;
use super::response::CapturedResponse;
use super::service::{Inner, Payload};
use super::settings::{Settings, limits};
use super::transactional::{TransactionEnd, commit, take_back, wrong_database};
use crate::handler_tx::{HandlerTx, Pool};

/// Reserves the key in this process, looks it up, runs the handler and records its outcome.
pub(crate) async fn attempt<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    pool: &Pool,
    inner: S,
    has_waited: bool,
    reply: ResponseSender<R, S::Error>,
) {
    // Those who waited for an outcome read it together. If each reserved the key first, they would read it one by one.
    if has_waited && let Err(outcome) = look_up(&settings, &arrival).await {
        return respond(reply, outcome);
    }
    // Until its response is sent: a request that reserves the key later finds the outcome.
    let reply = match settings.keeper.reserve(&arrival.name, arrival.fingerprint) {
        Ok(reservation) => reply.reserving(reservation),
        Err(other) if other == arrival.fingerprint => return respond(reply, AttemptOutcome::RunsHere),
        Err(_) => return respond(reply, AttemptOutcome::Blocked(KeyClaimed::Conflict)),
    };
    run(settings, arrival, pool, inner, reply).await;
}

async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    pool: &Pool,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    for run in 1..=limits::MAX_RUNS {
        let fresh = inner.clone();
        match may_run(&settings, &arrival, pool, &mut inner).await {
            Ok(Next::Run) => (),
            // Rare, and large.
            Ok(Next::Claim) => return Box::pin(claim_and_run(settings, arrival, fresh, reply)).await,
            Err(outcome) => return respond(reply, outcome),
        }
        let handler_tx = HandlerTx::new(settings.store(), pool);
        let (outcome, response, run_again) =
            match handler::call(&mut inner, request(&arrival, &handler_tx)).await {
                HandlerOutcome::Responded(response) => {
                    let captured = CapturedResponse::from(response, &settings).await;
                    let outcome = captured.to_outcome(&settings);
                    (outcome, Ok(captured.response), captured.run_again)
                }
                HandlerOutcome::Failed(error) => (KeyOutcome::Release, Err(error), false),
                HandlerOutcome::Panicked => (KeyOutcome::Release, Ok(panicked()), false),
            };
        let attempt = Uuid::now_v7();
        let run_again = run_again && run < limits::MAX_RUNS;
        match end(&settings, &arrival, handler_tx, (outcome, attempt), run_again).await {
            TransactionEnd::RolledBack(outcome @ KeyOutcome::Keep { .. }) => {
                return Box::pin(refuse(settings, arrival, outcome, response, reply)).await;
            }
            TransactionEnd::Committed | TransactionEnd::RolledBack(_) => {
                return respond(reply, AttemptOutcome::Responded(response));
            }
            TransactionEnd::Failed(problem) | TransactionEnd::Leaked(problem) => {
                return respond(reply, AttemptOutcome::Responded(Ok(problem.into_response())));
            }
            TransactionEnd::InDoubt => {
                return Box::pin(read_back(&settings, &arrival, attempt, response, reply)).await;
            }
            TransactionEnd::Overtaken => {
                metrics::count(metrics::OVERTAKEN, &arrival.name.operation);
                settings.store().counters().request_fenced(&arrival.name.operation);
                tracing::info!("another node was faster; rolled back");
            }
            TransactionEnd::Retry => (),
        }
        inner = fresh;
    }
    respond(reply, AttemptOutcome::Responded(Ok(Problem::contended().into_response())));
}

/// How a request goes on.
enum Next {
    Run,
    Claim,
}

/// Looks the key up. Returns what prevents the request from running.
async fn look_up<R: Payload, E>(
    settings: &Settings,
    arrival: &Arrival,
) -> Result<Next, AttemptOutcome<R, E>> {
    let looking = settings.store().keys().look_up(&arrival.name, arrival.fingerprint, &settings.policy);
    match timeout(settings.store_wait(), looking).await {
        Ok(Ok(KeyLookup::Free)) => Ok(Next::Run),
        Ok(Ok(KeyLookup::NeedsClaim)) => Ok(Next::Claim),
        Ok(Ok(KeyLookup::Blocked(found))) => Err(AttemptOutcome::Blocked(found)),
        Ok(Err(error)) => Err(AttemptOutcome::StoreFailed(error)),
        Err(_) => Err(AttemptOutcome::StoreTimedOut),
    }
}

/// Looks the key up, and waits until the service is ready.
async fn may_run<S: Inner<B, R>, B: Payload, R: Payload>(
    settings: &Settings,
    arrival: &Arrival,
    pool: &Pool,
    inner: &mut S,
) -> Result<Next, AttemptOutcome<R, S::Error>> {
    let Next::Run = look_up(settings, arrival).await? else { return Ok(Next::Claim) };
    if !settings.pool_is_checked.load(Ordering::Relaxed) {
        let problem = match pool.is_on(settings.store()).await {
            Ok(true) => None,
            Ok(false) => Some(wrong_database()),
            Err(error) => {
                tracing::error!(error = error.with_causes(), "failed to reach the handler's database");
                Some(Problem::unavailable())
            }
        };
        if let Some(problem) = problem {
            return Err(AttemptOutcome::Responded(Ok(problem.into_response())));
        }
        settings.pool_is_checked.store(true, Ordering::Relaxed);
    }
    let mut has_waited = false;
    let ready = poll_fn(|cx| {
        let polled = inner.poll_ready(cx);
        has_waited |= polled.is_pending();
        polled
    });
    ready.await.map_err(|error| AttemptOutcome::Responded(Err(error)))?;
    // Another node may have run it meanwhile.
    if has_waited { look_up(settings, arrival).await } else { Ok(Next::Run) }
}

/// Returns the request as the handler receives it.
fn request<B: http_body::Body<Data = Bytes>>(arrival: &Arrival, handler_tx: &HandlerTx) -> Request<Body<B>> {
    let mut request = arrival.to_request();
    request.extensions_mut().insert(Claim { name: arrival.name.clone(), fence: None });
    handler_tx.lend(request.extensions_mut());
    request
}

/// Ends a transaction by recording its outcome.
async fn end(
    settings: &Settings,
    arrival: &Arrival,
    handler_tx: HandlerTx,
    (outcome, attempt): (KeyOutcome, Uuid),
    run_again: bool,
) -> TransactionEnd {
    let (open, outcome) = match take_back(handler_tx, outcome, run_again).await {
        Ok(applied) => applied,
        Err(end) => return end,
    };
    let KeyOutcome::Keep { settled, response, result_digest, message_id, ttl } = outcome else {
        // Unreachable: only an applied outcome is taken back.
        return TransactionEnd::RolledBack(outcome);
    };
    let request = arrival.claim(settings);
    let recording = KeyRecording { request, attempt, settled, response, result_digest, message_id, ttl };
    commit(open, async |open| Ok(open.record_key(&recording).await? == KeyRecorded::Recorded)).await
}

/// Stores a refusal, whose transaction was rolled back. Unless it is stored, the next request runs.
async fn refuse<R: Payload, E>(
    settings: Arc<Settings>,
    arrival: Arc<Arrival>,
    outcome: KeyOutcome,
    response: Result<Response<Body<R>>, E>,
    reply: ResponseSender<R, E>,
) {
    if let Some((guard, reply)) = claim(settings, arrival, reply).await {
        guard.finish(outcome, response, reply).await;
    }
}

/// Finds out whether a commit took place, by claiming the key.
///
/// The claim inserts the row that the commit wrote: it waits for a commit still in flight. If it inserts the row, the
/// transaction was rolled back.
async fn read_back<R: Payload, E>(
    settings: &Settings,
    arrival: &Arrival,
    attempt: Uuid,
    response: Result<Response<Body<R>>, E>,
    reply: ResponseSender<R, E>,
) {
    let keys = settings.store().keys();
    let outcome = match keys.claim(arrival.claim(settings)).await {
        Ok(KeyClaimed::Run { fence, .. }) => {
            let name = arrival.name.clone();
            if let Err(error) = keys.settle(KeySettle { name, fence, outcome: KeyOutcome::Release }).await {
                tracing::debug!(error = error.with_causes(), "failed to release a claim; it will lapse");
            }
            AttemptOutcome::Responded(Ok(Problem::unavailable().into_response()))
        }
        Ok(found) => match keys.get(&arrival.name).await {
            Ok(Some(record)) if record.attempt == attempt => AttemptOutcome::Responded(response),
            _ => AttemptOutcome::Blocked(found),
        },
        Err(_) => AttemptOutcome::Responded(Ok(Problem::unavailable().into_response())),
    };
    respond(reply, outcome);
}
