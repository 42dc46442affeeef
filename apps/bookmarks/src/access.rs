//! Authenticates requests with a token or a session cookie. A request with a cookie must come from our own pages.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ichido::time::Timestamp;
use ichido_core::sync::lock;
use tokio::time::Instant;

use crate::app::App;
use crate::credential::Credential;
use crate::people::{self, Person};
use crate::problem::{Code, Problem};
use crate::settings::{Settings, limits};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The id of the person a page acts for. The browser's cookie can become another person's at any time, and a page
/// opened by the first must neither save nor read as the second.
const PERSON: HeaderName = HeaderName::from_static("bookmarks-person");
/// The path of imports, whose bodies are larger than others.
pub(crate) const IMPORT: &str = "/v1/import";
const IMPORT_RETRY_AFTER: Duration = Duration::from_secs(5);
const A_MINUTE: Duration = Duration::from_mins(1);

/// The authenticated caller and the time, in the extensions of every accepted request.
#[derive(Clone, Debug)]
pub(crate) struct AuthenticatedCaller {
    pub(crate) person: Person,
    /// The store's time. It is read here, because the layer's later transaction is not the place to ask for it.
    pub(crate) now: Timestamp,
}

/// Accepts requests of known people only.
///
/// The whole request is read before authentication. Otherwise a slow request could still use a token that has been
/// revoked, or act for a deleted person.
pub(crate) async fn require_sign_in(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let is_import = request.uri().path() == IMPORT;
    let mut permit = None;
    if is_import {
        // A large body is read for people who are signed in, and only for one of them at a time.
        caller(&app, request.method(), request.headers()).await?;
        permit = Some(app.imports.try_acquire().map_err(|_| import_busy())?);
    }
    let max_bytes = if is_import { limits::MAX_IMPORT_BYTES } else { limits::MAX_BODY_BYTES };
    let (mut request, has_body) = whole(request, max_bytes).await?;
    let caller = caller(&app, request.method(), request.headers()).await?;
    needs_person(request.headers(), &caller.person)?;
    if !(is_import && media(request.headers()).eq_ignore_ascii_case("text/html")) {
        needs_json(request.headers(), has_body)?;
    }
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    drop(permit);
    Ok(response)
}

fn import_busy() -> Problem {
    let detail = "another import is running; send the file again when it has ended";
    Problem::new(Code::Overloaded, detail).after(IMPORT_RETRY_AFTER)
}

async fn whole(request: Request, max_bytes: usize) -> Result<(Request, bool), Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, max_bytes).await.map_err(|_| Problem::too_large(max_bytes))?;
    let has_body = !body.is_empty();
    Ok((Request::from_parts(parts, Body::from(body)), has_body))
}

async fn caller(app: &App, method: &Method, headers: &HeaderMap) -> Result<AuthenticatedCaller, Problem> {
    let now = app.store.now().await?;
    let mut pooled = app.database.connect().await?;
    let person = if let Some(token) = bearer(headers) {
        people::by_token(&mut pooled.connection(), &token).await?
    } else if let Some(session) = session(headers, &app.settings) {
        // A foreign page can make the browser send the cookie, but cannot claim to be one of ours.
        if !method.is_safe() && comes_from(headers, &app.settings) != Origin::Ours {
            return Err(foreign());
        }
        people::by_session(&mut pooled.connection(), &session, now).await?
    } else {
        None
    };
    Ok(AuthenticatedCaller { person: person.ok_or_else(Problem::signed_out)?, now })
}

/// Allows reading totals of the whole service: to everybody on this machine who names it, and from elsewhere to people
/// who are signed in.
pub(crate) async fn allow_totals(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    if app.settings.listen.ip().is_loopback() && app.settings.public_origin.is_none() {
        return needs_own_host(headers);
    }
    caller(app, &Method::GET, headers).await.map(drop)
}

fn bearer(headers: &HeaderMap) -> Option<Credential> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Credential::parse(token.trim()))?
}

/// Returns the session in a browser's cookie.
pub(crate) fn session(headers: &HeaderMap, settings: &Settings) -> Option<Credential> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    // Another service on this host may have set an invalid cookie of the same name.
    pairs.find_map(|(name, value)| (name == cookie_name(settings)).then(|| Credential::parse(value))?)
}

/// With the prefix, a browser accepts the cookie only from this host and over TLS.
fn cookie_name(settings: &Settings) -> &'static str {
    if settings.is_secure() { "__Host-bookmarks" } else { "bookmarks" }
}

