//! People, and where they are signed in.

use std::fmt;

use ichido_core::time::Timestamp;
use ichido_store::Store;
use uuid::Uuid;

use crate::credential::Credential;
use crate::database::{Connection, Database, on};
use crate::problem::Problem;
use crate::settings::limits;

/// Somebody who has bookmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Who it is, whatever the name.
    pub id: Uuid,
    /// The name.
    pub name: String,
}

/// Why somebody cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// No name.
    #[error("a name is 1 to {} bytes of visible text", limits::NAME_BYTES_MAX)]
    NotAName,
    /// Somebody has it.
    #[error("there is somebody of this name")]
    Taken,
    /// The database, or the system's randomness, failed.
    #[error("{0}")]
    Failed(String),
}

impl NameError {
    fn failed(error: &dyn fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Adds somebody; the token is shown now and never again.
pub(crate) async fn add(database: &Database, store: &Store, name: &str) -> Result<Credential, NameError> {
    const SQL: &str = "INSERT INTO people (id, name, token_hash, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING";
    let is_name = (1..=limits::NAME_BYTES_MAX).contains(&name.len()) && !name.chars().any(char::is_control);
    if !is_name || name.trim() != name {
        return Err(NameError::NotAName);
    }
    let token = Credential::draw(Uuid::now_v7()).map_err(|error| NameError::failed(&error))?;
    let now = store.now().await.map_err(|error| NameError::failed(&error))?;
    let mut held = database.connect().await.map_err(|error| NameError::failed(&error))?;
    let added = on!(held.connection(), c => {
        let insert = sqlx::query(SQL).bind(token.id()).bind(name).bind(token.hash().to_vec());
        insert.bind(now.as_micros()).execute(c).await.map(|done| done.rows_affected())
    });
    match added {
        Ok(1) => Ok(token),
        Ok(_) => Err(NameError::Taken),
        Err(error) => Err(NameError::failed(&error)),
    }
}

/// Everybody, by name.
pub(crate) async fn list(database: &Database) -> Result<Vec<Person>, sqlx::Error> {
    let mut held = database.connect().await?;
    let rows: Vec<(Uuid, String)> = on!(held.connection(), c => {
        sqlx::query_as("SELECT id, name FROM people ORDER BY name").fetch_all(c).await
    })?;
    Ok(rows.into_iter().map(|(id, name)| Person { id, name }).collect())
}

/// Whose token this is.
pub(crate) async fn by_token(
    connection: &mut Connection<'_>,
    token: &Credential,
) -> Result<Option<Person>, sqlx::Error> {
    const SQL: &str = "SELECT name, token_hash FROM people WHERE id = $1";
    let found: Option<(String, Vec<u8>)> =
        on!(connection, c => sqlx::query_as(SQL).bind(token.id()).fetch_optional(&mut **c).await)?;
    let found = found.filter(|(_, hash)| token.fits(hash));
    Ok(found.map(|(name, _)| Person { id: token.id(), name }))
}

/// Who is signed in by this session.
pub(crate) async fn by_session(
    connection: &mut Connection<'_>,
    session: &Credential,
    now: Timestamp,
) -> Result<Option<Person>, sqlx::Error> {
    const SQL: &str = "\
        SELECT p.id, p.name, s.hash FROM sessions s JOIN people p ON p.id = s.person_id
        WHERE s.id = $1 AND s.expires_at > $2";
    let found: Option<(Uuid, String, Vec<u8>)> = on!(connection, c => {
        sqlx::query_as(SQL).bind(session.id()).bind(now.as_micros()).fetch_optional(&mut **c).await
    })?;
    let found = found.filter(|(.., hash)| session.fits(hash));
    Ok(found.map(|(id, name, _)| Person { id, name }))
}

/// Signs somebody in, and forgets the sessions that are over.
pub(crate) async fn sign_in(
    connection: &mut Connection<'_>,
    person: &Person,
    now: Timestamp,
) -> Result<Credential, Problem> {
    const OVER: &str = "DELETE FROM sessions WHERE expires_at <= $1";
    const SQL: &str = "INSERT INTO sessions (id, person_id, hash, expires_at) VALUES ($1, $2, $3, $4)";
    let session = Credential::draw(Uuid::now_v7())?;
    let until = now.plus(limits::SESSION_FOR);
    on!(connection, c => {
        sqlx::query(OVER).bind(now.as_micros()).execute(&mut **c).await?;
        let insert = sqlx::query(SQL).bind(session.id()).bind(person.id).bind(session.hash().to_vec());
        insert.bind(until.as_micros()).execute(&mut **c).await?;
    });
    Ok(session)
}

/// Ends a session.
pub(crate) async fn sign_out(
    connection: &mut Connection<'_>,
    session: &Credential,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "DELETE FROM sessions WHERE id = $1 AND hash = $2";
    on!(connection, c => {
        let ended = sqlx::query(SQL).bind(session.id()).bind(session.hash().to_vec());
        ended.execute(&mut **c).await.map(drop)
    })
}
