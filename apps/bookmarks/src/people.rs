//! People and their sessions.

use ichido::store::Store;
use ichido::store::error::StoreError;
use ichido::time::Timestamp;
use uuid::Uuid;

use crate::credential::Credential;
use crate::database::{AppDatabase, DbConnection, on};
use crate::problem::Problem;
use crate::reading::turns_direction;
use crate::settings::limits;

/// A person who has bookmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// The id, which does not depend on the name.
    pub id: Uuid,
    /// The name.
    pub name: String,
}

/// Why a person cannot be added, renewed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    /// The name is invalid.
    #[error(
        "a name must have 1 to {} bytes, without control characters or surrounding spaces",
        limits::MAX_NAME_BYTES
    )]
    NotAName,
    /// The name is taken.
    #[error("the name is taken; choose another")]
    Taken,
    /// Nobody has this name.
    #[error("nobody has this name; {}", who(.there_are))]
    Unknown {
        /// The names that exist.
        there_are: Vec<String>,
    },
    /// A running job of this person does not end.
    #[error(
        "the person can no longer sign in and the bookmarks were deleted, but a running job has not finished; make \
         sure the service is running, then run this command again"
    )]
    AtWork,
    /// The database or the system's random generator failed.
    #[error("{0}")]
    Failed(String),
}

