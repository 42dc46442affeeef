//! Sign-in with an API token, sign-out, and the choice of a language.
//!
//! Guarantee: a token is sent once, in the body of a form, and becomes a random cookie. Over plain HTTP from another machine nobody signs
//! in, because others could read the token. Over HTTPS the cookie has the prefix `__Host-`, so no other host can set it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use form_urlencoded::Serializer;
use http::header::{HeaderMap, HeaderName, SET_COOKIE};
use http::{Method, StatusCode, Uri};

use super::super::access::check_host;
use super::super::caller::ApiCaller;
use super::super::problem::{Code, Problem};
use super::super::request::{query_pairs, read_body};
use super::same_origin::{FETCH_SITE, host, is_from_https};
use super::shell::{PageRefusal, Shell, Visitor, html};
use super::texts::{Texts, fill};
use super::{Dashboard, cookie, language, see_other};

/// The cookie of a session, over HTTPS and over HTTP on this machine.
const COOKIES: [(&str, bool); 2] = [("__Host-ichido_session", true), ("ichido_session", false)];
/// A year.
const LANGUAGE_SECONDS: u64 = 365 * 24 * 3600;
/// Maximum bytes of a form.
const MAX_FORM_BYTES: usize = 16 << 10;
/// The header in which a proxy in front of the server says how it was called.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    shell: Shell,
    error: Option<&'static str>,
    /// Whether the connection is not encrypted, so no form is shown.
    is_plain: bool,
    next: String,
}

impl Dashboard {
    /// Returns who sends a request: a local user while no token exists, otherwise the token of the session.
    pub(super) async fn caller(&self, uri: &Uri, headers: &HeaderMap) -> Result<ApiCaller, Problem> {
        let token = match session_id(uri, headers) {
            Some(id) => self.sessions.token(&self.api.store, id).await?,
            None => None,
        };
        self.access.admit_visitor(uri, headers, token).await
    }
}

/// Shows the form.
pub(super) async fn show(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let query = query_pairs(request.uri())?;
    let next = query
        .into_iter()
        .find(|(name, _)| name == "next")
        .map_or_else(|| "/".to_owned(), |(_, next)| safe(&next));
    if visitor.caller.is_some() {
        return Ok(see_other(&dashboard.base, &next));
    }
    let is_plain = !may_be_encrypted(request.uri(), request.headers());
    Ok(page(&dashboard, &visitor, StatusCode::OK, next, None, is_plain))
}

/// Checks a token and starts a session.
pub(super) async fn sign_in(
    State(dashboard): State<Arc<Dashboard>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let (head, body) = request.into_parts();
    let is_https = is_from_https(&head.headers);
    let form = read_form(&head.headers, body).await?;
    let next = safe(form.get("next").unwrap_or("/"));
    let t = visitor.t();
    if !is_https && check_host(&head.uri, &head.headers).is_err() {
        return Ok(page(&dashboard, &visitor, StatusCode::FORBIDDEN, next, None, true));
    }
    let refuse = |status, why| Ok(page(&dashboard, &visitor, status, next.clone(), Some(why), false));
    let caller = match dashboard.access.admit_token(form.get("token").unwrap_or_default().trim()).await {
        Ok(caller) => caller,
        Err(problem) if problem.code == Code::TokenInvalid => {
            return refuse(StatusCode::UNAUTHORIZED, t.token_wrong);
        }
        Err(problem) => return Err(problem.into()),
    };
    if caller.require_viewer().is_err() {
        return refuse(StatusCode::FORBIDDEN, t.token_producer);
    }
    // Only a local user has no token, and nobody is one where a token exists.
    let Some(token) = caller.token else { return refuse(StatusCode::UNAUTHORIZED, t.token_wrong) };
    let id = dashboard.sessions.start(&dashboard.api.store, token).await?;
    tracing::info!(token = caller.name, "dashboard session started");
    let mut response = see_other(&dashboard.base, &next);
    for (name, is_secure) in cookies(&head.uri, &head.headers).into_iter().filter(|(_, it)| *it == is_https) {
        let set = cookie::set(&name, &id, is_secure, None);
        response.headers_mut().extend(set.map(|set| (SET_COOKIE, set)));
    }
    Ok(response)
}

/// Ends the session.
pub(super) async fn sign_out(
    State(dashboard): State<Arc<Dashboard>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let mut response = see_other(&dashboard.base, "/sign-in");
    for (name, is_secure) in cookies(&uri, &headers) {
        if let Some(id) = cookie::get(&headers, &name) {
            dashboard.sessions.end(&dashboard.api.store, id).await?;
            response
                .headers_mut()
                .extend(cookie::set(&name, "", is_secure, Some(0)).map(|set| (SET_COOKIE, set)));
        }
    }
    Ok(response)
}

/// Stores the choice of a language, and returns to the page.
pub(super) async fn choose_language(
    State(dashboard): State<Arc<Dashboard>>,
    request: Request,
) -> Result<Response, PageRefusal> {
    let (head, body) = request.into_parts();
    let form = read_form(&head.headers, body).await?;
    let mut response = see_other(&dashboard.base, &safe(form.get("back").unwrap_or("/")));
    if let Some(code) = form.get("to").filter(|code| language::Language::parse(code).is_some()) {
        let set = cookie::set(language::COOKIE, code, is_from_https(&head.headers), Some(LANGUAGE_SECONDS));
        response.headers_mut().extend(set.map(|set| (SET_COOKIE, set)));
    }
    Ok(response)
}

