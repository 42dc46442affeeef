//! The pages of keys: those of unknown outcome, a look-up, and one request's key with its stored response.
//!
//! Guarantee: a page shows what `GET /v1/keys` and `GET /v1/keys/unknown` show the same token: no byte of a response to a viewer.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use form_urlencoded::Serializer;
use http::{StatusCode, Uri};
use ichido_core::key::KeyHash;
use serde::Deserialize;

use super::super::keys::{KeyRecord, KeysFound};
use super::super::request::query_pairs;
use super::Dashboard;
use super::condition::total;
use super::key;
use super::key_answer::message_path;
use super::key_texts::Texts as KeyTexts;
use super::marks;
use super::message::Notice;
use super::moments::{ShownTime, full, grouped};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::fill;

/// Maximum keys of unknown outcome on a page.
const PAGE: u32 = 50;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    k: &'static KeyTexts,
    text: String,
    error: Option<String>,
    notice: Option<Notice>,
    found: Option<FoundSection>,
    unknown: Option<UnknownSection>,
}

/// What a look-up found.
struct FoundSection {
    rows: Vec<KeyLine>,
    note: Option<String>,
}

/// The keys of unknown outcome.
struct UnknownSection {
    rows: Vec<KeyLine>,
    /// Says that messages wait for a decision, if no key does.
    parked: Option<String>,
    newest: bool,
    next: Option<String>,
}

/// A key in a table.
struct KeyLine {
    mark: &'static str,
    class: &'static str,
    state: String,
    kind: &'static str,
    subject: String,
    identity: String,
    key: String,
    href: String,
    at: ShownTime,
}

#[derive(Deserialize)]
struct UnknownKeys {
    records: Vec<KeyRecord>,
    next: Option<String>,
}

/// The parameters of the page.
#[derive(Default)]
pub(super) struct KeyQuery {
    /// A key, or the hash of one.
    key: String,
    /// Operation and identity name one request.
    of: Option<(String, String)>,
    cursor: Option<String>,
    did: Option<String>,
}

impl KeyQuery {
    fn read(uri: &Uri) -> Result<Self, PageRefusal> {
        let mut query = query_pairs(uri)?;
        let mut take = |wanted: &str| {
            let at = query.iter().position(|(name, _)| name == wanted)?;
            Some(query.swap_remove(at).1).filter(|value| !value.is_empty())
        };
        Ok(Self {
            key: take("key").unwrap_or_default(),
            of: take("operation").zip(take("identity")),
            cursor: take("cursor"),
            did: take("did"),
        })
    }

    /// Names one request.
    pub(super) fn of_request(operation: &str, identity: &str, key: &str) -> Self {
        let of = Some((operation.to_owned(), identity.to_owned()));
        Self { key: key.to_owned(), of, ..Self::default() }
    }

    /// Returns the query of the API for everything under the key.
    fn target(&self) -> String {
        let mut target = Serializer::for_suffix("/v1/keys?".to_owned(), "/v1/keys?".len());
        target.append_pair("key", &self.key);
        if let Some((operation, identity)) = &self.of {
            target.append_pair("operation", operation).append_pair("identity", identity);
        }
        target.finish()
    }

    fn hash_target(&self) -> Option<String> {
        KeyHash::parse(&self.key).map(|_| format!("/v1/keys?hash={}", self.key))
    }
}

/// Returns the page of one request's key.
pub(super) fn key_path(operation: &str, identity: &str, key: &str) -> String {
    let pairs = [("key", key), ("operation", operation), ("identity", identity)];
    Serializer::for_suffix("/keys?".to_owned(), "/keys?".len()).extend_pairs(pairs).finish()
}

/// Shows the keys of unknown outcome, or what was done under a key.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    uri: Uri,
) -> Result<Response, PageRefusal> {
    let query = KeyQuery::read(&uri)?;
    page(&dashboard, &visitor, &query, StatusCode::OK, None).await
}

/// Says what was decided, unless the key has changed since: an address can be opened later.
fn did_notice(k: &'static KeyTexts, query: &KeyQuery, state: Option<&str>) -> Option<Notice> {
    let text = match (query.did.as_deref()?, state) {
        ("done", Some("applied")) => k.did_key_done,
        ("not_done", None | Some("claimed" | "applied" | "refused")) => k.did_key_not_done,
        ("give_up", Some("refused")) => k.did_key_give_up,
        _ => return None,
    };
    Some(Notice { class: "ok", text: text.to_owned() })
}

