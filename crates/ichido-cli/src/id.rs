//! Ids as command-line arguments.

use ichido_server::serve::views::{find_all_named, find_named};
use uuid::Uuid;

use crate::api_client::{ApiClient, decode};
use crate::exit::Exit;

/// Parses an id that was typed or pasted.
pub(crate) fn parse(text: &str) -> Result<Uuid, String> {
    Uuid::try_parse(text).map_err(|_| {
        "not an id; copy it from a list, such as 01a1df2e-24dc-702a-8000-3798d20b2380".to_owned()
    })
}

/// Finds the message that an argument names: by its id, the first digits of it, or its key.
pub(crate) async fn find_message(api: &ApiClient, text: &str) -> Result<Uuid, Exit> {
    find_named(text, async |target| decode(&api.get(&target).await?)).await?.map_err(unclear)
}

/// Finds the messages that arguments name, each once, in order.
pub(crate) async fn find_messages(api: &ApiClient, texts: &[String]) -> Result<Vec<Uuid>, Exit> {
    find_all_named(texts, async |target| decode(&api.get(&target).await?)).await?.map_err(unclear)
}

fn unclear(why: String) -> Exit {
    Exit::invalid("ID", why)
}
