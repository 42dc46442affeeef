//! Lists letters, and shows one in full.

use ichido_server::serve::views::{Event, Letter, MessageFacts};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::DeadLetters;
use super::filter::DeadLetterFilter;
use super::letter::{self, HEAD};
use crate::api_client::{self, List};
use crate::exit::Exit;
use crate::out;

/// The API's limit on the letters of one page.
const MAX_PAGE: u32 = 200;

impl DeadLetters {
    pub(super) async fn list(
        &self,
        filter: &DeadLetterFilter,
        limit: u32,
        after: Option<String>,
    ) -> Result<(), Exit> {
        let list = List {
            query: filter.query()?,
            max_page: Some(MAX_PAGE),
            limit,
            after,
            has_after: true,
            none: if filter.is_of_parked() {
                "no matching parked messages"
            } else {
                "no matching dead letters; --parked lists messages that wait for a decision"
            },
            to_json: letter::to_json,
            ..List::new("/v1/dead-letters", "dead_letters", HEAD)
        };
        self.api.list(list, letter::row).await
    }

    pub(super) async fn show(&self, id: Uuid, request: bool) -> Result<(), Exit> {
        let letter: Map<String, Value> = self.letter(id).await?;
        if request {
            let answer = self.api.get(&format!("/v1/messages/{id}/request")).await?;
            return out::print_bytes(&answer.body);
        }
        let message = self.message(id).await?;
        let events: Vec<Map<String, Value>> =
            self.api.items(&format!("/v1/messages/{id}/events"), "events").await?;
        if self.api.json {
            return out::print_line(letter::to_json_in_full(letter, message, events));
        }
        let mut letter: Letter = api_client::decode_value(letter.into())?;
        let events: Vec<Event> = api_client::decode_value(events.into())?;
        let outbound_key = letter.outbound_key.take().unwrap_or_else(|| {
            format!(
                "unknown: no worker has published queue {} yet; start the worker or program that serves it",
                letter.queue
            )
        });
        out::print(&letter::render_in_full(letter, outbound_key, &message, &events))
    }

    pub(super) async fn message(&self, id: Uuid) -> Result<MessageFacts, Exit> {
        api_client::decode(&self.api.get(&format!("/v1/messages/{id}")).await?)
    }

    pub(super) async fn letter<T: DeserializeOwned>(&self, id: Uuid) -> Result<T, Exit> {
        self.find(id).await?.map_err(|why| {
            Exit::Failed(format!(
                "{id} is not a dead letter or parked message: {why}; `ichido messages show {id}` shows it"
            ))
        })
    }

    /// Returns a letter, or why there is none.
    pub(super) async fn find<T: DeserializeOwned>(&self, id: Uuid) -> Result<Result<T, String>, Exit> {
        match self.api.try_get(&format!("/v1/dead-letters/{id}")).await? {
            Ok(answer) => Ok(Ok(api_client::decode(&answer)?)),
            Err(problem) if matches!(problem.status(), 404 | 409) => Ok(Err(problem.message())),
            Err(problem) => Err(problem.into()),
        }
    }
}
