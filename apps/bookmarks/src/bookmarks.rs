//! Every statement about the rows of bookmarks.
//!
//! Each function takes an open connection, so the caller decides what commits together.

use ichido::lifecycle::StateName;
use ichido::time::Timestamp;
use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::bookmark::{Bookmark, Row, State};
use crate::database::{DbConnection, on};
use crate::reading::Page;
use crate::search;
use crate::source::{CreatedFrom, SourceHint};
use crate::tags::Tags;
use crate::transfer::{Link, Saved};

/// The columns of a [`Row`].
macro_rules! columns {
    () => {
        "id, url, title, tags, icon, summary, summary_by, source_hint, created_from, created_at, \
         job_type, status, attempts, max_attempts, retry_at, error"
    };
}
pub(crate) use columns;

/// A bookmark to insert.
pub(crate) struct NewBookmark {
    pub(crate) id: Uuid,
    pub(crate) person: Uuid,
    pub(crate) url: String,
    /// The client's title, until the page's own is known.
    pub(crate) title: Option<String>,
    /// The person's own title, which is shown instead.
    pub(crate) edited_title: Option<String>,
    pub(crate) tags: Tags,
    pub(crate) idempotency_key: String,
    pub(crate) source_hint: SourceHint,
    pub(crate) created_from: Option<CreatedFrom>,
    pub(crate) now: Timestamp,
    pub(crate) summary: Summary,
    /// Whether it has all it needs, so its page is not read.
    pub(crate) is_done: bool,
}

/// Returns each URL with its bookmark: the person's earlier one if it still exists, else this one. No URL may occur twice.
///
/// Two concurrent saves meet on the row, and the second gets what the first inserted.
// SPEC A7.
pub(crate) async fn claim_urls(
    connection: &mut DbConnection<'_>,
    new: &[&NewBookmark],
) -> Result<Vec<(String, Uuid)>, sqlx::Error> {
    const HEAD: &str = "INSERT INTO saved_urls (person_id, url, bookmark_id) ";
    // The update changes nothing: it locks the row and returns it.
    const TAIL: &str = " ON CONFLICT (person_id, url) DO UPDATE SET bookmark_id = saved_urls.bookmark_id
        RETURNING url, bookmark_id";
    if new.is_empty() {
        return Ok(Vec::new());
    }
    on!(connection, c => {
        let mut claim = QueryBuilder::new(HEAD);
        claim.push_values(new, |mut row, new| {
            row.push_bind(new.person).push_bind(new.url.as_str()).push_bind(new.id);
        });
        let claim = claim.push(TAIL).build_query_as().persistent(new.len() == 1);
        claim.fetch_all(&mut **c).await
    })
}

/// Inserts bookmarks, each with the message of its first job.
pub(crate) async fn insert(
    connection: &mut DbConnection<'_>,
    new: &[(&NewBookmark, Uuid)],
) -> Result<(), sqlx::Error> {
    const HEAD: &str = "INSERT INTO bookmarks \
        (id, person_id, url, title, edited_title, tags, idempotency_key, source_hint, created_from, created_at, \
         summary, summary_by, job) ";
    if new.is_empty() {
        return Ok(());
    }
    on!(connection, c => {
        let mut insert = QueryBuilder::new(HEAD);
        insert.push_values(new, |mut row, (new, job)| {
            row.push_bind(new.id).push_bind(new.person).push_bind(new.url.as_str());
            row.push_bind(new.title.as_deref()).push_bind(new.edited_title.as_deref());
            row.push_bind(new.tags.to_json()).push_bind(new.idempotency_key.as_str());
            row.push_bind(new.source_hint.as_str()).push_bind(new.created_from.map(CreatedFrom::as_str));
            let (summary, by) = new.summary.as_ref().map(|(text, by)| (text.as_str(), *by)).unzip();
            row.push_bind(new.now.as_micros()).push_bind(summary).push_bind(by).push_bind(*job);
        });
        // A statement of many rows is seldom the same twice.
        insert.build().persistent(new.len() == 1).execute(&mut **c).await?;
    });
    let fields = |new: &NewBookmark| {
        let title = new.edited_title.clone().or_else(|| new.title.clone());
        let summary = new.summary.as_ref().map(|(text, _)| text.clone());
        (new.person, title, new.tags.to_json(), new.url.clone(), summary, None)
    };
    let fields: Vec<_> = new.iter().map(|(new, _)| (new.id, fields(new))).collect();
    search::write(connection, &fields).await
}

/// Finds one of a person's bookmarks.
pub(crate) async fn find(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<Bookmark>, sqlx::Error> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM bookmark_now WHERE person_id = $1 AND id = $2");
    on!(connection, c => {
        let found = sqlx::query_as::<_, Row>(SQL).bind(person).bind(id).fetch_optional(&mut **c).await;
        found.map(|row| row.map(Bookmark::from))
    })
}

