//! Runs a handler under a claim, in a transaction that ends with its outcome: both commit, or neither.

use http::Response;
use ichido_core::ledger::Settled;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyOutcome, KeySettled};
use tokio::time::timeout;

use super::attempt::{AttemptOutcome, ResponseSender, respond};
use super::body::Body;
use super::claim_guard::{ClaimGuard, panicked};
use super::handler::{self, HandlerOutcome};
use super::problem::{Code, Problem};
use super::response::CapturedResponse;
use super::service::{Inner, Payload};
use super::settings::limits;
use crate::handler_tx::{CommitOutcome, END_TIMEOUT, HandlerTx, OpenTx, Pool, TxProgress};

/// Runs the handler, repeats it on conflicts, and ends the transaction with the outcome.
pub(crate) async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    guard: ClaimGuard,
    pool: &Pool,
    mut inner: S,
    reply: ResponseSender<R, S::Error>,
) {
    for run in 1..=limits::MAX_RUNS {
        let fresh = inner.clone();
        let handler_tx = HandlerTx::new(guard.store(), pool);
        let mut request = guard.request();
        handler_tx.lend(request.extensions_mut());
        let (outcome, response, run_again) = match handler::call(&mut inner, request).await {
            HandlerOutcome::Responded(response) => {
                let captured = CapturedResponse::from(response, guard.settings()).await;
                let outcome = captured.to_outcome(guard.settings());
                (outcome, Ok(captured.response), captured.run_again)
            }
            HandlerOutcome::Failed(error) => (KeyOutcome::Release, Err(error), false),
            HandlerOutcome::Panicked => (KeyOutcome::Release, Ok(panicked()), false),
        };
        match end(&guard, handler_tx, outcome, run_again && run < limits::MAX_RUNS).await {
            TransactionEnd::Committed => {
                guard.committed();
                return respond(reply, AttemptOutcome::Responded(response));
            }
            TransactionEnd::RolledBack(outcome) => return guard.finish(outcome, response, reply).await,
            TransactionEnd::Failed(problem) => {
                return guard.finish(KeyOutcome::Release, Ok(problem.into_response()), reply).await;
            }
            TransactionEnd::Leaked(problem) => {
                // Settling may have to wait for the holder of the transaction; the response does not.
                respond(reply, AttemptOutcome::Responded(Ok(problem.into_response())));
                return guard.settle_later(KeyOutcome::Release).await;
            }
            TransactionEnd::Overtaken => return claim_lost(guard, reply).await,
            TransactionEnd::InDoubt => return read_back(guard, response, reply).await,
            TransactionEnd::Retry => inner = fresh,
        }
        if let Err(error) = handler::ready(&mut inner).await {
            return guard.finish(KeyOutcome::Release, Err(error), reply).await;
        }
    }
    let problem = Problem::contended().into_response();
    guard.finish(KeyOutcome::Release, Ok(problem), reply).await;
}

/// How a handler's transaction ended.
pub(crate) enum TransactionEnd {
    /// Committed with its outcome.
    Committed,
    /// Rolled back; this is to be settled.
    RolledBack(KeyOutcome),
    /// Rolled back; this is the response.
    Failed(Problem),
    /// Still locked. It rolls back on release.
    Leaked(Problem),
    /// Rolled back: another request has the key.
    Overtaken,
    /// The outcome is unknown.
    InDoubt,
    /// Rolled back after a conflict; can be run again.
    Retry,
}

/// Ends a transaction with the outcome of its claim.
async fn end(
    guard: &ClaimGuard,
    handler_tx: HandlerTx,
    outcome: KeyOutcome,
    run_again: bool,
) -> TransactionEnd {
    let (open, outcome) = match take_back(handler_tx, outcome, run_again).await {
        Ok(applied) => applied,
        Err(end) => return end,
    };
    let settle = guard.to_settle(outcome);
    commit(open, async |open| Ok(open.settle_key(&settle).await? == KeySettled::Settled)).await
}

/// Takes the transaction back, if it is to be committed: only an applied outcome is. Otherwise it is rolled back.
pub(crate) async fn take_back(
    handler_tx: HandlerTx,
    outcome: KeyOutcome,
    run_again: bool,
) -> Result<(OpenTx, KeyOutcome), TransactionEnd> {
    if handler_tx.progress() == TxProgress::Failed {
        // Whatever the handler made of it.
        tracing::error!("failed to begin a handler's transaction");
        return Err(TransactionEnd::Failed(Problem::unavailable()));
    }
    let Some(open) = handler_tx.take_back().await else {
        tracing::error!("handler responded with its transaction still locked; rolling back");
        let detail = "the service held its transaction after it responded, so nothing was done";
        return Err(TransactionEnd::Leaked(Problem::new(Code::TransactionFailed, detail)));
    };
    let is_applied = matches!(outcome, KeyOutcome::Keep { settled: Settled::Applied, .. });
    if is_applied && !run_again {
        return Ok((open, outcome));
    }
    Err(match open.roll_back().await {
        true => ended_early(),
        false if run_again => TransactionEnd::Retry,
        false => TransactionEnd::RolledBack(outcome),
    })
}