/// Returns the page of a key or of all, with what came of a decision.
pub(super) async fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    query: &KeyQuery,
    status: StatusCode,
    notice: Option<Notice>,
) -> Result<Response, PageRefusal> {
    let k = visitor.key_texts();
    let mut page = KeysPage {
        shell: dashboard.shell(visitor, k.keys),
        k,
        text: query.key.clone(),
        error: None,
        notice,
        found: None,
        unknown: None,
    };
    if query.key.is_empty() {
        page.shell.live = Some("/live".to_owned());
        page.unknown = Some(unknown(dashboard, visitor, query.cursor.as_deref()).await?);
        return Ok(html(status, &page));
    }
    match look_up(dashboard, visitor, query).await {
        Ok(found) => match one_request(&found) {
            Some(record) if query.of.is_some() => {
                let notice = page.notice.or_else(|| did_notice(k, query, Some(&record.state)));
                key::page(dashboard, visitor, record, status, notice).await
            }
            // Named exactly, it has the bytes of its response, if the visitor may see them. It may be deleted meanwhile.
            Some(record) => {
                let operation = record.operation.as_deref().unwrap_or_default();
                let path = key_path(operation, &record.identity, &record.idempotency_key);
                let exact: KeysFound = dashboard.read(visitor.caller()?, &format!("/v1{path}")).await?;
                let record = exact.keys.first().unwrap_or(record);
                let notice = page.notice.or_else(|| did_notice(k, query, Some(&record.state)));
                key::page(dashboard, visitor, record, status, notice).await
            }
            None => {
                page.notice = page.notice.or_else(|| did_notice(k, query, None));
                page.found = Some(found_section(visitor, found));
                Ok(html(status, &page))
            }
        },
        // The key is not valid, so the page says why beside it.
        Err(refusal) if refusal.status == StatusCode::BAD_REQUEST.as_u16() => {
            page.error = Some(fill(k.key_wrong, &[("why", &refusal.detail)]));
            Ok(html(StatusCode::BAD_REQUEST, &page))
        }
        Err(refusal) => Err(refusal),
    }
}

/// Asks the API for a key, and if nothing has it, for a hash.
async fn look_up(
    dashboard: &Dashboard,
    visitor: &Visitor,
    query: &KeyQuery,
) -> Result<KeysFound, PageRefusal> {
    let caller = visitor.caller()?;
    let found: KeysFound = dashboard.read(caller, &query.target()).await?;
    match query.hash_target().filter(|_| found.keys.is_empty()) {
        Some(target) => dashboard.read(caller, &target).await,
        None => Ok(found),
    }
}

/// Returns the only request, if nothing else was found but the message that it enqueued.
fn one_request(found: &KeysFound) -> Option<&KeyRecord> {
    let mut requests = found.keys.iter().filter(|record| record.kind == "request");
    let (Some(request), None) = (requests.next(), requests.next()) else { return None };
    let is_its_own = |record: &KeyRecord| record.kind == "request" || record.message == request.message;
    (found.is_complete && found.keys.iter().all(is_its_own)).then_some(request)
}

fn found_section(visitor: &Visitor, found: KeysFound) -> FoundSection {
    let k = visitor.key_texts();
    let searched = found.searched.filter(|_| !found.is_complete);
    let note = match searched {
        Some(searched) => {
            let since = searched.since.as_deref().map(full).unwrap_or_default();
            Some(fill(k.found_since, &[("n", &grouped(i64::from(searched.messages))), ("when", &since)]))
        }
        None if !found.is_complete => Some(k.found_more.to_owned()),
        None => None,
    };
    FoundSection { rows: found.keys.into_iter().map(|record| line(visitor, record)).collect(), note }
}

async fn unknown(
    dashboard: &Dashboard,
    visitor: &Visitor,
    cursor: Option<&str>,
) -> Result<UnknownSection, PageRefusal> {
    let address = |path: &str, cursor: &str| {
        Serializer::for_suffix(path.to_owned(), path.len()).append_pair("cursor", cursor).finish()
    };
    let target = format!("/v1/keys/unknown?limit={PAGE}&");
    let target = cursor.map_or_else(|| target.trim_end_matches('&').to_owned(), |at| address(&target, at));
    let found: UnknownKeys = dashboard.read(visitor.caller()?, &target).await?;
    let parked = total(&*dashboard.sampler.get(&dashboard.api).await?).parked;
    let parked = (found.records.is_empty() && 0 < parked)
        .then(|| fill(visitor.key_texts().parked_wait, &[("n", &grouped(parked))]));
    Ok(UnknownSection {
        parked,
        rows: found.records.into_iter().map(|record| line(visitor, record)).collect(),
        newest: cursor.is_some(),
        next: found.next.as_deref().map(|next| address("/keys?", next)),
    })
}

fn line(visitor: &Visitor, record: KeyRecord) -> KeyLine {
    let (t, k) = (visitor.t(), visitor.key_texts());
    let operation = record.operation.as_deref().unwrap_or_default();
    let (kind, shown, state, href) = if record.kind == "message" {
        let href = record.message.as_deref().and_then(message_path).unwrap_or_default();
        (k.kind_message, marks::of_state(&record.state), marks::state_name(t, &record.state), href)
    } else {
        let href = key_path(operation, &record.identity, &record.idempotency_key);
        (k.kind_request, key::mark(&record.state), key::state_name(k, &record.state), href)
    };
    KeyLine {
        mark: shown.mark,
        class: shown.class,
        state: state.to_owned(),
        kind,
        href,
        at: visitor.time(&record.created_at),
        subject: record.operation.or(record.queue).unwrap_or_default(),
        identity: record.identity,
        key: record.idempotency_key,
    }
}
