//! The bookmarks' rows: every statement about them.
//!
//! Each function takes an open connection, so that who calls it decides what commits together.

use ichido_core::lifecycle::Stage;
use ichido_core::time::Timestamp;
use uuid::Uuid;

use crate::bookmark::{Bookmark, Row, State};
use crate::database::{DbConnection, on};

/// A bookmark to be made.
pub(crate) struct NewBookmark {
    pub(crate) id: Uuid,
    pub(crate) person: Uuid,
    pub(crate) url: String,
    pub(crate) idempotency_key: String,
    pub(crate) source_hint: Option<String>,
    pub(crate) created_from: Option<String>,
    pub(crate) now: Timestamp,
}

/// Which bookmark a URL is from now on: the one that a person saved it as before, if that is not too long ago, else this one. Two at once
/// meet on the row, and the second one gets what the first one made (SPEC A7).
pub(crate) async fn claim_url(
    connection: &mut DbConnection<'_>,
    new: &NewBookmark,
    until: Timestamp,
) -> Result<Uuid, sqlx::Error> {
    const SQL: &str = "\
        INSERT INTO saved_urls (person_id, url, bookmark_id, until) VALUES ($1, $2, $3, $4)
        ON CONFLICT (person_id, url) DO UPDATE SET
            bookmark_id = CASE WHEN saved_urls.until <= $5 THEN excluded.bookmark_id ELSE saved_urls.bookmark_id END,
            until = CASE WHEN saved_urls.until <= $5 THEN excluded.until ELSE saved_urls.until END
        RETURNING bookmark_id";
    on!(connection, c => {
        let claimed = sqlx::query_scalar(SQL).bind(new.person).bind(&new.url).bind(new.id);
        claimed.bind(until.as_micros()).bind(new.now.as_micros()).fetch_one(&mut **c).await
    })
}

/// Makes a bookmark whose first job is this message.
pub(crate) async fn insert(
    connection: &mut DbConnection<'_>,
    new: &NewBookmark,
    job: Uuid,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "\
        INSERT INTO bookmarks (id, person_id, url, idempotency_key, source_hint, created_from, created_at, search, job)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    on!(connection, c => {
        let insert = sqlx::query(SQL).bind(new.id).bind(new.person).bind(&new.url).bind(&new.idempotency_key);
        let insert = insert.bind(&new.source_hint).bind(&new.created_from).bind(new.now.as_micros());
        insert.bind(new.url.to_lowercase()).bind(job).execute(&mut **c).await.map(drop)
    })
}

