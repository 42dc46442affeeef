//! Ends the transaction of a handler together with its message: both commit, or neither.
//!
//! The fence is checked by the last statement before COMMIT, so a worker whose claim was lost or has expired commits nothing,
//! and no lock is held while the handler runs. What did not commit was not done: nothing here is ever in doubt, except the
//! fate of a COMMIT whose response was lost, and that is read back.
// Spec: H1.

use std::time::Duration;

use ichido_core::lifecycle::Event;
use ichido_core::time::Timestamp;
use ichido_core::verdict::{Advice, Effect};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::{Settlement, StepResult};

use super::attempt::{Attempt, AttemptReport};
use super::metrics;
use crate::destination::{DeliveryOutcome, JobError};
use crate::handler_tx::{CommitOutcome, END_TIMEOUT, HandlerTx, OpenTx, Pool};

/// The transactions of a destination's handlers.
pub(super) struct Transactions {
    pub(super) pool: Pool,
    /// How long one may be open on SQLite, where it blocks every other writer.
    pub(super) timeout: Duration,
}

impl Transactions {
    pub(super) fn handler_tx(&self, store: &Store) -> HandlerTx {
        HandlerTx::new(store, &self.pool)
    }

    fn limit(&self) -> Option<Duration> {
        matches!(self.pool, Pool::Sqlite(_)).then_some(self.timeout)
    }
}

/// How an attempt ended, and what is left to settle.
pub(super) enum AttemptEnd {
    /// This is to be settled.
    Report(AttemptReport),
    /// This success was committed with the handler's writes.
    Committed(Box<Settlement>),
    /// The success was committed, or the failure is to be settled.
    InDoubt { success: Box<Settlement>, failure: AttemptReport },
}

/// The end of a transaction.
enum TransactionEnd {
    Committed,
    /// It had ended before the handler did.
    EndedEarly,
    /// Rolled back, and why.
    RolledBack(String),
    /// The response to COMMIT was lost.
    InDoubt(String),
}

impl Attempt {
    /// Waits until a transaction has been open for too long. Returns the outcome of its run.
    pub(super) async fn wait_until_overdue(&self, tx: Option<&HandlerTx>) -> DeliveryOutcome {
        let limit = self.served.dispatcher.transactions.as_ref().and_then(Transactions::limit);
        let (Some(tx), Some(limit)) = (tx, limit) else { return std::future::pending().await };
        tx.begun().await;
        tokio::time::sleep(limit).await;
        metrics::count(metrics::TX_TIMEOUTS, self.served.name.as_str(), 1);
        JobError::retry(format_args!(
            "the transaction was open for longer than tx_timeout, {limit:?}, and was rolled back; enqueue with its \
                own enqueue(…), do slow work before the first lock(), or raise tx_timeout"
        ))
        .into()
    }

    /// Ends a transaction by the outcome of its handler: only a success commits.
    pub(super) async fn end_transaction(
        &self,
        tx: HandlerTx,
        report: AttemptReport,
        started_at: Timestamp,
    ) -> AttemptEnd {
        let Some(open) = tx.take_back().await else {
            let why = "the handler kept its transaction locked after it returned, so it was rolled back";
            // On SQLite nobody can write until it is released, so this may be all that is seen.
            tracing::warn!(queue = self.served.name.as_str(), message_id = %self.leased.work.id, "handler kept its transaction locked after it returned; drop every lock before");
            return AttemptEnd::Report(self.not_done(why, started_at));
        };
        if !matches!(report.event, Event::Succeeded { .. }) {
            let had_ended = open.roll_back().await;
            return AttemptEnd::Report(if had_ended { self.ended_early(started_at) } else { report });
        }
        let success = Box::new(Settlement::new(&self.leased.work, report.event, report.note));
        // Not abandoned when the worker stops: the response to COMMIT would be lost.
        match self.commit(open, &success).await {
            TransactionEnd::Committed => AttemptEnd::Committed(success),
            TransactionEnd::EndedEarly => AttemptEnd::Report(self.ended_early(started_at)),
            TransactionEnd::RolledBack(why) => AttemptEnd::Report(self.not_done(&why, started_at)),
            TransactionEnd::InDoubt(why) => {
                AttemptEnd::InDoubt { success, failure: self.not_done(&why, started_at) }
            }
        }
    }

    /// Settles the message in its handler's transaction, under its fence, and commits.
    async fn commit(&self, mut open: OpenTx, success: &Settlement) -> TransactionEnd {
        let failed = |what: &str, error: &StoreError| format!("{what}: {}", error.with_causes());
        match tokio::time::timeout(END_TIMEOUT, open.settle_message(success)).await {
            Ok(Ok(StepResult::Now(_))) => (),
            Ok(Ok(StepResult::Refused(_) | StepResult::NoSuchMessage)) => {
                if open.roll_back().await {
                    return TransactionEnd::EndedEarly;
                }
                if self.leased.claim.lease.holds_now() {
                    tracing::error!(
                        queue = self.served.name.as_str(),
                        "handler's transaction does not see its claim; give the worker a pool on the store's database"
                    );
                }
                return TransactionEnd::RolledBack(
                    "the claim was lost before the transaction ended, so it was rolled back".to_owned(),
                );
            }
            Ok(Err(error)) => {
                if open.roll_back().await {
                    return TransactionEnd::EndedEarly;
                }
                return TransactionEnd::RolledBack(failed("the transaction was rolled back", &error));
            }
            // Without a COMMIT, the end of the connection rolls back.
            Err(_) => {
                return TransactionEnd::RolledBack(
                    "the database did not answer, so nothing was committed".to_owned(),
                );
            }
        }
        match tokio::time::timeout(END_TIMEOUT, open.commit()).await {
            Ok(CommitOutcome::Done) => TransactionEnd::Committed,
            Ok(CommitOutcome::Contended) => TransactionEnd::RolledBack(
                "the transaction conflicted with another one and was rolled back".to_owned(),
            ),
            Ok(CommitOutcome::Refused(error)) => {
                TransactionEnd::RolledBack(failed("the transaction was rolled back", &error))
            }
            Ok(CommitOutcome::InDoubt(error)) => TransactionEnd::InDoubt(failed("COMMIT failed", &error)),
            Err(_) => TransactionEnd::InDoubt("the database did not answer COMMIT".to_owned()),
        }
    }

    /// Returns the report of a run that was rolled back.
    fn not_done(&self, why: &str, started_at: Timestamp) -> AttemptReport {
        self.report(JobError::retry(why).into(), started_at)
    }

    /// Returns the report of a run whose transaction had ended before it: nobody knows whether it committed.
    fn ended_early(&self, started_at: Timestamp) -> AttemptReport {
        let why = "the transaction had ended before the handler returned, so its writes may be committed or lost; run no \
            COMMIT or ROLLBACK in a handler, and decide whether the work was done";
        self.report(JobError::unknown(why).into(), started_at)
    }
}

/// Returns what is known of a run in a transaction: without its commit, nothing was done.
pub(super) fn without_doubt(outcome: DeliveryOutcome) -> DeliveryOutcome {
    match outcome {
        DeliveryOutcome::Judged { mut verdict, note } => {
            if !matches!(verdict.advice, Advice::Accept | Advice::AcceptAsProcessed) {
                verdict.effect = Effect::NotDone;
            }
            DeliveryOutcome::Judged { verdict, note }
        }
        snoozed @ DeliveryOutcome::Snoozed { .. } => snoozed,
    }
}