/// Sends a visitor without a session to the form. A stream cannot show one.
pub(super) fn redirect(dashboard: &Dashboard, request: &Request, visitor: &Visitor) -> Response {
    if visitor.here.starts_with("/live") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let next = if request.method() == Method::GET { visitor.here.as_str() } else { "/" };
    let query = Serializer::new(String::new()).append_pair("next", next).finish();
    see_other(&dashboard.base, &format!("/sign-in?{query}"))
}

fn page(
    dashboard: &Dashboard,
    visitor: &Visitor,
    status: StatusCode,
    next: String,
    error: Option<&'static str>,
    is_plain: bool,
) -> Response {
    let mut shell = dashboard.shell(visitor, visitor.t().sign_in);
    // The language switch returns here with a GET.
    "/sign-in".clone_into(&mut shell.here);
    html(status, &SignInPage { shell, error, is_plain, next })
}

/// Whether the browser, or a proxy, says that the page is asked for over HTTPS. Nothing that protects may depend on it.
///
/// A browser sends `Sec-Fetch-Site` only over HTTPS and to this machine.
pub(super) fn seems_encrypted(uri: &Uri, headers: &HeaderMap) -> bool {
    let is_forwarded =
        headers.get(FORWARDED_PROTO).is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"));
    is_forwarded || headers.contains_key(FETCH_SITE) && check_host(uri, headers).is_err()
}

/// Whether the connection to the browser may be encrypted, or stays on this machine.
///
/// A false word of a proxy shows a form; the sign-in itself asks the browser.
fn may_be_encrypted(uri: &Uri, headers: &HeaderMap) -> bool {
    check_host(uri, headers).is_ok() || seems_encrypted(uri, headers)
}

fn session_id<'h>(uri: &Uri, headers: &'h HeaderMap) -> Option<&'h str> {
    cookies(uri, headers).iter().find_map(|(name, _)| cookie::get(headers, name))
}

/// Returns the names of the session's cookie, and whether each is for HTTPS.
///
/// A browser sends a cookie to all ports of its host, so each port has a name of its own: two servers on one machine do not sign each
/// other's visitors out.
fn cookies(uri: &Uri, headers: &HeaderMap) -> [(String, bool); 2] {
    let port = host(uri, headers).and_then(|host| host.rsplit_once(':')).map(|(_, port)| port);
    let port = port.filter(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()));
    let of_port = |name: &str| port.map_or_else(|| name.to_owned(), |port| format!("{name}_{port}"));
    COOKIES.map(|(name, is_secure)| (of_port(name), is_secure))
}

/// Returns a path of this dashboard; anything else becomes the first page.
fn safe(path: &str) -> String {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { path.to_owned() } else { "/".to_owned() }
}

/// The fields of a form.
pub(super) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Returns the value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Refuses a field that is not known or is repeated.
    pub(super) fn check(&self, t: &Texts, known: &[&str]) -> Result<(), PageRefusal> {
        check_names(t, &self.0, known)
    }
}

/// Refuses a name that is not known or is repeated: if it were ignored, more would be done than was asked for.
pub(super) fn check_names(t: &Texts, pairs: &[(String, String)], known: &[&str]) -> Result<(), PageRefusal> {
    for (index, (name, _)) in pairs.iter().enumerate() {
        let text = if !known.contains(&name.as_str()) {
            fill(t.name_unknown, &[("name", name), ("names", &known.join(", "))])
        } else if pairs.iter().take(index).any(|(before, _)| before == name) {
            fill(t.name_repeated, &[("name", name)])
        } else {
            continue;
        };
        return Err(Problem::new(Code::ParameterInvalid, text).into());
    }
    Ok(())
}

/// Reads the fields of a form.
pub(super) async fn read_form(
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<FormFields, PageRefusal> {
    read_form_up_to(MAX_FORM_BYTES, headers, body).await
}

/// Reads the fields of a longer form.
pub(super) async fn read_form_up_to(
    max_bytes: usize,
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<FormFields, PageRefusal> {
    let body = read_body(headers, body, max_bytes, None).await?;
    Ok(FormFields(form_urlencoded::parse(&body).into_owned().collect()))
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    #[test]
    fn each_port_has_its_own_session() {
        for (host, expected) in [
            ("localhost:4180", ["__Host-ichido_session_4180", "ichido_session_4180"]),
            ("localhost:4181", ["__Host-ichido_session_4181", "ichido_session_4181"]),
            ("ichido.example", ["__Host-ichido_session", "ichido_session"]),
            ("[::1]", ["__Host-ichido_session", "ichido_session"]),
            ("[::1]:4180", ["__Host-ichido_session_4180", "ichido_session_4180"]),
            ("localhost:a;b", ["__Host-ichido_session", "ichido_session"]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a value"));
            let names = cookies(&Uri::from_static("/"), &headers).map(|(name, _)| name);
            assert_eq!(names, expected, "{host}");
        }
    }

    #[test]
    fn only_own_paths_are_redirected_to() {
        for own in
            ["/", "/messages?q=queue:orders+state:dead", "/messages/01995b1c-0000-7000-8000-000000000001"]
        {
            assert_eq!(safe(own), own);
        }
        for foreign in [
            "",
            "messages",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb",
            "/é",
            "/a b",
        ] {
            assert_eq!(safe(foreign), "/", "{foreign:?}");
        }
    }
}
