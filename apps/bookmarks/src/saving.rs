//! Saves bookmarks: one, or the many links of a file.
//!
//! Guarantee: a person has one bookmark and one job per URL. The claim of the URL, the row, its words and the message that
//! has the page read commit together. Many links cost as few statements as one.
// SPEC A7, D4.

use std::collections::HashSet;

use ichido::prelude::Draft;
use uuid::Uuid;

use crate::app::App;
use crate::bookmarks::{self, NewBookmark};
use crate::database::{DbConnection, OwnTransaction};
use crate::jobs::{self, JobPayload};
use crate::people::Person;
use crate::problem::Problem;

/// The number of a bookmark's first job; each retry by a person adds one.
const FIRST_JOB: i64 = 0;

/// Saves a bookmark if its URL is new; returns the bookmark of the URL, and the job that a new one has.
pub(crate) async fn save_one(
    app: &App,
    connection: &mut DbConnection<'_>,
    person: &Person,
    (new, turn): (&NewBookmark, u8),
) -> Result<(Uuid, Option<Uuid>), Problem> {
    let claimed = bookmarks::claim_urls(connection, &[new]).await?;
    let id = claimed.first().map_or(new.id, |(_, id)| *id);
    if id != new.id {
        return Ok((id, None));
    }
    let job = jobs::enqueue(connection, app, first_job(app, person, new, turn)).await?;
    bookmarks::insert(connection, &[(new, job)]).await?;
    Ok((id, Some(job)))
}

/// Saves those whose URL is new, each with its turn; returns how many. The first of equal URLs counts.
pub(crate) async fn save_many(
    app: &App,
    open: &mut OwnTransaction,
    person: &Person,
    links: &[(NewBookmark, u8)],
) -> Result<usize, Problem> {
    let mut urls = HashSet::new();
    let mut distinct: Vec<_> = links.iter().filter(|(new, _)| urls.insert(&new.url)).collect();
    // In one order, so two imports do not wait for each other.
    distinct.sort_by(|(one, _), (other, _)| one.url.cmp(&other.url));
    let wanted: Vec<&NewBookmark> = distinct.iter().map(|(new, _)| new).collect();
    let claimed = bookmarks::claim_urls(&mut open.connection(), &wanted).await?;
    let claimed: HashSet<Uuid> = claimed.into_iter().map(|(_, id)| id).collect();
    let created: Vec<_> = distinct.into_iter().filter(|(new, _)| claimed.contains(&new.id)).collect();
    let to_read = created.iter().filter(|(new, _)| !new.is_done);
    let drafts: Vec<Draft> = to_read.map(|(new, turn)| first_job(app, person, new, *turn)).collect();
    let mut jobs = jobs::enqueue_many(open, drafts).await?.into_iter().peekable();
    // A job without a message is done, as after its message was deleted.
    let mut job_of = |new: &NewBookmark| jobs.next_if(|_| !new.is_done).unwrap_or_else(Uuid::now_v7);
    let rows: Vec<_> = created.iter().map(|(new, _)| (new, job_of(new))).collect();
    bookmarks::insert(&mut open.connection(), &rows).await?;
    Ok(rows.len())
}

/// Drafts the message that has the page read for the first time.
fn first_job(app: &App, person: &Person, new: &NewBookmark, turn: u8) -> Draft {
    let task = JobPayload::first(new.id, &new.url, &new.idempotency_key, &app.settings.retry);
    jobs::read_page(person, &task.at(turn), FIRST_JOB)
}

#[cfg(test)]
mod tests;
