//! Creates a new message in place of a dead one.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use form_urlencoded::Serializer;
use ichido::worker::OutboundKey;
use ichido_core::key::IdempotencyKey;
use ichido_server::accept::MAX_REQUEST_BYTES;
use ichido_server::body_key;
use ichido_server::serve::views::{Accepted, Letter};
use serde_json::json;
use uuid::Uuid;

use super::DeadLetters;
use crate::api_client::ApiProblem;
use crate::exit::Exit;
use crate::id::find_message;
use crate::{api_client, out};

/// Arguments of `ichido dead edit`.
#[derive(Debug, clap::Args)]
pub(super) struct Edit {
    /// Id of the dead letter, its first digits, or its key
    id: String,
    /// File with the new request; - is standard input
    #[arg(long, value_name = "FILE")]
    request: PathBuf,
    /// New idempotency key [default: generated]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Replace it even if it took effect; it runs again
    #[arg(long)]
    yes: bool,
    /// Reason, for the audit trail
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl DeadLetters {
    pub(super) async fn edit(&self, edit: Edit) -> Result<(), Exit> {
        let Edit { id, request, key, yes, reason } = edit;
        let key = key.unwrap_or_else(|| Uuid::now_v7().to_string());
        let key = IdempotencyKey::parse(&key).map_err(|error| Exit::invalid("--key", error.to_string()))?;
        let request = read(&request).map_err(|why| Exit::invalid("--request", why))?;
        body_key::agrees(&key, &request).map_err(|why| Exit::invalid("--request", why))?;
        let id = find_message(&self.api, &id).await?;
        let letter: Letter = self.letter(id).await?;
        if let Some(warning) = warning(&letter, &request) {
            out::eprint(&warning);
        }
        let content_type = self.message(id).await?.content_type;
        let mut target = Serializer::new(format!("/v1/messages/{id}/replace?"));
        target.append_pair("although_done", if yes { "true" } else { "false" });
        if let Some(reason) = &reason {
            target.append_pair("reason", reason);
        }
        let made = self.api.submit(&target.finish(), key.clone(), &content_type, request).await?;
        let Accepted { id: new, .. } = api_client::decode(&made.map_err(|problem| not_made(id, problem))?)?;
        let known = match letter.effect.as_str() {
            "done" => "The old message TOOK EFFECT, so its effect happens again.",
            _ => "The old message had no effect.",
        };
        let warning = format!(
            "this is a new action with a new key: its receiver does not know that it replaces {id}. {known}"
        );
        let result = json!({ "id": new.to_string(), "replacement_of": id.to_string(), "key": key.as_str(), "warning": warning });
        let text = format_args!("{new} is queued, replacing {id}\nwarning: {warning}");
        out::print_either(self.api.json, result, text)
    }
}

/// Explains why no message was created, with the flags and commands that help.
fn not_made(id: Uuid, problem: ApiProblem) -> Exit {
    let (code, reason) = (problem.text_at("/code"), problem.text_at("/reason"));
    match (problem.status(), code.as_deref(), reason.as_deref()) {
        (_, Some("key_conflict"), _) => {
            let first = problem.text_at("/first").unwrap_or_default();
            let used = first.rsplit('/').next().unwrap_or_default();
            Exit::invalid("--key", format!("was already used by {used}; pass a new key, or none"))
        }
        (_, _, Some("was_done")) => Exit::invalid(
            "--yes",
            format!(
                "nothing was created: {id} TOOK EFFECT, and a replacement has a new key, so its effect happens again. If \
                 that is intended, pass --yes; if not, run: ichido dead discard {id} --reason …"
            ),
        ),
        (_, _, Some("effect_unknown")) => Exit::Conflict(format!(
            "nothing was created: it is unknown whether {id} took effect; find out, then run: ichido dead decide done|not-done {id}"
        )),
        (409, _, _) => Exit::Conflict(format!("cannot replace {id}: {}", problem.message())),
        (400 | 413 | 415 | 422, _, _) => Exit::invalid("--request", problem.message()),
        _ => problem.into(),
    }
}

/// Returns a warning if the queue sends another key than the request's.
fn warning(letter: &Letter, request: &[u8]) -> Option<String> {
    let is_own = *letter.outbound_key.as_ref()? == letter.idempotency_key;
    body_key::warning(&letter.queue, if is_own { OutboundKey::Own } else { OutboundKey::Derived }, request)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    // One more byte than allowed, to detect a request that is too long.
    let most = MAX_REQUEST_BYTES as u64 + 1;
    let mut request = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(most).read_to_end(&mut request)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut request))
    };
    match read {
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        Ok(bytes) if MAX_REQUEST_BYTES < bytes => Err(format!(
            "{} is longer than {MAX_REQUEST_BYTES} bytes, the maximum size of a request",
            path.display()
        )),
        Ok(_) => Ok(request),
    }
}