impl From<sqlx::Error> for PersonError {
    fn from(error: sqlx::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<getrandom::Error> for PersonError {
    fn from(error: getrandom::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<StoreError> for PersonError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.with_causes())
    }
}

/// Lists the existing names, or the first of them if they are many.
fn who(names: &[String]) -> String {
    let shown = names.iter().take(limits::MAX_NAMES_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "nobody was added yet".to_owned(),
        count if limits::MAX_NAMES_SHOWN < count => format!("known names: {shown} and more"),
        _ => format!("known names: {shown}"),
    }
}

/// Adds a person. The token is shown once and never again.
pub(crate) async fn add(
    database: &AppDatabase,
    store: &Store,
    name: &str,
) -> Result<Credential, PersonError> {
    const SQL: &str = "INSERT INTO people (id, name, token_hash, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING";
    let name: &str = &name.chars().filter(|c| !turns_direction(*c)).collect::<String>();
    let is_name = (1..=limits::MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
    if !is_name || name.trim() != name {
        return Err(PersonError::NotAName);
    }
    let token = Credential::draw(Uuid::now_v7())?;
    let now = store.now().await?;
    let mut pooled = database.connect().await?;
    let added = on!(pooled.connection(), c => {
        let insert = sqlx::query(SQL).bind(token.id()).bind(name).bind(token.hash().to_vec());
        insert.bind(now.as_micros()).execute(c).await.map(|done| done.rows_affected())
    })?;
    if added == 1 { Ok(token) } else { Err(PersonError::Taken) }
}

/// Lists people by name.
pub(crate) async fn list(database: &AppDatabase) -> Result<Vec<Person>, sqlx::Error> {
    let mut pooled = database.connect().await?;
    let rows: Vec<(Uuid, String)> = on!(pooled.connection(), c => {
        sqlx::query_as("SELECT id, name FROM people ORDER BY name").fetch_all(c).await
    })?;
    Ok(rows.into_iter().map(|(id, name)| Person { id, name }).collect())
}

/// Finds a person by name.
pub(crate) async fn by_name(database: &AppDatabase, name: &str) -> Result<Person, PersonError> {
    const SQL: &str = "SELECT id FROM people WHERE name = $1";
    let mut pooled = database.connect().await?;
    let found: Option<Uuid> =
        on!(pooled.connection(), c => sqlx::query_scalar(SQL).bind(name).fetch_optional(c).await)?;
    drop(pooled);
    let Some(id) = found else {
        let there_are = list(database).await?.into_iter().map(|person| person.name).collect();
        return Err(PersonError::Unknown { there_are });
    };
    Ok(Person { id, name: name.to_owned() })
}

/// Replaces a person's token, shown once. The old token and every session that it started end.
pub(crate) async fn renew(database: &AppDatabase, name: &str) -> Result<Credential, PersonError> {
    let person = by_name(database, name).await?;
    let mut open = database.begin().await?;
    let token = replace_token(&mut open.connection(), &person).await?;
    open.commit().await?;
    Ok(token)
}

/// Creates a new token for a person and ends every session.
pub(crate) async fn replace_token(
    connection: &mut DbConnection<'_>,
    person: &Person,
) -> Result<Credential, PersonError> {
    const TOKEN: &str = "UPDATE people SET token_hash = $1 WHERE id = $2";
    const SESSIONS: &str = "DELETE FROM sessions WHERE person_id = $1";
    let token = Credential::draw(person.id)?;
    token_hash_held(connection, person.id).await?;
    on!(connection, c => {
        sqlx::query(TOKEN).bind(token.hash().to_vec()).bind(person.id).execute(&mut **c).await?;
        sqlx::query(SESSIONS).bind(person.id).execute(&mut **c).await?;
    });
    Ok(token)
}

/// Returns the stored hash of a person's token and locks it until the transaction ends.
///
/// Until then nothing new can refer to the person. On SQLite a writing transaction is alone, so there is nothing to
/// lock.
pub(crate) async fn token_hash_held(
    connection: &mut DbConnection<'_>,
    person: Uuid,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    const POSTGRES: &str = "SELECT token_hash FROM people WHERE id = $1 FOR UPDATE";
    const SQLITE: &str = "SELECT token_hash FROM people WHERE id = $1";
    match connection {
        DbConnection::Postgres(c) => sqlx::query_scalar(POSTGRES).bind(person).fetch_optional(&mut **c).await,
        DbConnection::Sqlite(c) => sqlx::query_scalar(SQLITE).bind(person).fetch_optional(&mut **c).await,
    }
}

/// Returns the person with this token.
pub(crate) async fn by_token(
    connection: &mut DbConnection<'_>,
    token: &Credential,
) -> Result<Option<Person>, sqlx::Error> {
    const SQL: &str = "SELECT name, token_hash FROM people WHERE id = $1";
    let found: Option<(String, Vec<u8>)> =
        on!(connection, c => sqlx::query_as(SQL).bind(token.id()).fetch_optional(&mut **c).await)?;
    let found = found.filter(|(_, hash)| token.fits(hash));
    Ok(found.map(|(name, _)| Person { id: token.id(), name }))
}

/// Returns the person with this session.
pub(crate) async fn by_session(
    connection: &mut DbConnection<'_>,
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

/// Signs a person in with a token and deletes expired sessions; `None` if the token is not valid any more.
pub(crate) async fn sign_in(
    database: &AppDatabase,
    token: &Credential,
    now: Timestamp,
) -> Result<Option<Credential>, Problem> {
    const OVER: &str = "DELETE FROM sessions WHERE expires_at <= $1";
    const SQL: &str = "INSERT INTO sessions (id, person_id, hash, expires_at) VALUES ($1, $2, $3, $4)";
    let session = Credential::draw(Uuid::now_v7())?;
    let until = now.plus(limits::SESSION_FOR);
    let mut open = database.begin().await?;
    let mut connection = open.connection();
    // Locked, so a token that is renewed at this moment leaves no session behind.
    let hash = token_hash_held(&mut connection, token.id()).await?;
    if !hash.is_some_and(|hash| token.fits(&hash)) {
        return Ok(None);
    }
    on!(connection, c => {
        sqlx::query(OVER).bind(now.as_micros()).execute(&mut *c).await?;
        let insert = sqlx::query(SQL).bind(session.id()).bind(token.id()).bind(session.hash().to_vec());
        insert.bind(until.as_micros()).execute(&mut *c).await?;
    });
    open.commit().await?;
    Ok(Some(session))
}

/// Ends a session.
pub(crate) async fn sign_out(
    connection: &mut DbConnection<'_>,
    session: &Credential,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "DELETE FROM sessions WHERE id = $1 AND hash = $2";
    on!(connection, c => {
        let ended = sqlx::query(SQL).bind(session.id()).bind(session.hash().to_vec());
        ended.execute(&mut **c).await.map(drop)
    })
}
