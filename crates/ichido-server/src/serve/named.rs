//! Messages as people name them: by id, by its first digits, or by idempotency key.

use form_urlencoded::Serializer;
use ichido_core::key::IdempotencyKey;
use ichido_core::text::table;
use ichido_store::message::IdPrefix;
use serde::Deserialize;
use uuid::Uuid;

use super::models::MessageFacts;

/// The maximum number of messages that are listed for an ambiguous name.
const MAX_CANDIDATES: u32 = 20;

/// The maximum number of pages that are read for one name.
const MAX_PAGES: usize = 20;

/// The messages on a page.
#[derive(Debug, Deserialize)]
pub struct NamedMessages {
    messages: Vec<MessageFacts>,
    next: Option<String>,
}

/// Finds the one message that a text names, or explains why there is none.
///
/// `read` reads a target of the API. A whole id is returned as it is, without a request, so a change that names one is one
/// request. A text that is the beginning of an id and also a key names more than one message.
pub async fn find_named<E>(
    text: &str,
    read: impl AsyncFn(String) -> Result<NamedMessages, E>,
) -> Result<Result<Uuid, String>, E> {
    // Ids of messages have this version; most keys that look like an id have another.
    if let Ok(id) = Uuid::try_parse(text)
        && id.get_version_num() == 7
    {
        return Ok(Ok(id));
    }
    let mut found = Vec::new();
    if IdPrefix::parse(text).is_some() {
        found = find_by("id", text, &read).await?;
    }
    if IdempotencyKey::parse(text).is_ok() {
        let by_key = find_by("key", text, &read).await?;
        let known: Vec<Uuid> = found.iter().map(|message| message.id).collect();
        found.extend(by_key.into_iter().filter(|message| !known.contains(&message.id)));
    }
    Ok(match &*found {
        [message] => Ok(message.id),
        [] => Err(format!(
            "no message has the key {text}, or an id that begins with these digits (at least {}); `ichido messages list` shows both",
            IdPrefix::MIN_DIGITS
        )),
        _ => {
            let rows = found.into_iter().map(|message| {
                [message.id.to_string(), message.queue, message.status, message.idempotency_key]
            });
            let candidates = table(["ID", "QUEUE", "STATE", "KEY"], rows);
            Err(format!(
                "{text} names more than one message; use more digits of an id:\n{}",
                candidates.trim_end()
            ))
        }
    })
}

/// Reads the messages that a parameter selects, until more than one is found.
async fn find_by<E>(
    parameter: &str,
    text: &str,
    read: &impl AsyncFn(String) -> Result<NamedMessages, E>,
) -> Result<Vec<MessageFacts>, E> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..MAX_PAGES {
        let mut query = Serializer::new("/v1/messages?".to_owned());
        query.append_pair(parameter, text).append_pair("limit", &MAX_CANDIDATES.to_string());
        if let Some(cursor) = &cursor {
            query.append_pair("cursor", cursor);
        }
        let page = read(query.finish()).await?;
        found.extend(page.messages);
        cursor = page.next;
        if cursor.is_none() || 1 < found.len() {
            break;
        }
    }
    Ok(found)
}

/// Finds the messages that texts name, each once and in order, or explains why one is not found.
pub async fn find_all_named<E>(
    texts: &[String],
    read: impl AsyncFn(String) -> Result<NamedMessages, E>,
) -> Result<Result<Vec<Uuid>, String>, E> {
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        match find_named(text, &read).await? {
            Ok(id) if ids.contains(&id) => (),
            Ok(id) => ids.push(id),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(ids))
}
