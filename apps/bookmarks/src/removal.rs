//! Somebody is taken away, with everything that is theirs.
//!
//! Guarantee: when it is done, no table has anything of theirs, neither the app's nor the engine's: no bookmark, no message, no dead
//! letter, no answer under a key. What is interrupted is said again, because the name goes last; and nobody comes in by it meanwhile.

use std::time::Duration;

use ichido_core::lifecycle::{Decision, Event, Stage};
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::message::limits::PAGE_MAX;
use ichido_store::message::{MessageFilter, Note, QueueName};
use tokio::time::{sleep, timeout};

use crate::database::{AppDatabase, on};
use crate::people::{self, Person, PersonError};
use crate::settings::limits;
use crate::{bookmarks, jobs};

/// How often is looked whether a job has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn remove(database: &AppDatabase, store: &Store, name: &str) -> Result<(), PersonError> {
    let person = people::by_name(database, name).await?;
    let removing = async {
        loop {
            shut_out(database, &person).await?;
            empty(database, &person).await?;
            forget_work(store, &person).await?;
            // A request that was let in before may have saved one more. There are no new ones, so that this ends.
            if take_away(database, &person).await? {
                // Nothing can be done in their name any more; what was being refused just now is forgotten too.
                return forget_keys(store, &person).await;
            }
        }
    };
    timeout(limits::REMOVE_WITHIN, removing).await.unwrap_or(Err(PersonError::AtWork))
}

/// Lets nobody in any more. By itself, so that it stands whatever becomes of the rest, and so that nothing waits for the person's row that this
/// waits for in turn.
async fn shut_out(database: &AppDatabase, person: &Person) -> Result<(), PersonError> {
    let mut open = database.begin().await?;
    // Nobody has ever seen the new one.
    people::replace_token(&mut open.connection(), person).await?;
    open.commit().await?;
    Ok(())
}

/// Takes the bookmarks away. A job under way finds none, and does nothing.
async fn empty(database: &AppDatabase, person: &Person) -> Result<(), PersonError> {
    let mut open = database.begin().await?;
    bookmarks::delete_all(&mut open.connection(), person.id).await?;
    open.commit().await?;
    Ok(())
}

/// Has the engine forget the jobs, when they are over, and then the answers under keys: those are kept while a job is not.
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
    while !is_done(store.keys().forget_of(&identity, PAGE_MAX).await.map(|forgotten| forgotten == 0))? {}
    Ok(())
}

/// What the store was too busy for is looked at again.
fn is_done(looked: Result<bool, StoreError>) -> Result<bool, StoreError> {
    if matches!(looked, Err(StoreError::Busy)) { Ok(false) } else { looked }
}

/// Ends what waits, and forgets what is over; answers whether that was all.
async fn is_forgotten(store: &Store, queue: &QueueName, identity: &str) -> Result<bool, StoreError> {
    while 0 < store.messages().forget_of(None, queue, identity, PAGE_MAX).await? {}
    let (queue, identity) = (Some(queue.clone()), Some(identity.to_owned()));
    let left = MessageFilter { queue, identity, ..MessageFilter::default() };
    let left = store.messages().list(&left, PAGE_MAX).await?;
    for message in &left {
        let event = match message.status {
            Stage::Queued | Stage::Failed => Event::Cancelled,
            Stage::Parked => Event::Decided(Decision::GiveUp),
            Stage::Dead => Event::Discarded,
            // It ends by itself; or it has by now.
            Stage::Sending | Stage::Sent | Stage::Cancelled => continue,
        };
        // One that has gone on meanwhile is looked at again.
        store.messages().step(message.id, |_| event, &Note::default()).await?;
    }
    Ok(left.is_empty())
}

/// Takes the name away, if nothing refers to it.
async fn take_away(database: &AppDatabase, person: &Person) -> Result<bool, PersonError> {
    const SQL: &str = "DELETE FROM people WHERE id = $1";
    let mut open = database.begin().await?;
    let mut connection = open.connection();
    people::token_hash_held(&mut connection, person.id).await?;
    if 0 < bookmarks::count(&mut connection, person.id).await? {
        return Ok(false);
    }
    on!(connection, c => sqlx::query(SQL).bind(person.id).execute(c).await.map(drop))?;
    open.commit().await?;
    Ok(true)
}
