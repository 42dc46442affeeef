//! Whether a caller's transaction is still open.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use crate::error::StoreError;

/// The state of a transaction that its owner has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// It is open.
    Open,
    /// It can only be rolled back: a statement failed, or the connection broke.
    Failed,
    /// It can only be rolled back: a call that enqueued many messages failed, and some of them may be in it.
    Partial,
    /// A statement of its user's, such as `COMMIT`, has ended it, or the database itself.
    Ended,
}

impl TransactionState {
    /// Fails unless it is open.
    pub fn check(self) -> Result<(), StoreError> {
        let why = match self {
            Self::Open => return Ok(()),
            Self::Failed => "a statement of the transaction failed, so it can only be rolled back",
            Self::Partial => {
                "a call enqueued only some of its messages, so the transaction can only be rolled back"
            }
            Self::Ended => {
                "the transaction has ended before its commit: by a COMMIT or ROLLBACK statement, a full disk or an I/O error"
            }
        };
        Err(StoreError::Refused(sqlx::Error::Protocol(why.to_owned())))
    }

    /// Returns the state of a transaction that [`StoreDatabase::begin`](crate::StoreDatabase::begin) began on PostgreSQL.
    pub(crate) async fn on_postgres(transaction: &mut PgConnection) -> Self {
        let probe = include_str!("postgres/sql/transaction_probe.sql");
        match sqlx::query(probe).fetch_one(transaction).await.and_then(|row| row.try_get("is_open")) {
            Ok(true) => Self::Open,
            Ok(false) => Self::Ended,
            Err(_) => Self::Failed,
        }
    }
}