/// Lists bookmarks before one, newest first.
pub(crate) async fn list(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    before: Uuid,
    limit: u32,
) -> Result<Vec<Bookmark>, sqlx::Error> {
    on!(connection, c => {
        let listed = sqlx::query_as::<_, Row>(LIST).bind(person).bind(before).bind(i64::from(limit));
        let listed = listed.fetch_all(&mut **c).await;
        listed.map(|rows| rows.into_iter().map(Bookmark::from).collect())
    })
}

pub(crate) const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM bookmark_now WHERE person_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
);

/// Returns the links before one, newest first, to write to a file.
pub(crate) async fn links(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    before: Uuid,
    limit: u32,
) -> Result<Vec<(Uuid, Link)>, sqlx::Error> {
    const SQL: &str = "\
        SELECT id, url, title, page_title, tags, created_at, summary, summary_by, source_hint, created_from, status
        FROM bookmark_now WHERE person_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let rows: Vec<LinkRow> = on!(connection, c => {
        sqlx::query_as(SQL).bind(person).bind(before).bind(i64::from(limit)).fetch_all(&mut **c).await?
    });
    Ok(rows.into_iter().map(link).collect())
}

/// A row of [`links`], in the order of its columns.
type LinkRow = (
    Uuid,
    String,
    Option<String>,
    Option<String>,
    String,
    i64,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
);

fn link(row: LinkRow) -> (Uuid, Link) {
    let (id, url, title, page_title, tags, created_at, summary, by, source_hint, created_from, status) = row;
    let saved = Saved {
        status: State::from_stage(status.as_deref().and_then(StateName::parse)),
        page_title: (title != page_title).then(|| page_title.unwrap_or_default()),
        summary: summary.zip(by),
        source_hint,
        created_from,
    };
    let tags = Tags::from_json(&tags).iter().map(str::to_owned).collect();
    let added_at = Some(Timestamp::from_micros(created_at));
    (id, Link { url, title, tags, added_at, saved: Some(saved) })
}

/// What a person changes in a bookmark.
pub(crate) struct Edit {
    /// The new title; empty goes back to the page's.
    pub(crate) title: Option<String>,
    pub(crate) tags: Option<Tags>,
}

/// Changes a bookmark; returns whether the person has it.
pub(crate) async fn edit(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
    edit: &Edit,
) -> Result<bool, sqlx::Error> {
    const SQL: &str = "\
        UPDATE bookmarks SET edited_title = nullif(coalesce($1, edited_title), ''), tags = coalesce($2, tags)
        WHERE person_id = $3 AND id = $4";
    let tags = edit.tags.as_ref().map(Tags::to_json);
    let is_edited = on!(connection, c => {
        let edited = sqlx::query(SQL).bind(&edit.title).bind(tags).bind(person).bind(id);
        edited.execute(&mut **c).await?.rows_affected() == 1
    });
    if is_edited {
        search::index(connection, id).await?;
    }
    Ok(is_edited)
}

/// A bookmark that gets another job.
pub(crate) struct RetryTarget {
    pub(crate) url: String,
    pub(crate) idempotency_key: String,
    /// The number of its jobs, including the new one.
    pub(crate) jobs: i64,
    pub(crate) state: State,
    /// Its current job, and whether that is dead, so the next one replaces it.
    pub(crate) job: Uuid,
    pub(crate) is_dead: bool,
}

/// Counts a job and locks the bookmark until the transaction ends, so no second job is created at once.
pub(crate) async fn count_job(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    id: Uuid,
) -> Result<Option<RetryTarget>, sqlx::Error> {
    const COUNT: &str = "\
        UPDATE bookmarks SET jobs = jobs + 1 WHERE person_id = $1 AND id = $2 RETURNING url, idempotency_key, jobs";
    // Read after the row is locked, so no other job is created in between.
    const STATUS: &str = "SELECT status, job FROM bookmark_now WHERE id = $1";
    on!(connection, c => {
        let counted: Option<(String, String, i64)> =
            sqlx::query_as(COUNT).bind(person).bind(id).fetch_optional(&mut **c).await?;
        let Some((url, idempotency_key, jobs)) = counted else { return Ok(None) };
        let (status, job): (Option<String>, Uuid) = sqlx::query_as(STATUS).bind(id).fetch_one(&mut **c).await?;
        let message = status.as_deref().and_then(StateName::parse);
        let (state, is_dead) = (State::from_stage(message), message == Some(StateName::Dead));
        Ok(Some(RetryTarget { url, idempotency_key, jobs, state, job, is_dead }))
    })
}

