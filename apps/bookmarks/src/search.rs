//! Finds bookmarks by their words.
//!
//! Guarantee: a search reads the index and the rows that match, not the table. It finds the same in the same order on
//! both databases: by the last field that a match needs (title, tags, URL, summary, text of the page), then newest
//! first.
//!
//! Start at `tokens`: both databases store its words. `query` reads what a person typed.

mod query;
mod tokens;

use std::fmt::Write as _;

use sqlx::{ColumnIndex, Decode, FromRow, QueryBuilder, Type};
use url::{Host, Url};
use uuid::Uuid;

use self::query::LEVELS;
use crate::bookmark::{Bookmark, Row};
use crate::bookmarks::columns;
use crate::database::{DbConnection, Either, on};
use crate::settings::limits::MAX_TEXT_WORDS;
use crate::tags::Tags;
pub(crate) use query::Query;
pub(crate) use tokens::fold;

/// Where a page of results ends: the level of its last bookmark, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) level: i64,
    pub(crate) id: Uuid,
}

impl Position {
    /// Before everything.
    pub(crate) const START: Self = Self { level: 0, id: Uuid::max() };
}

/// Each list of matches is made when a row asks for it, so the last but one comes first: if it is empty, the others are not made.
const SQLITE: &str = concat!(
    "WITH matching AS MATERIALIZED (
        SELECT b.id AS found_id,
               CASE WHEN w.rowid NOT IN (SELECT rowid FROM bookmark_words WHERE bookmark_words MATCH $6) THEN 5
                    WHEN w.rowid IN (SELECT rowid FROM bookmark_words WHERE bookmark_words MATCH $3) THEN 1
                    WHEN w.rowid IN (SELECT rowid FROM bookmark_words WHERE bookmark_words MATCH $4) THEN 2
                    WHEN w.rowid IN (SELECT rowid FROM bookmark_words WHERE bookmark_words MATCH $5) THEN 3
                    ELSE 4 END AS level
        FROM bookmark_words w CROSS JOIN bookmarks b ON b.number = w.rowid
        WHERE w.bookmark_words MATCH $2 AND b.person_id = $1
    ), found AS MATERIALIZED (
        SELECT * FROM matching WHERE level > $7 OR (level = $7 AND found_id < $8)
        ORDER BY level, found_id DESC LIMIT $9
    )
    SELECT ",
    columns!(),
    ", level FROM found CROSS JOIN bookmark_now ON id = found_id ORDER BY level, found_id DESC"
);

/// The index finds the rows that have all the words ($10). Whether they have the phrases too ($2) is asked of one row after another,
/// in the order of the results, until the page is full: it reads the text of the page.
///
/// Queries are read by subqueries. So each is parsed once and not for every row, and the planner does not know what it looks for: it
/// would read the whole table if it knew that most rows match.
const POSTGRES: &str = concat!(
    "WITH candidate AS MATERIALIZED (
        SELECT bookmark_id AS found_id,
               CASE WHEN words @@ (SELECT $3::tsquery) THEN 1
                    WHEN words @@ (SELECT $4::tsquery) THEN 2
                    WHEN words @@ (SELECT $5::tsquery) THEN 3
                    WHEN words @@ (SELECT $6::tsquery) THEN 4
                    ELSE 5 END::bigint AS level
        FROM bookmark_words WHERE bookmark_all_words(words, text_words) @@ (SELECT $10::tsquery) AND person_id = $1
    ), ordered AS (
        SELECT * FROM candidate WHERE level > $7 OR (level = $7 AND found_id < $8)
        ORDER BY level, found_id DESC OFFSET 0
    ), found AS MATERIALIZED (
        SELECT * FROM ordered
        WHERE (SELECT bookmark_all_words(words, text_words) @@ (SELECT $2::tsquery)
               FROM bookmark_words WHERE bookmark_id = found_id)
        ORDER BY level, found_id DESC LIMIT $9
    )
    SELECT ",
    columns!(),
    // The limit keeps the planner from reading the table, which it prefers while that is small.
    ", level FROM found CROSS JOIN LATERAL (SELECT * FROM bookmark_now WHERE id = found_id LIMIT 1) bookmark
    ORDER BY level, found_id DESC"
);

/// Returns bookmarks that match, after a position, most relevant first.
pub(crate) async fn find(
    connection: &mut DbConnection<'_>,
    person: Uuid,
    query: &Query,
    after: Position,
    limit: u32,
) -> Result<Vec<(Bookmark, Position)>, sqlx::Error> {
    macro_rules! find {
        ($sql:expr, $write:expr) => {{
            let [one, two, three, four, all]: [String; LEVELS] = query.levels(person, $write);
            let find =
                sqlx::query_as::<_, Found>($sql).bind(person).bind(all).bind(one).bind(two).bind(three);
            find.bind(four).bind(after.level).bind(after.id).bind(i64::from(limit))
        }};
    }
    let found = match connection {
        Either::Postgres(c) => {
            find!(POSTGRES, Query::tsquery).bind(query.all_words(person)).fetch_all(&mut **c).await?
        }
        Either::Sqlite(c) => find!(SQLITE, Query::fts5).fetch_all(&mut **c).await?,
    };
    let found = found.into_iter().map(|Found { row, level }| {
        let id = row.0;
        (Bookmark::from(row), Position { level, id })
    });
    Ok(found.collect())
}

