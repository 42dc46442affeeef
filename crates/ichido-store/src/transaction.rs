//! Transactions that are written once for both databases.

use sqlx::{Connection as _, PgConnection};

use crate::action::Action;
use crate::columns::number;
use crate::driver::Driver;
use crate::error::StoreError;
use crate::ledger::{KeySettle, KeySettled};
use crate::message::Numbered;
use crate::placement::excerpt;
use crate::postgres::Postgres;
use crate::sqlite::{Sqlite, Writing};
use crate::statement::{Connection, Value, paired};

/// A transaction that writes.
pub(crate) enum Transaction<'t> {
    Postgres(&'t mut PgConnection, &'t Postgres),
    Sqlite(&'t mut Writing, &'t Sqlite),
}

impl Driver {
    /// Writes in one transaction. It is rolled back when there turns out to be nothing to do, and `work` returns `None`.
    pub(crate) async fn transact<T>(
        &self,
        work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match self {
            Self::Postgres(postgres) => {
                let work = async |connection: &mut PgConnection| {
                    let mut transaction = connection.begin().await?;
                    let done = work(&mut Transaction::Postgres(&mut transaction, postgres)).await?;
                    match done {
                        Some(_) => transaction.commit().await?,
                        None => transaction.rollback().await?,
                    }
                    Ok(done)
                };
                postgres.talk(work).await
            }
            Self::Sqlite(sqlite) => {
                let mut writing = sqlite.write().await?;
                let done = work(&mut Transaction::Sqlite(&mut writing, sqlite)).await?;
                match done {
                    Some(_) => writing.commit().await?,
                    None => writing.rollback().await?,
                }
                Ok(done)
            }
        }
    }
}

impl Transaction<'_> {
    pub(crate) fn connection(&mut self) -> Connection<'_> {
        match self {
            Self::Postgres(connection, postgres) => postgres.connection(connection),
            Self::Sqlite(writing, _) => writing.either(),
        }
    }

    /// Adds an operator's action to the trail.
    pub(crate) async fn record(&mut self, action: &Action) -> Result<(), StoreError> {
        let detail = action.detail.as_deref().map(excerpt);
        let mut values = vec![
            action.subject.into(),
            Value::Now,
            (&*action.from).into(),
            (&*action.to).into(),
            (&*action.kind).into(),
            "none".into(),
            detail.as_deref().into(),
            action.actor.as_deref().into(),
            (&*action.about).into(),
        ];
        if let Self::Sqlite(writing, _) = self {
            // PostgreSQL draws it by itself.
            values.push(number(writing.draw_one()?).into());
        }
        self.connection().execute(paired!("action_add"), &values).await.map(drop)
    }

    pub(crate) async fn enqueue(&mut self, messages: &[Numbered]) -> Result<(), StoreError> {
        match self {
            _ if messages.is_empty() => Ok(()),
            Self::Postgres(connection, postgres) => postgres.enqueue_in(connection, messages).await.map(drop),
            Self::Sqlite(writing, _) => writing.enqueue(messages).await,
        }
    }

    pub(crate) async fn settle(&mut self, settle: &KeySettle) -> Result<KeySettled, StoreError> {
        match self {
            Self::Postgres(connection, postgres) => postgres.settle_in(connection, settle).await,
            Self::Sqlite(writing, sqlite) => sqlite.settle_in(writing.connection(), settle).await,
        }
    }
}