/// One of a person's bookmarks.
pub(crate) async fn find(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<Bookmark>, sqlx::Error> {
    const SQL: &str = "\
        SELECT id, url, title, summary, summary_by, source_hint, created_from, created_at,
               job_type, status, tries, tries_allowed, retry_at, error
        FROM bookmark_now WHERE person_id = $1 AND id = $2";
    on!(connection, c => {
        let found = sqlx::query_as::<_, Row>(SQL).bind(person).bind(id).fetch_optional(&mut **c).await;
        found.map(|row| row.map(Bookmark::from))
    })
}

/// Which bookmarks to list, newest first.
pub(crate) struct BookmarkFilter {
    pub(crate) person: Uuid,
    /// Words that URL, title or summary have, all of them.
    pub(crate) search: Option<String>,
    /// Older than this one.
    pub(crate) before: Option<Uuid>,
    pub(crate) limit: u32,
}

pub(crate) async fn list(
    connection: &mut DbConnection<'_>,
    filter: &BookmarkFilter,
) -> Result<Vec<Bookmark>, sqlx::Error> {
    const POSTGRES: &str = r"
        SELECT id, url, title, summary, summary_by, source_hint, created_from, created_at,
               job_type, status, tries, tries_allowed, retry_at, error
        FROM bookmark_now WHERE person_id = $1 AND id < $2
            AND NOT EXISTS (SELECT 1 FROM json_array_elements_text($3::json) w (pattern) WHERE search NOT LIKE w.pattern ESCAPE '\')
        ORDER BY id DESC LIMIT $4";
    const SQLITE: &str = r"
        SELECT id, url, title, summary, summary_by, source_hint, created_from, created_at,
               job_type, status, tries, tries_allowed, retry_at, error
        FROM bookmark_now WHERE person_id = $1 AND id < $2
            AND NOT EXISTS (SELECT 1 FROM json_each($3) w WHERE search NOT LIKE w.value ESCAPE '\')
        ORDER BY id DESC LIMIT $4";
    let words = filter.search.as_deref().unwrap_or_default().split_whitespace();
    let patterns: serde_json::Value = words.map(|word| format!("%{}%", escaped(word))).collect();
    let sql = match connection {
        DbConnection::Postgres(_) => POSTGRES,
        DbConnection::Sqlite(_) => SQLITE,
    };
    let before = filter.before.unwrap_or(Uuid::max());
    on!(connection, c => {
        let listed = sqlx::query_as::<_, Row>(sql).bind(filter.person).bind(before).bind(patterns.to_string());
        let listed = listed.bind(i64::from(filter.limit)).fetch_all(&mut **c).await;
        listed.map(|rows| rows.into_iter().map(Bookmark::from).collect())
    })
}

/// What `LIKE` takes for itself, taken for what it is.
fn escaped(words: &str) -> String {
    words.to_lowercase().replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_")
}

/// A bookmark that is to be given to the background once more.
pub(crate) struct RetryTarget {
    pub(crate) url: String,
    pub(crate) idempotency_key: String,
    /// How many times it was, with this one.
    pub(crate) jobs: i64,
    pub(crate) state: State,
    /// The job that stands for it, and whether that failed for good, so that the next one takes its place.
    pub(crate) job: Uuid,
    pub(crate) is_dead: bool,
}

/// Counts a job, and holds the bookmark until the transaction ends, so that no second one is given out at once.
pub(crate) async fn count_job(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<RetryTarget>, sqlx::Error> {
    const COUNT: &str = "\
        UPDATE bookmarks SET jobs = jobs + 1 WHERE person_id = $1 AND id = $2 RETURNING url, idempotency_key, jobs";
    // After the row is held, so that nobody gives it another job in between.
    const STATUS: &str = "SELECT status, job FROM bookmark_now WHERE id = $1";
    on!(connection, c => {
        let counted: Option<(String, String, i64)> =
            sqlx::query_as(COUNT).bind(person).bind(id).fetch_optional(&mut **c).await?;
        let Some((url, idempotency_key, jobs)) = counted else { return Ok(None) };
        let (status, job): (Option<String>, Uuid) = sqlx::query_as(STATUS).bind(id).fetch_one(&mut **c).await?;
        let message = status.as_deref().and_then(Stage::parse);
        let (state, is_dead) = (State::from_stage(message), message == Some(Stage::Dead));
        Ok(Some(RetryTarget { url, idempotency_key, jobs, state, job, is_dead }))
    })
}

/// Says which message stands for a bookmark from now on.
pub(crate) async fn set_job(
    connection: &mut DbConnection<'_>,
    id: Uuid,
    job: Uuid,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "UPDATE bookmarks SET job = $1 WHERE id = $2";
    on!(connection, c => sqlx::query(SQL).bind(job).bind(id).execute(&mut **c).await.map(drop))
}

/// Takes a bookmark away; answers the message that stood for it. Its URL is free again.
pub(crate) async fn delete(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<Uuid>, sqlx::Error> {
    const BOOKMARK: &str = "DELETE FROM bookmarks WHERE person_id = $1 AND id = $2 RETURNING url, job";
    const URL: &str = "DELETE FROM saved_urls WHERE person_id = $1 AND url = $2 AND bookmark_id = $3";
    on!(connection, c => {
        let gone: Option<(String, Uuid)> =
            sqlx::query_as(BOOKMARK).bind(person).bind(id).fetch_optional(&mut **c).await?;
        let Some((url, job)) = gone else { return Ok(None) };
        sqlx::query(URL).bind(person).bind(url).bind(id).execute(&mut **c).await?;
        Ok(Some(job))
    })
}

/// Takes all of a person's bookmarks away; in the order in which [`delete`] takes one, so that the two wait for each other and not in a circle.
pub(crate) async fn delete_all(connection: &mut DbConnection<'_>, person: Uuid) -> Result<(), sqlx::Error> {
    const BOOKMARKS: &str = "DELETE FROM bookmarks WHERE person_id = $1";
    const URLS: &str = "DELETE FROM saved_urls WHERE person_id = $1";
    on!(connection, c => {
        sqlx::query(BOOKMARKS).bind(person).execute(&mut **c).await?;
        sqlx::query(URLS).bind(person).execute(&mut **c).await.map(drop)
    })
}

/// How many a person has.
pub(crate) async fn count(connection: &mut DbConnection<'_>, person: Uuid) -> Result<u64, sqlx::Error> {
    const SQL: &str = "SELECT count(*) FROM bookmarks WHERE person_id = $1";
    let count: i64 = on!(connection, c => sqlx::query_scalar(SQL).bind(person).fetch_one(&mut **c).await)?;
    Ok(count.unsigned_abs())
}

/// What a page says.
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Writes what a page says, if this job still stands for the bookmark; answers whether it does.
pub(crate) async fn write_page(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
    url: &str,
    page: &Page,
) -> Result<bool, sqlx::Error> {
    const SQL: &str = "UPDATE bookmarks SET title = $1, text = $2, search = $3 WHERE id = $4 AND job = $5";
    let search = search(url, page.title.as_deref(), None);
    on!(connection, c => {
        let written = sqlx::query(SQL).bind(&page.title).bind(&page.text).bind(search).bind(id).bind(job);
        written.execute(&mut **c).await.map(|done| done.rows_affected() == 1)
    })
}

/// What is to be summarised, if this job still stands for the bookmark.
pub(crate) async fn read_page(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
) -> Result<Option<Page>, sqlx::Error> {
    const SQL: &str = "SELECT title, coalesce(text, '') FROM bookmarks WHERE id = $1 AND job = $2";
    on!(connection, c => {
        let found: Option<(Option<String>, String)> =
            sqlx::query_as(SQL).bind(id).bind(job).fetch_optional(&mut **c).await?;
        Ok(found.map(|(title, text)| Page { title, text }))
    })
}

/// A summary, and by whom.
pub(crate) type Summary = Option<(String, &'static str)>;

/// Writes a summary, if this job still stands for the bookmark.
pub(crate) async fn write_summary(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
    (url, title): (&str, Option<&str>),
    summary: &Summary,
) -> Result<(), sqlx::Error> {
    const SQL: &str =
        "UPDATE bookmarks SET summary = $1, summary_by = $2, search = $3 WHERE id = $4 AND job = $5";
    let (text, by) = summary.as_ref().map_or((None, None), |(text, by)| (Some(text.as_str()), Some(*by)));
    let search = search(url, title, text);
    on!(connection, c => {
        let written = sqlx::query(SQL).bind(text).bind(by).bind(search).bind(id).bind(job);
        written.execute(&mut **c).await.map(drop)
    })
}

/// What a search looks through. Made here, because SQLite knows small letters of ASCII alone.
fn search(url: &str, title: Option<&str>, summary: Option<&str>) -> String {
    format!("{url}\n{}\n{}", title.unwrap_or_default(), summary.unwrap_or_default()).to_lowercase()
}