/// A row with its level.
struct Found {
    row: Row,
    level: i64,
}

impl<'r, R> FromRow<'r, R> for Found
where
    R: sqlx::Row,
    Row: FromRow<'r, R>,
    &'static str: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self { row: Row::from_row(row)?, level: row.try_get("level")? })
    }
}

/// What a bookmark is found by: its person, title, tags, URL, summary and text.
pub(crate) type Fields = (Uuid, Option<String>, String, String, Option<String>, Option<String>);

/// Returns the words of each field, in the order of relevance.
fn words((_, title, tags, url, summary, text): &Fields) -> [Vec<String>; LEVELS] {
    let words = |text: Option<&str>| tokens::words(text.unwrap_or_default()).collect::<Vec<_>>();
    let tags = Tags::from_json(tags);
    let tags = tags.iter().flat_map(|tag| tokens::words(tag).chain([tokens::tag_word(tag)]));
    let mut text = words(text.as_deref());
    text.truncate(MAX_TEXT_WORDS);
    [words(title.as_deref()), tags.collect(), words(Some(&readable(url))), words(summary.as_deref()), text]
}

/// Indexes a bookmark as it is now. Call it in the transaction that has changed it.
pub(crate) async fn index(connection: &mut DbConnection<'_>, id: Uuid) -> Result<(), sqlx::Error> {
    const FIELDS: &str = "\
        SELECT person_id, coalesce(edited_title, title), tags, url, summary, text FROM bookmarks WHERE id = $1";
    let fields = on!(connection, c => sqlx::query_as(FIELDS).bind(id).fetch_one(&mut **c).await?);
    write(connection, &[(id, fields)]).await
}

/// Writes the words of bookmarks that exist, in one statement.
pub(crate) async fn write(
    connection: &mut DbConnection<'_>,
    fields: &[(Uuid, Fields)],
) -> Result<(), sqlx::Error> {
    const SQLITE: &str = "\
        INSERT OR REPLACE INTO bookmark_words (rowid, person, title, tags, url, summary, text)
        SELECT number, column2, column3, column4, column5, column6, column7 FROM (";
    const SQLITE_TAIL: &str = ") CROSS JOIN bookmarks ON id = column1";
    const POSTGRES: &str = "INSERT INTO bookmark_words (bookmark_id, person_id, words, text_words) ";
    const POSTGRES_TAIL: &str = " \
        ON CONFLICT (bookmark_id) DO UPDATE SET words = excluded.words, text_words = excluded.text_words";
    let is_usual = fields.len() == 1;
    match connection {
        Either::Postgres(c) => {
            let mut index = QueryBuilder::new(POSTGRES);
            index.push_values(fields, |mut row, (id, fields)| {
                let [title, tags, url, summary, text] = words(fields);
                let person = [fields.0.simple().to_string()];
                let words = [("A", &title[..]), ("B", &tags), ("C", &url), ("D", &summary), ("", &person)];
                row.push_bind(*id).push_bind(fields.0);
                row.push_bind(tsvector(&words)).push_unseparated("::tsvector");
                row.push_bind(tsvector(&[("", &text)])).push_unseparated("::tsvector");
            });
            index.push(POSTGRES_TAIL).build().persistent(is_usual).execute(&mut **c).await.map(drop)
        }
        Either::Sqlite(c) => {
            let mut index = QueryBuilder::new(SQLITE);
            index.push_values(fields, |mut row, (id, fields)| {
                row.push_bind(*id).push_bind(fields.0.simple().to_string());
                for words in words(fields) {
                    row.push_bind(words.join(" "));
                }
            });
            index.push(SQLITE_TAIL).build().persistent(is_usual).execute(&mut **c).await.map(drop)
        }
    }
}

/// Writes labelled words as a `tsvector`. A gap between two fields keeps a phrase within one.
fn tsvector(fields: &[(&str, &[String])]) -> String {
    let (mut vector, mut at) = (String::new(), 0);
    for (label, words) in fields {
        for word in *words {
            at += 1;
            // Writing to a `String` does not fail.
            _ = write!(vector, "'{word}':{at}{label} ");
        }
        at += 1;
    }
    vector
}

/// Returns a URL as a person reads it: without its scheme, and decoded.
fn readable(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    let host = match parsed.host() {
        Some(Host::Domain(domain)) => url::quirks::domain_to_unicode(domain),
        // An IP address has no other form.
        Some(address) => address.to_string(),
        None => String::new(),
    };
    format!("{host} {} {}", decoded(parsed.path()), decoded(parsed.query().unwrap_or_default()))
}

/// Decodes percent-encoding; what is no text becomes �.
pub(crate) fn decoded(text: &str) -> String {
    let literal = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(literal.as_bytes()).next().map(|(text, _)| text.into_owned()).unwrap_or_default()
}

/// Removes what the index still has of deleted bookmarks. On PostgreSQL its own upkeep does.
pub(crate) async fn forget_deleted(connection: &mut DbConnection<'_>) -> Result<(), sqlx::Error> {
    const SQL: &str = "INSERT INTO bookmark_words (bookmark_words) VALUES ('optimize')";
    match connection {
        Either::Postgres(_) => Ok(()),
        Either::Sqlite(c) => sqlx::query(SQL).execute(&mut **c).await.map(drop),
    }
}

#[cfg(test)]
mod tests;