/// Sets the current job of a bookmark.
pub(crate) async fn set_job(
    connection: &mut DbConnection<'_>,
    id: Uuid,
    job: Uuid,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "UPDATE bookmarks SET job = $1 WHERE id = $2";
    on!(connection, c => sqlx::query(SQL).bind(job).bind(id).execute(&mut **c).await.map(drop))
}

/// Deletes a bookmark and returns its job. Its URL is free again.
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

/// Deletes all of a person's bookmarks, in the same order as [`delete`], so the two cannot deadlock.
pub(crate) async fn delete_all(connection: &mut DbConnection<'_>, person: Uuid) -> Result<(), sqlx::Error> {
    const BOOKMARKS: &str = "DELETE FROM bookmarks WHERE person_id = $1";
    const URLS: &str = "DELETE FROM saved_urls WHERE person_id = $1";
    on!(connection, c => {
        sqlx::query(BOOKMARKS).bind(person).execute(&mut **c).await?;
        sqlx::query(URLS).bind(person).execute(&mut **c).await.map(drop)
    })
}

/// Returns how many of a person's newest jobs wait, among this many.
pub(crate) async fn waiting(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    among: u8,
) -> Result<u8, sqlx::Error> {
    on!(connection, c => {
        let waiting = sqlx::query_scalar(WAITING).bind(person).bind(i64::from(among));
        let count: i64 = waiting.fetch_one(&mut **c).await?;
        Ok(u8::try_from(count).unwrap_or(among))
    })
}

/// The id of a job says when it was enqueued.
pub(crate) const WAITING: &str = "\
    SELECT count(*) FROM (SELECT status FROM bookmark_now WHERE person_id = $1 ORDER BY job DESC LIMIT $2) newest
    WHERE status IN ('queued', 'sending')";

/// Returns how many bookmarks a person has.
pub(crate) async fn count(connection: &mut DbConnection<'_>, person: Uuid) -> Result<u64, sqlx::Error> {
    const SQL: &str = "SELECT count(*) FROM bookmarks WHERE person_id = $1";
    let count: i64 = on!(connection, c => sqlx::query_scalar(SQL).bind(person).fetch_one(&mut **c).await)?;
    Ok(count.unsigned_abs())
}

/// Stores a page's content if this is still the bookmark's job; returns whether it is. A page without a title leaves the
/// one that the client sent, and a page without text what was read before.
pub(crate) async fn write_page(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
    page: &Page,
    icon: Option<Uuid>,
) -> Result<bool, sqlx::Error> {
    const SQL: &str = "\
        UPDATE bookmarks SET title = coalesce($1, title, $2), text = coalesce($3, text), icon = coalesce($4, icon)
        WHERE id = $5 AND job = $6";
    let is_current = on!(connection, c => {
        let written = sqlx::query(SQL).bind(&page.title).bind(&page.file_name).bind(&page.text).bind(icon);
        let written = written.bind(id).bind(job);
        written.execute(&mut **c).await?.rows_affected() == 1
    });
    if is_current {
        search::index(connection, id).await?;
    }
    Ok(is_current)
}

/// A page to summarise.
pub(crate) struct PageText {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Returns the page to summarise, if this is still the bookmark's job.
pub(crate) async fn read_page(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
) -> Result<Option<PageText>, sqlx::Error> {
    const SQL: &str = "\
        SELECT coalesce(edited_title, title), coalesce(text, '') FROM bookmarks WHERE id = $1 AND job = $2";
    on!(connection, c => {
        let found: Option<(Option<String>, String)> =
            sqlx::query_as(SQL).bind(id).bind(job).fetch_optional(&mut **c).await?;
        Ok(found.map(|(title, text)| PageText { title, text }))
    })
}

/// A summary and its author.
pub(crate) type Summary = Option<(String, &'static str)>;

/// The authors of summaries.
pub(crate) const MODEL: &str = "model";
pub(crate) const EXTRACT: &str = "extract";

/// Stores a summary if this is still the bookmark's job.
pub(crate) async fn write_summary(
    connection: &mut DbConnection<'_>,
    (id, job): (Uuid, Uuid),
    summary: &Summary,
) -> Result<(), sqlx::Error> {
    const SQL: &str = "UPDATE bookmarks SET summary = $1, summary_by = $2 WHERE id = $3 AND job = $4";
    let (text, by) = summary.as_ref().map_or((None, None), |(text, by)| (Some(text.as_str()), Some(*by)));
    let is_current = on!(connection, c => {
        let written = sqlx::query(SQL).bind(text).bind(by).bind(id).bind(job);
        written.execute(&mut **c).await?.rows_affected() == 1
    });
    if is_current {
        search::index(connection, id).await?;
    }
    Ok(())
}
