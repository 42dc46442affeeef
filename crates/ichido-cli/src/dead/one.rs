//! One letter after another: what was found out about it, and what is made from it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ichido_core::key::IdempotencyKey;
use ichido_core::lifecycle::{Decision, Event, Found, State, Why};
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;
use ichido_store::letter::{LetterRow, LetterStepped, Replaced};
use ichido_store::message::limits::{PAGE_MAX, REQUEST_BYTES_MAX};
use ichido_store::message::{LetterState, MessageRow, NewMessage, Note, QueueName};
use serde_json::json;
use uuid::Uuid;

use super::look::no_letter;
use super::settings::{Settings, failed};
use crate::accept::{self, Offer, Understood};
use crate::body_key;
use crate::config::Intake;
use crate::exit::Exit;
use crate::out;

/// What a person found out.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Finding {
    /// It was done: a parked one counts as sent, a dead one says so from now on
    Done,
    /// It was not done: a parked one is sent again, a dead one may be requeued
    NotDone,
    /// It cannot be found out: a parked one becomes dead, its effect unknown
    GiveUp,
}

impl Finding {
    /// What follows for a letter. A dead one stays dead, and more is known of it.
    pub(crate) const fn event(self, state: LetterState, now: Timestamp) -> Event {
        match (self, state) {
            (Self::Done, LetterState::Parked) => Event::Decided(Decision::WasDone),
            (Self::NotDone, LetterState::Parked) => Event::Decided(Decision::SendAgain),
            (Self::Done, LetterState::Dead) => Event::Reconciled(Found::Done),
            (Self::NotDone, LetterState::Dead) => Event::Reconciled(Found::NotDone { due: now }),
            (Self::GiveUp, _) => Event::Decided(Decision::GiveUp),
        }
    }
}

pub(super) async fn decide(
    settings: &Settings,
    finding: Finding,
    ids: &[Uuid],
    reason: Option<String>,
) -> Result<(), Exit> {
    let most = PAGE_MAX as usize;
    if most < ids.len() {
        return Err(settings.wrong("ID", format!("these are {}; at most {most} at once", ids.len())));
    }
    let store = settings.open().await?;
    let cannot = failed("the decision could not be stored");
    let letters = store.letter_find(ids).await.map_err(&cannot)?;
    let note = Note { actor: Some(settings.by.clone()), excerpt: reason, ..Note::default() };
    let event = |letter: &LetterRow, now| finding.event(letter.state, now);
    let stepped = store.letters_step(ids, event, &note).await.map_err(&cannot)?;
    let mut refused = false;
    for (id, stepped) in ids.iter().zip(stepped) {
        let letter = letters.iter().find(|letter| letter.id == *id);
        let (is_done, told) = match decided(stepped, letter) {
            Ok(told) => (true, told.to_owned()),
            Err(why) => (false, format!("refused: {why}")),
        };
        refused |= !is_done;
        if settings.json {
            out::line(json!({ "id": id.to_string(), "decided": is_done, "told": told }))?;
        } else {
            out::line(format_args!("{id}: {told}"))?;
        }
    }
    if refused { Err(Exit::Found) } else { Ok(()) }
}

/// What became of a letter, in words, or why nothing did.
pub(crate) fn decided(stepped: LetterStepped, letter: Option<&LetterRow>) -> Result<&'static str, String> {
    let travels = letter.and_then(|letter| letter.history.doubt).map(|doubt| doubt.travels_until);
    match (stepped, travels) {
        (LetterStepped::Now(State::Sent), _) => Ok("it was done, and counts as sent"),
        (LetterStepped::Now(State::Queued { .. }), _) => Ok("it was not done, and is sent again"),
        (LetterStepped::Now(State::Dead { effect: Effect::NotDone, .. }), _) => {
            Ok("it was not done; it stays dead, and may be requeued")
        }
        (LetterStepped::Now(State::Dead { effect: Effect::Done, .. }), _) => {
            Ok("it was done; it stays dead, and is not sent again")
        }
        (LetterStepped::Now(_), _) => Ok("it is dead, and its effect stays unknown"),
        (LetterStepped::Refused(Why::TooEarly), Some(until)) => {
            Err(format!("its call may still be travelling until {until}; decide after that"))
        }
        (LetterStepped::Refused(Why::NotFromHere), _) => {
            Err("what is known of its effect is known already, or it is dead already".to_owned())
        }
        (LetterStepped::Refused(why), _) => Err(why.to_string()),
        (LetterStepped::NoLetter, _) => {
            Err("it is no dead or parked letter, or none any more; `ichido dead list --parked` lists those that are".to_owned())
        }
    }
}

