//! Running a handler in a transaction that ends with its outcome: both commit, or neither. What fails has not happened.

use http::Response;
use ichido_core::ledger::Settled;
use ichido_store::error::StoreError;
use ichido_store::ledger::{KeyOutcome, KeySettled};

use super::attempt::{Answer, Came, tell};
use super::body::Body;
use super::handler::{self, Ran};
use super::kept::Heard;
use super::owner::{Owner, panicked};
use super::problem::{Code, Problem};
use super::service::{Inner, Payload};
use super::settings::{Pool, limits};
use super::transaction::{Committed, Lent};

/// Runs the handler, again where its transaction meets others, and ends the transaction with the outcome.
pub(crate) async fn run<S: Inner<B, R>, B: Payload, R: Payload>(
    owner: Owner,
    pool: &Pool,
    mut inner: S,
    answer: Answer<R, S::Error>,
) {
    for run in 1..=limits::RUNS_MAX {
        let fresh = inner.clone();
        let Ok(lent) = Lent::begin(pool).await.inspect_err(|error| {
            tracing::error!(error = error.in_full(), "a handler's transaction could not be begun");
        }) else {
            let problem = Problem::unavailable().into_response();
            return owner.finish(KeyOutcome::Release, Ok(problem), answer).await;
        };
        let mut request = owner.request();
        lent.lend(request.extensions_mut());
        let (outcome, response, run_again) = match handler::call(&mut inner, request).await {
            Ran::Responded(response) => {
                let heard = Heard::from(response, owner.settings()).await;
                (owner.outcome(&heard), Ok(heard.response), heard.run_again)
            }
            Ran::Failed(error) => (KeyOutcome::Release, Err(error), false),
            Ran::Panicked => (KeyOutcome::Release, Ok(panicked()), false),
        };
        match end(&owner, lent, outcome, run_again && run < limits::RUNS_MAX).await {
            End::Committed => return tell(answer, Came::Answered(response)),
            End::RolledBack(outcome) => return owner.finish(outcome, response, answer).await,
            End::Failed(problem) => {
                return owner.finish(KeyOutcome::Release, Ok(problem.into_response()), answer).await;
            }
            End::Leaked(problem) => {
                // Settling may have to wait for whoever holds the transaction; the answer does not.
                tell(answer, Came::Answered(Ok(problem.into_response())));
                return owner.settle_later(KeyOutcome::Release).await;
            }
            End::NotTheOwner => return not_the_owner(owner, answer).await,
            End::InDoubt => return read_back(owner, response, answer).await,
            End::Again => inner = fresh,
        }
        if let Err(error) = handler::ready(&mut inner).await {
            return owner.finish(KeyOutcome::Release, Err(error), answer).await;
        }
    }
    let problem = Problem::contended().into_response();
    owner.finish(KeyOutcome::Release, Ok(problem), answer).await;
}

/// How a handler's transaction ended.
enum End {
    /// With its outcome.
    Committed,
    /// Rolled back, and this is to be settled.
    RolledBack(KeyOutcome),
    /// Rolled back, and this is to be said.
    Failed(Problem),
    /// Not yet: somebody still holds it. It rolls back when it is let go.
    Leaked(Problem),
    /// Rolled back: the transaction found no claim of ours.
    NotTheOwner,
    /// Nobody knows.
    InDoubt,
    /// Rolled back: it met another, and can be run again.
    Again,
}

/// Ends a transaction as its outcome wants it: only what took effect commits.
async fn end(owner: &Owner, lent: Lent, outcome: KeyOutcome, run_again: bool) -> End {
    let Some(mut open) = lent.take_back().await else {
        tracing::error!("a handler has answered and its transaction is still locked; it will be rolled back");
        let detail = "the service kept its transaction beyond its answer, so nothing was done";
        return End::Leaked(Problem::new(Code::TransactionFailed, detail));
    };
    let is_applied = matches!(outcome, KeyOutcome::Keep { settled: Settled::Applied, .. });
    if run_again || !is_applied {
        open.roll_back().await;
        return if run_again { End::Again } else { End::RolledBack(outcome) };
    }
    match open.settle(owner.store(), &owner.settle_of(outcome)).await {
        Ok(KeySettled::Stands) => (),
        Ok(KeySettled::AlreadySettled | KeySettled::Stale) => {
            open.roll_back().await;
            return End::NotTheOwner;
        }
        Err(error) => {
            open.roll_back().await;
            return failed(&error);
        }
    }
    match open.commit(owner.store()).await {
        Committed::Done => {
            owner.committed();
            End::Committed
        }
        Committed::Met => End::Again,
        Committed::Refused(error) => failed(&error),
        Committed::InDoubt(error) => {
            tracing::warn!(error = error.in_full(), "the fate of a commit is not known; it is read back");
            End::InDoubt
        }
    }
}

/// What it means that the database refused the outcome, and with it everything before.
fn failed(error: &StoreError) -> End {
    match error {
        StoreError::Busy => End::Again,
        StoreError::Unavailable(_)
        | StoreError::Unknown(_)
        | StoreError::Full
        | StoreError::FileLost { .. } => End::Failed(Problem::unavailable()),
        _ => {
            tracing::error!(
                error = error.in_full(),
                "a handler answered, and its transaction could not be committed"
            );
            let detail =
                "the service answered, but its transaction had failed or was refused, so nothing was done";
            End::Failed(Problem::new(Code::TransactionFailed, detail))
        }
    }
}

/// Answers for a run whose transaction found no claim of its own and was rolled back: never with the handler's answer, because
/// nothing was done.
async fn not_the_owner<R: Payload, E>(owner: Owner, answer: Answer<R, E>) {
    if owner.is_current().await {
        tracing::error!(
            "a handler's transaction does not see the store's tables; give the layer a pool on the store's own database"
        );
        let detail =
            "the service's transaction is not on the database that it should be on, so nothing was done";
        let problem = Problem::new(Code::TransactionFailed, detail).into_response();
        return owner.finish(KeyOutcome::Release, Ok(problem), answer).await;
    }
    owner.overtaken(Ok(Problem::unavailable().into_response()), answer).await;
}

/// Finds out whether a commit was done. Giving the key back decides it: that needs the row which the commit wrote, so it waits
/// for one that is still under way, and finds nothing to give back after one that was done.
async fn read_back<R: Payload, E>(
    owner: Owner,
    response: Result<Response<Body<R>>, E>,
    answer: Answer<R, E>,
) {
    let unavailable = || Ok(Problem::unavailable().into_response());
    match owner.settle(KeyOutcome::Release).await {
        Ok(KeySettled::AlreadySettled) => {
            owner.committed();
            tell(answer, Came::Answered(response));
        }
        Ok(KeySettled::Stands) => tell(answer, Came::Answered(unavailable())),
        Ok(KeySettled::Stale) => owner.overtaken(unavailable(), answer).await,
        Err(_) => {
            tell(answer, Came::Answered(unavailable()));
            owner.settle_later(KeyOutcome::Release).await;
        }
    }
}