/// Writes an outcome as the last statement of a transaction, and commits it if `write` says that it was written.
pub(crate) async fn commit(
    mut open: OpenTx,
    write: impl AsyncFnOnce(&mut OpenTx) -> Result<bool, StoreError>,
) -> TransactionEnd {
    let written = timeout(END_TIMEOUT, write(&mut open)).await;
    // Without a COMMIT, the end of the connection rolls back.
    let Ok(written) = written else { return TransactionEnd::Failed(Problem::unavailable()) };
    match written {
        Ok(true) => (),
        Ok(false) => {
            return if open.roll_back().await { ended_early() } else { TransactionEnd::Overtaken };
        }
        Err(error) => {
            return if open.roll_back().await { ended_early() } else { failed(&error) };
        }
    }
    let committed = timeout(END_TIMEOUT, open.commit()).await;
    let Ok(committed) = committed else { return TransactionEnd::InDoubt };
    match committed {
        CommitOutcome::Done => TransactionEnd::Committed,
        CommitOutcome::Contended => TransactionEnd::Retry,
        CommitOutcome::Refused(error) => failed(&error),
        CommitOutcome::InDoubt(error) => {
            tracing::warn!(error = error.with_causes(), "commit outcome unknown; reading it back");
            TransactionEnd::InDoubt
        }
    }
}

/// A transaction that the handler or the database has ended: whether it committed is not known, so no response is stored.
fn ended_early() -> TransactionEnd {
    let detail = "the service's transaction had ended before it responded, so its work may be done or lost; it must run no \
        COMMIT or ROLLBACK";
    TransactionEnd::Failed(Problem::new(Code::TransactionFailed, detail))
}

/// Maps a database error at settlement; everything before it was rolled back.
fn failed(error: &StoreError) -> TransactionEnd {
    match error {
        StoreError::Busy => TransactionEnd::Retry,
        StoreError::Unavailable(_)
        | StoreError::Unknown(_)
        | StoreError::Full
        | StoreError::FileLost { .. } => TransactionEnd::Failed(Problem::unavailable()),
        _ => {
            tracing::error!(error = error.with_causes(), "failed to commit a handler's transaction");
            let detail =
                "the service responded, but its transaction had failed or was refused, so nothing was done";
            TransactionEnd::Failed(Problem::new(Code::TransactionFailed, detail))
        }
    }
}

/// Responds for a run whose transaction did not find its claim and was rolled back.
///
/// It never returns the handler's response, because nothing was done.
async fn claim_lost<R: Payload, E>(guard: ClaimGuard, reply: ResponseSender<R, E>) {
    if guard.is_current().await {
        let problem = wrong_database().into_response();
        return guard.finish(KeyOutcome::Release, Ok(problem), reply).await;
    }
    guard.overtaken(Ok(Problem::unavailable().into_response()), reply).await;
}

/// Describes a pool on another database than the store's.
pub(crate) fn wrong_database() -> Problem {
    tracing::error!(
        "handler's transaction does not see the store's tables; give the layer a pool on the store's database"
    );
    let detail = "the service's transaction is on the wrong database, so nothing was done";
    Problem::new(Code::TransactionFailed, detail)
}

/// Finds out whether a commit took place by releasing the key.
///
/// The release needs the row that the commit wrote: it waits for a commit still in flight, and finds nothing to release
/// after a completed one.
async fn read_back<R: Payload, E>(
    guard: ClaimGuard,
    response: Result<Response<Body<R>>, E>,
    reply: ResponseSender<R, E>,
) {
    let unavailable = || Ok(Problem::unavailable().into_response());
    match guard.settle(KeyOutcome::Release).await {
        Ok(KeySettled::AlreadySettled) => {
            guard.committed();
            respond(reply, AttemptOutcome::Responded(response));
        }
        Ok(KeySettled::Settled) => respond(reply, AttemptOutcome::Responded(unavailable())),
        Ok(KeySettled::Stale) => guard.overtaken(unavailable(), reply).await,
        Err(_) => {
            respond(reply, AttemptOutcome::Responded(unavailable()));
            guard.settle_later(KeyOutcome::Release).await;
        }
    }
}