/// What a new message is to be.
pub(super) struct Edit {
    pub(super) request: PathBuf,
    pub(super) key: Option<String>,
    /// Though the old one took effect.
    pub(super) yes: bool,
    pub(super) reason: Option<String>,
}

pub(super) async fn edit(settings: &Settings, id: Uuid, edit: Edit) -> Result<(), Exit> {
    let key = edit.key.unwrap_or_else(|| Uuid::now_v7().to_string());
    let key = IdempotencyKey::parse(&key).map_err(|error| settings.wrong("--key", error.to_string()))?;
    let request = read(&edit.request).map_err(|why| settings.wrong("--request", why))?;
    body_key::agrees(&key, &request).map_err(|why| settings.wrong("--request", why))?;
    let store = settings.open().await?;
    let cannot = failed("the new message could not be put in");
    let Some(old) = store.message_get(id).await.map_err(&cannot)? else { return Err(no_letter(id)) };
    let letter = store.letter_find(&[id]).await.map_err(&cannot)?.pop();
    if !edit.yes && letter.is_some_and(|letter| letter.effect == Effect::Done) {
        let what = format!(
            "{id} TOOK EFFECT, and a message made from it is done once more, under a key that nobody has seen; nothing was made. If that is \
             meant, say --yes; if not, it needs no more attention: ichido dead discard {id} --reason …"
        );
        return Err(settings.wrong("--yes", what));
    }
    let queue = settings.queue(&old.queue);
    if let Some(warning) = queue.and_then(|queue| body_key::warning(queue, &request)) {
        out::aside(&warning);
    }
    let note = Note { actor: Some(settings.by.clone()), excerpt: edit.reason, ..Note::default() };
    let Some(offer) = made_from(&old, key, request, settings.intake(&old.queue)) else {
        return Err(no_letter(id));
    };
    let wrong = |why: accept::Refused| settings.wrong("--request", why.to_string());
    let Understood { message, misfit } = accept::message(offer).map_err(wrong)?;
    if let Some(misfit) = misfit {
        return Err(wrong(misfit));
    }
    let new = NewMessage { priority: old.priority, ..message };
    let key = new.key.clone();
    match store.letter_replace(id, new, &note).await.map_err(&cannot)? {
        Replaced::By { id: new, effect } => {
            let known = if effect == Effect::Done {
                "The old one TOOK EFFECT, so this is done once more."
            } else {
                "The old one was not done."
            };
            let warning = format!(
                "this is a new action under a new key: whoever receives it cannot tell that it replaces {id}. {known}"
            );
            if settings.json {
                let told = json!({ "id": new.to_string(), "made_from": id.to_string(), "key": key.as_str(), "warning": warning });
                out::line(told)
            } else {
                out::line(format_args!("{new} is queued, made from {id}\nwarning: {warning}"))
            }
        }
        Replaced::Refused(Why::CouldDoItTwice) => Err(Exit::Failed(format!(
            "nothing was made from {id}: nobody knows whether it took effect; find out, and say so: ichido dead decide done|not-done {id}"
        ))),
        Replaced::Refused(Why::NotFromHere) => Err(Exit::Failed(format!(
            "nothing was made from {id}: it is parked, and its effect unknown; find out, and say so: ichido dead decide done|not-done {id}"
        ))),
        Replaced::Refused(why) => Err(Exit::Failed(format!("nothing was made from {id}: {why}"))),
        Replaced::KeyUsed { id: used } => {
            Err(settings.wrong("--key", format!("was used before, by {used}; give a new one, or none")))
        }
        Replaced::NoLetter => Err(no_letter(id)),
    }
}

/// The old one with another request and key.
fn made_from(old: &MessageRow, key: IdempotencyKey, body: Vec<u8>, intake: Intake) -> Option<Offer> {
    Some(Offer {
        queue: QueueName::parse(&old.queue)?,
        identity: old.identity.clone(),
        key,
        content_type: old.content_type.clone(),
        body,
        hops: old.hops.clone(),
        trace: old.trace.clone(),
        tries: std::num::NonZeroU32::new(old.tries_allowed)?,
        intake,
    })
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    // One more than may be, to tell that there are more.
    let most = REQUEST_BYTES_MAX as u64 + 1;
    let mut request = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut request)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut request))
    };
    match read {
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        Ok(bytes) if REQUEST_BYTES_MAX < bytes => Err(format!(
            "{} is longer than {REQUEST_BYTES_MAX} bytes, the most that a request may have",
            path.display()
        )),
        Ok(_) => Ok(request),
    }
}
