//! Deletes a person and all their data.
//!
//! Guarantee: afterwards no table contains anything of theirs, neither the app's nor the engine's: no bookmark, no
//! message, no dead letter, no response under a key. An interrupted removal can be repeated, because the name is
//! deleted last, and nobody can sign in with it meanwhile.

use std::time::Duration;

use ichido::lifecycle::{Decision, StateName};
use ichido::store::Store;
use ichido::store::error::StoreError;
use ichido::store::message::limits::MAX_PAGE;
use ichido::store::message::{MessageFilter, Note, QueueName};
use tokio::time::{sleep, timeout};

use crate::database::{AppDatabase, on};
use crate::people::{self, Person, PersonError};
use crate::settings::limits;
use crate::{bookmarks, jobs, search};

/// How often to check whether a job has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn remove(database: &AppDatabase, store: &Store, name: &str) -> Result<(), PersonError> {
    let person = people::by_name(database, name).await?;
    let removing = async {
        loop {
            lock_out(database, &person).await?;
            delete_bookmarks(database, &person).await?;
            forget_work(store, &person).await?;
            // A request accepted earlier may have saved one more. There are no new ones, so this ends.
            if delete_person(database, &person).await? {
                // Nothing can be done for this person any more; the keys of requests that were just refused are deleted
                // too.
                return forget_keys(store, &person).await;
            }
        }
    };
    timeout(limits::REMOVE_WITHIN, removing).await.unwrap_or(Err(PersonError::AtWork))
}

/// Locks the person out. It has its own transaction, so it holds whatever happens to the rest, and nothing waits for
/// the person's row that this waits for.
async fn lock_out(database: &AppDatabase, person: &Person) -> Result<(), PersonError> {
    let mut open = database.begin().await?;
    // Nobody has ever seen the new token.
    people::replace_token(&mut open.connection(), person).await?;
    open.commit().await?;
    Ok(())
}

/// Deletes the bookmarks. A running job finds none and does nothing.
async fn delete_bookmarks(database: &AppDatabase, person: &Person) -> Result<(), PersonError> {
    let mut open = database.begin().await?;
    bookmarks::delete_all(&mut open.connection(), person.id).await?;
    search::forget_deleted(&mut open.connection()).await?;
    open.commit().await?;
    Ok(())
}

/// Deletes the engine's jobs when they have ended, then the responses under keys: those are kept while a job exists.
async fn forget_work(store: &Store, person: &Person) -> Result<(), PersonError> {
    let identity = person.id.to_string();
    for queue in jobs::queues() {
        while !is_done(is_forgotten(store, &queue, &identity).await)? {
            sleep(LOOK_EVERY).await;
        }
    }
    forget_keys(store, person).await
}

async fn forget_keys(store: &Store, person: &Person) -> Result<(), PersonError> {
    let identity = person.id.to_string();
    while !is_done(
        store.keys().delete_of_identity(&identity, MAX_PAGE).await.map(|forgotten| forgotten == 0),
    )? {}
    Ok(())
}

/// A check that the store was too busy for is repeated.
fn is_done(looked: Result<bool, StoreError>) -> Result<bool, StoreError> {
    if matches!(looked, Err(StoreError::Busy)) { Ok(false) } else { looked }
}

/// Cancels waiting jobs and deletes ended ones; returns whether that was all.
async fn is_forgotten(store: &Store, queue: &QueueName, identity: &str) -> Result<bool, StoreError> {
    while 0 < store.messages().delete_of_identity(None, queue, identity, MAX_PAGE).await? {}
    let (queue, identity) = (Some(queue.clone()), Some(identity.to_owned()));
    let left = MessageFilter { queue, identity, ..MessageFilter::default() };
    let left = store.messages().list(&left, MAX_PAGE).await?;
    for message in &left {
        let (id, note) = (message.id, Note::default());
        // A message that has moved on meanwhile is checked again.
        match message.status {
            StateName::Queued | StateName::Failed => store.messages().cancel(id, &note).await.map(drop)?,
            StateName::Parked => {
                store.dead_letters().decide(&[id], Decision::GiveUp, &note).await.map(drop)?;
            }
            StateName::Dead => store.dead_letters().discard(&[id], &note).await.map(drop)?,
            // It ends on its own, or has ended by now.
            StateName::Sending | StateName::Sent | StateName::Cancelled => (),
        }
    }
    Ok(left.is_empty())
}

/// Deletes the person if nothing refers to them.
async fn delete_person(database: &AppDatabase, person: &Person) -> Result<bool, PersonError> {
    const ICONS: &str = "DELETE FROM icons WHERE person_id = $1";
    const PERSON: &str = "DELETE FROM people WHERE id = $1";
    let mut open = database.begin().await?;
    let mut connection = open.connection();
    people::token_hash_held(&mut connection, person.id).await?;
    if 0 < bookmarks::count(&mut connection, person.id).await? {
        return Ok(false);
    }
    on!(connection, c => {
        sqlx::query(ICONS).bind(person.id).execute(&mut *c).await?;
        sqlx::query(PERSON).bind(person.id).execute(&mut *c).await?;
    });
    open.commit().await?;
    Ok(true)
}
