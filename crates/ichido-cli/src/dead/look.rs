//! Looking at letters: lists, and all of one.

use std::fmt::Write as _;

use form_urlencoded::Serializer;
use ichido_core::text::table;
use serde::Deserialize;
use uuid::Uuid;

use super::Dead;
use super::filter::Filter;
use super::letter::{HEAD, Letter, Message};
use crate::exit::Exit;
use crate::out;
use crate::reach;
use crate::reach::shown::Event;

/// The most letters of one page, as the API has it.
const PAGE_MAX: u32 = 200;

#[derive(Deserialize)]
struct Page {
    letters: Vec<Letter>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Event>,
}

impl Dead {
    pub(super) async fn list(&self, filter: &Filter, limit: u32, after: Option<String>) -> Result<(), Exit> {
        let query = filter.query()?;
        let (mut left, mut next, mut rows) = (limit, after, Vec::new());
        loop {
            let page = self.page(&query, left.min(PAGE_MAX), next.as_deref()).await?;
            // One that gives more than was asked for does not make the list longer.
            for letter in page.letters.into_iter().take(left as usize) {
                left -= 1;
                if self.reach.json {
                    out::line(letter.as_json())?;
                } else {
                    rows.push(letter.row());
                }
            }
            next = page.next;
            if left == 0 || next.is_none() {
                break;
            }
        }
        if self.reach.json {
            return Ok(());
        }
        if rows.is_empty() {
            let state = if filter.is_of_parked() { "parked" } else { "dead" };
            return out::line(format_args!("no {state} letters fit"));
        }
        let mut text = table(HEAD, rows.into_iter());
        if let Some(next) = next {
            // A string takes all that is written to it.
            _ = writeln!(text, "there may be more: --after {next}");
        }
        out::say(&text)
    }

    async fn page(&self, query: &[(&str, String)], limit: u32, after: Option<&str>) -> Result<Page, Exit> {
        let mut target = Serializer::new("/v1/letters?".to_owned());
        target.extend_pairs(query).append_pair("limit", &limit.to_string());
        if let Some(cursor) = after {
            target.append_pair("cursor", cursor);
        }
        match self.reach.look(&target.finish()).await? {
            Ok(answer) => reach::read(&answer),
            // The API's words name its parameter, and not our flag.
            Err(refusal) if after.is_some() && refusal.told().starts_with("cursor ") => {
                Err(Exit::wrong("--after", "is not the end of a page; give what the page before said"))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    pub(super) async fn show(&self, id: Uuid, request: bool) -> Result<(), Exit> {
        let letter = self.letter(id).await?;
        if request {
            let answer = self.reach.get(&format!("/v1/messages/{id}/request")).await?;
            return out::bytes(&answer.body);
        }
        let message = self.message(id).await?;
        let Events { events } = reach::read(&self.reach.get(&format!("/v1/messages/{id}/events")).await?)?;
        if self.reach.json {
            return out::line(letter.whole_json(&message, &events));
        }
        let sent_as = letter.sent_as.clone().unwrap_or_else(|| {
            format!(
                "not known: no worker has published queue {} yet; start the worker or program that serves it",
                letter.queue
            )
        });
        out::say(&letter.whole(&sent_as, &message, &events))
    }

    pub(super) async fn message(&self, id: Uuid) -> Result<Message, Exit> {
        reach::read(&self.reach.get(&format!("/v1/messages/{id}")).await?)
    }

    pub(super) async fn letter(&self, id: Uuid) -> Result<Letter, Exit> {
        self.find(id).await?.map_err(|why| {
            Exit::Failed(format!(
                "{id} is no dead or parked letter: {why}; `ichido dead list` lists those that are, perhaps with --parked or --discarded"
            ))
        })
    }

    /// A letter, or why there is none.
    pub(super) async fn find(&self, id: Uuid) -> Result<Result<Letter, String>, Exit> {
        match self.reach.look(&format!("/v1/letters/{id}")).await? {
            Ok(answer) => Ok(Ok(reach::read(&answer)?)),
            Err(refusal) if matches!(refusal.status(), 404 | 409) => Ok(Err(refusal.told())),
            Err(refusal) => Err(refusal.into()),
        }
    }
}
