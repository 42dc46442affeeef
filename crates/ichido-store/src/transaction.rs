//! Transactions that are written once for both databases.

use ichido_core::time::Timestamp;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::action::Action;
use crate::columns::{Columns as _, number};
use crate::driver::Driver;
use crate::error::StoreError;
use crate::ledger::{KeySettle, KeySettled};
use crate::letter::LetterRow;
use crate::message::{Enqueued, Numbered};
use crate::placement::{Moves, excerpt};
use crate::postgres::{self, Postgres};
use crate::rows::letter_row;
use crate::sqlite::{self, Sqlite, Writing};
use crate::statement::{Connection, Value, paired};

/// How often a letter that is being changed is looked for.
const LOOKS_MAX: usize = 8;

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

    /// Puts one message in, which may be compared by content.
    pub(crate) async fn enqueue_content(&mut self, message: &Numbered) -> Result<Enqueued, StoreError> {
        match self {
            Self::Postgres(connection, postgres) => postgres.enqueue_content(connection, message).await,
            Self::Sqlite(writing, sqlite) => sqlite.enqueue_content(writing.connection(), message).await,
        }
    }

    pub(crate) async fn settle(&mut self, settle: &KeySettle) -> Result<KeySettled, StoreError> {
        match self {
            Self::Postgres(connection, postgres) => postgres.settle_in(connection, settle).await,
            Self::Sqlite(writing, sqlite) => sqlite.settle_in(writing.connection(), settle).await,
        }
    }

    /// The letters among these messages, nobody else's until the transaction ends; and what time it is.
    pub(crate) async fn letters(&mut self, ids: &[Uuid]) -> Result<(Vec<LetterRow>, Timestamp), StoreError> {
        let values = [ids.into(), Value::Now];
        let rows = self.connection().all(paired!("letter_lock", "letter_find"), &values).await?;
        let now = match (&*self, rows.first()) {
            (Self::Sqlite(writing, _), _) => writing.now(),
            (Self::Postgres(..), Some(row)) => row.moment("now")?,
            (Self::Postgres(..), None) => Timestamp::EPOCH,
        };
        Ok((rows.iter().map(letter_row).collect::<Result<_, _>>()?, now))
    }

    /// The same for one message. On PostgreSQL a change takes its row away and puts another there, and who waited for the first sees
    /// neither: a statement of its own, whose snapshot is newer, finds the second.
    pub(crate) async fn letter(&mut self, id: Uuid) -> Result<(Vec<LetterRow>, Timestamp), StoreError> {
        let looks_max = match self {
            Self::Postgres(..) => LOOKS_MAX,
            Self::Sqlite(..) => 1,
        };
        let mut looked = self.letters(&[id]).await?;
        for _ in 1..looks_max {
            if !looked.0.is_empty() {
                break;
            }
            looked = self.letters(&[id]).await?;
        }
        Ok(looked)
    }

    /// Takes letters away and writes what becomes of them.
    pub(crate) async fn move_letters(&mut self, moves: &Moves) -> Result<(), StoreError> {
        if moves.taken.is_empty() {
            return Ok(());
        }
        self.connection().execute(paired!("letter_take"), &[Value::Ids(&moves.taken)]).await?;
        match self {
            Self::Postgres(connection, postgres) => {
                postgres::step::apply(connection, moves, postgres.skew()).await
            }
            Self::Sqlite(writing, _) => sqlite::step::apply(writing, moves).await,
        }
    }
}