/// Returns a cookie that no script can read and no foreign page can use.
pub(crate) fn cookie(session: Option<&Credential>, settings: &Settings) -> Option<HeaderValue> {
    let (name, secure) = (cookie_name(settings), if settings.is_secure() { "; Secure" } else { "" });
    let (value, lives) =
        session.map_or((String::new(), 0), |session| (session.to_text(), limits::SESSION_FOR.as_secs()));
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={lives}{secure}");
    let mut cookie = HeaderValue::try_from(cookie).ok()?;
    cookie.set_sensitive(true);
    Some(cookie)
}

/// Where a request comes from, according to the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Ours,
    Foreign,
    /// Not a browser, or one that does not say.
    Unsaid,
}

pub(crate) fn comes_from(headers: &HeaderMap, settings: &Settings) -> Origin {
    let ours = |is_ours: bool| if is_ours { Origin::Ours } else { Origin::Foreign };
    if let Some(site) = headers.get(FETCH_SITE) {
        return ours(site == "same-origin");
    }
    let Some(origin) = headers.get(ORIGIN) else { return Origin::Unsaid };
    let expected = settings.public_origin.clone().or_else(|| {
        let host = headers.get(HOST)?.to_str().ok()?;
        Some(format!("http://{host}"))
    });
    ours(expected.is_some_and(|expected| *origin == expected))
}

pub(crate) fn foreign() -> Problem {
    let detail = "nothing was done: the request does not come from our own pages; use them, or send a token";
    Problem::new(Code::OriginNotAllowed, detail)
}

/// Requires a Host header that names this machine.
///
/// Any domain can be made to resolve to this machine (DNS rebinding), so only a request that names the machine itself
/// comes from a local program.
pub(crate) fn needs_own_host(headers: &HeaderMap) -> Result<(), Problem> {
    let is_own = |host: &HeaderValue| {
        let host = Authority::try_from(host.as_bytes()).ok().filter(|host| !host.as_str().contains('@'));
        host.is_some_and(|host| is_this_machine(host.host()))
    };
    let mut hosts = headers.get_all(HOST).iter();
    if hosts.next().is_some_and(is_own) && hosts.next().is_none() {
        return Ok(());
    }
    let detail = "the Host header does not name this machine; use localhost or 127.0.0.1 in the URL";
    Err(Problem::new(Code::HostNotAllowed, detail))
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    host.eq_ignore_ascii_case("localhost") || is_loopback(host)
}

/// Requires that the person a request names is the caller.
fn needs_person(headers: &HeaderMap, person: &Person) -> Result<(), Problem> {
    let is_theirs = |named: &HeaderValue| *named == person.id.to_string();
    if headers.get_all(PERSON).iter().all(is_theirs) {
        return Ok(());
    }
    let detail =
        "nothing was done: the request is for another person than the one signed in; reload the page";
    Err(Problem::new(Code::PersonOther, detail))
}

/// Requires that a body is declared as JSON, which no form of a foreign page can do.
pub(crate) fn needs_json(headers: &HeaderMap, has_body: bool) -> Result<(), Problem> {
    if !has_body {
        return Ok(());
    }
    if media(headers).eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = "the body must be JSON, with `Content-Type: application/json`";
    Err(Problem::new(Code::MediaTypeUnsupported, detail))
}

fn media(headers: &HeaderMap) -> &str {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim()
}

/// Counts wrong tokens per minute, over all callers.
///
/// Each token is checked before it is counted, so nobody can lock out the owner of the right one. The check is cheap: a
/// malformed token costs nothing, and any other one lookup by primary key and one hash, which is less than its
/// connection, of which there are at most [`limits::MAX_CLIENTS`]. The secret is too long to be guessed at any rate.
/// Callers over the limit have to wait.
#[derive(Debug, Default)]
pub(crate) struct Guesses(Mutex<Option<(Instant, u32)>>);

impl Guesses {
    /// Counts a wrong token and returns the response.
    pub(crate) fn wrong(&self) -> Problem {
        let now = Instant::now();
        let mut window = lock(&self.0);
        let (since, count) = window.filter(|(since, _)| now < *since + A_MINUTE).unwrap_or((now, 0));
        *window = Some((since, count.saturating_add(1)));
        if count < limits::MAX_WRONG_TOKENS_A_MINUTE {
            return Problem::new(Code::TokenWrong, "the token is not valid; check it or ask for a new one");
        }
        let wait = (since + A_MINUTE).saturating_duration_since(now).as_secs() + 1;
        let detail = "the token is not valid, and too many wrong tokens were sent; wait, then try again";
        Problem::new(Code::SignInBusy, detail).after(Duration::from_secs(wait))
    }
}
