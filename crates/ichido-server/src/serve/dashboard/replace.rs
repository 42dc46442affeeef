//! Edit and retry: a form with the request of a dead message, which becomes a new message.
//!
//! Guarantee: the form has the new key, so sending it twice enqueues one message. A refused form comes back as the person wrote it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use form_urlencoded::Serializer;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use ichido_core::settings::size;
use serde::Deserialize;
use uuid::Uuid;

use super::super::dead_letters::Letter;
use super::super::models::Message;
use super::super::problem::{Code, Problem};
use super::super::steps::action_refused;
use super::call::collect;
use super::key_texts::Texts as KeyTexts;
use super::message::{is_redacted, parse_id};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::sign_in::{FormFields, read_form_up_to};
use super::texts::fill;
use super::{Dashboard, see_other};

/// Maximum bytes of a request that is edited here.
const MAX_EDITED_BYTES: usize = 64 << 10;
/// Each byte of a field has at most three in a form; the other fields are short.
const MAX_FORM_BYTES: usize = 3 * MAX_EDITED_BYTES + (16 << 10);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Template)]
#[template(path = "replace.html")]
struct ReplacePage {
    shell: Shell,
    k: &'static KeyTexts,
    id: Uuid,
    title: String,
    error: Option<String>,
    /// Why there is no form.
    not_here: Option<String>,
    fields: EditedRequest,
    is_redacted: bool,
}

/// What a person writes.
#[derive(Default)]
struct EditedRequest {
    request: String,
    key: String,
    content_type: String,
    reason: String,
}

impl EditedRequest {
    /// Reads the form. A browser sends each line break as CR LF; `has_returns` is whether the old request had such.
    fn of_form(form: &FormFields, has_returns: bool) -> Self {
        let get = |name| form.get(name).unwrap_or_default().to_owned();
        let request = get("request");
        Self {
            request: if has_returns { request } else { request.replace("\r\n", "\n") },
            key: get("key").trim().to_owned(),
            content_type: get("content_type").trim().to_owned(),
            reason: get("reason").trim().to_owned(),
        }
    }
}

/// A dead message with its request.
struct OldMessage {
    message: Message,
    request: bytes::Bytes,
}

impl OldMessage {
    async fn read(dashboard: &Dashboard, visitor: &Visitor, id: Uuid) -> Result<Self, PageRefusal> {
        let caller = visitor.caller()?;
        let message: Message = dashboard.read(caller, &format!("/v1/messages/{id}")).await?;
        let letter: Letter = dashboard.read(caller, &format!("/v1/dead-letters/{id}")).await?;
        if letter.state != "dead" || letter.disposition != "open" {
            let why = "only an open dead letter can be edited; this one is parked, or was closed";
            return Err(action_refused("not_dead", why).into());
        }
        let target = format!("/v1/messages/{id}/request");
        let request = collect(dashboard.call(caller, Method::GET, &target, String::new()).await?).await?;
        Ok(Self { message, request })
    }

    /// Returns the request as text, if it can be edited here.
    fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.request).ok()?;
        // A form cannot carry a single CR, or a NUL.
        let is_plain = !text.contains('\0') && !text.replace("\r\n", "").contains('\r');
        (is_plain && text.len() <= MAX_EDITED_BYTES && !mixes_breaks(text)).then_some(text)
    }

    fn page(
        &self,
        dashboard: &Dashboard,
        visitor: &Visitor,
        (fields, error): (EditedRequest, Option<String>),
    ) -> ReplacePage {
        let (k, facts) = (visitor.key_texts(), &self.message.facts);
        let path = format!("/v1/messages/{}/replace", facts.id);
        let bytes = size::format_in_text(MAX_EDITED_BYTES);
        let not_here = || fill(k.edit_not_text, &[("bytes", &bytes), ("path", &path)]);
        ReplacePage {
            shell: dashboard.shell(visitor, k.edit_title),
            k,
            id: facts.id,
            title: facts.item.clone().unwrap_or_else(|| facts.idempotency_key.clone()),
            error,
            not_here: self.text().is_none().then(not_here),
            fields,
            is_redacted: is_redacted(&self.request),
        }
    }
}

/// Whether some line breaks are CR LF and others LF: a form would make them equal.
fn mixes_breaks(text: &str) -> bool {
    text.contains("\r\n") && text.replace("\r\n", "").contains('\n')
}

/// Shows the form, with a new key.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Response, PageRefusal> {
    let old = OldMessage::read(&dashboard, &visitor, parse_id(&id)?).await?;
    let fields = EditedRequest {
        request: old.text().unwrap_or_default().to_owned(),
        key: Uuid::now_v7().to_string(),
        content_type: old.message.facts.content_type.clone(),
        reason: String::new(),
    };
    Ok(html(StatusCode::OK, &old.page(&dashboard, &visitor, (fields, None))))
}

/// Enqueues the edited request, and closes the old message.
pub(super) async fn send(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let id = parse_id(&id)?;
    let (head, body) = request.into_parts();
    let form = read_form_up_to(MAX_FORM_BYTES, &head.headers, body).await?;
    let target = format!("/v1/messages/{id}/request");
    let old = collect(dashboard.call(visitor.caller()?, Method::GET, &target, String::new()).await?).await?;
    let edited = EditedRequest::of_form(&form, old.windows(2).any(|pair| pair == b"\r\n"));
    match enqueue(&dashboard, &visitor, id, &edited).await {
        Ok(new) => {
            dashboard.sampler.forget();
            Ok(see_other(&dashboard.base, &format!("/messages/{new}?did=replace")))
        }
        Err(refusal) if matches!(refusal.status, 400 | 409 | 413 | 415 | 422) => {
            let error = fill(visitor.t().not_done_notice, &[("why", &refusal.detail)]);
            // If the message is not dead any more, there is nothing to edit.
            let Ok(old) = OldMessage::read(&dashboard, &visitor, id).await else { return Err(refusal) };
            let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::CONFLICT);
            Ok(html(status, &old.page(&dashboard, &visitor, (edited, Some(error)))))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Replaces the message through the API, and returns the id of the new one.
async fn enqueue(
    dashboard: &Dashboard,
    visitor: &Visitor,
    id: Uuid,
    edited: &EditedRequest,
) -> Result<Uuid, PageRefusal> {
    #[derive(Deserialize)]
    struct New {
        id: Uuid,
    }
    let field = |text: &str| {
        HeaderValue::try_from(text).map_err(|_| {
            let detail = "the key or the content type has characters that a header field cannot have";
            Problem::new(Code::ParameterInvalid, detail)
        })
    };
    let path = format!("/v1/messages/{id}/replace?");
    let target = Serializer::for_suffix(path.clone(), path.len())
        .extend_pairs(Some(("reason", &edited.reason)).filter(|(_, reason)| !reason.is_empty()))
        .finish();
    let mut request = http::Request::new(Body::from(edited.request.clone()));
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(IDEMPOTENCY_KEY, field(&edited.key)?);
    request.headers_mut().insert(CONTENT_TYPE, field(&edited.content_type)?);
    let response = dashboard.send(visitor.caller()?, &target, request).await?;
    let bytes = collect(response).await?;
    let new: New = serde_json::from_slice(&bytes).map_err(|_| super::call::unreadable())?;
    Ok(new.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_cannot_keep_line_breaks_is_not_shown() {
        assert!(!mixes_breaks("a\nb\n") && !mixes_breaks("a\r\nb\r\n") && !mixes_breaks("{}"));
        assert!(mixes_breaks("a\r\nb\n"));
    }
}
