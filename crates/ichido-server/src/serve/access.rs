//! Authentication: with tokens, or for all local users while no token was ever created.
//!
//! Guarantee: a revoked token is refused once [`TOKENS_STALE`] has passed, whatever happens to the store, and its event streams
//! end. Secrets are compared in constant time, and never logged. Without tokens, only requests that name this machine as their
//! host are served, and none from a page of another origin: a browser on this machine must not give others access (DNS rebinding,
//! CSRF).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Method, Uri};
use ichido_core::digest::Digest;
use ichido_core::sync::lock;
use ichido_core::time::Timestamp;
use ichido_http::clock;
use ichido_store::Store;
use ichido_store::error::StoreError;
use ichido_store::token::StoredToken;
use subtle::ConstantTimeEq as _;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::caller::ApiCaller;
use super::problem::{Code, Problem};
use super::token;
use crate::limits::{TOKENS_FRESH, TOKENS_READ_TIMEOUT, TOKENS_RETRY_AFTER, TOKENS_STALE};

/// The header in which a browser says where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Decides who may call the API.
pub struct Access {
    store: Store,
    is_loopback: bool,
    cached: Mutex<Option<CachedTokens>>,
    /// Held while the list is read again. Contains the time of the last failure, if the last read failed.
    reading: tokio::sync::Mutex<Option<Instant>>,
}

/// Whether there are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenStatus {
    NeverCreated,
    /// Every token was revoked or has expired.
    AllInactive,
    /// At least one token is valid.
    Live,
}

/// The tokens, and when they were read.
#[derive(Clone)]
struct CachedTokens {
    tokens: Arc<HashMap<Uuid, StoredToken>>,
    at: Instant,
}

impl Access {
    /// Creates the access rules of a server at this address.
    pub fn new(store: Store, listens_on: SocketAddr) -> Self {
        Self { is_loopback: listens_on.ip().is_loopback(), ..Self::tokens_only(store) }
    }

    /// Accepts tokens only.
    pub(super) fn tokens_only(store: Store) -> Self {
        let (cached, reading) = (Mutex::new(None), tokio::sync::Mutex::new(None));
        Self { store, is_loopback: false, cached, reading }
    }

    /// Returns whether only this machine can reach the server.
    pub(super) const fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Returns whether there are tokens.
    pub(super) async fn token_status(&self) -> Result<TokenStatus, StoreError> {
        let CachedTokens { tokens, .. } = self.fetch().await?;
        let now = clock::now();
        Ok(match tokens.is_empty() {
            true => TokenStatus::NeverCreated,
            false if tokens.values().any(|token| token.is_live(now)) => TokenStatus::Live,
            false => TokenStatus::AllInactive,
        })
    }

    /// Authenticates the caller of a request.
    pub(super) async fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<ApiCaller, Problem> {
        let cached = self.current_tokens().await?;
        if cached.tokens.is_empty() && self.is_loopback {
            check_host(uri, headers)?;
            check_origin(method, uri, headers)?;
            return ApiCaller::local_named(headers);
        }
        authenticate(&cached.tokens, headers, clock::now())
    }

    /// Authenticates a visitor of the dashboard: a local user while no token was ever created, otherwise the token of the session.
    pub(super) async fn admit_visitor(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        session: Option<Uuid>,
    ) -> Result<ApiCaller, Problem> {
        let cached = self.current_tokens().await?;
        if cached.tokens.is_empty() && self.is_loopback {
            check_host(uri, headers)?;
            return Ok(ApiCaller::local());
        }
        let token = session.and_then(|id| cached.tokens.get(&id)).filter(|token| token.is_live(clock::now()));
        token.map(caller_of).ok_or_else(|| Problem::new(Code::TokenMissing, "sign in with a token"))
    }

    /// Authenticates the holder of a token.
    pub(super) async fn admit_token(&self, text: &str) -> Result<ApiCaller, Problem> {
        let cached = self.current_tokens().await?;
        verify(&cached.tokens, text, clock::now()).ok_or_else(invalid)
    }

    /// Authorizes a request for the metrics of a worker or proxy.
    ///
    /// On loopback it must name this machine; beyond it, the caller needs a role that may see everything.
    pub(crate) async fn admit_to_metrics(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Problem> {
        if self.is_loopback {
            return check_host(uri, headers);
        }
        self.admit(method, uri, headers).await?.require_viewer()
    }

    /// Returns a check of whether earlier callers still have access.
    ///
    /// If the tokens cannot be read, nobody has.
    pub(super) async fn recheck(&self) -> impl Fn(&ApiCaller) -> bool + use<> {
        let cached = self.current_tokens().await.ok();
        let (is_loopback, now) = (self.is_loopback, clock::now());
        move |caller| {
            cached.as_ref().is_some_and(|CachedTokens { tokens, .. }| match caller.token {
                Some(id) => tokens.get(&id).is_some_and(|token| token.is_live(now)),
                None => is_loopback && tokens.is_empty(),
            })
        }
    }

    async fn current_tokens(&self) -> Result<CachedTokens, Problem> {
        let fresh = |cached: &CachedTokens| cached.at.elapsed() < TOKENS_FRESH;
        let last = self.cached();
        if let Some(cached) = last.clone().filter(fresh) {
            return Ok(cached);
        }
        // While one request reads the list, others use the cached one; without one they wait.
        let still_good = |cached: &CachedTokens| cached.at.elapsed() < TOKENS_STALE;
        let good = last.filter(still_good);
        let mut failed_at = match &good {
            Some(cached) => match self.reading.try_lock() {
                Ok(reading) => reading,
                Err(_) => return Ok(cached.clone()),
            },
            None => self.reading.lock().await,
        };
        if let Some(cached) = self.cached().filter(fresh) {
            return Ok(cached);
        }
        let is_tried = failed_at.is_none_or(|at| TOKENS_RETRY_AFTER <= at.elapsed());
        if is_tried {
            match timeout(TOKENS_READ_TIMEOUT, self.fetch()).await {
                Ok(Ok(cached)) => return Ok(cached),
                Ok(Err(error)) => tracing::warn!(%error, "failed to reload tokens"),
                Err(_) => {
                    tracing::warn!(within = ?TOKENS_READ_TIMEOUT, "timed out reloading tokens");
                }
            }
            *failed_at = Some(Instant::now());
        }
        good.filter(still_good).ok_or_else(Problem::unavailable)
    }

    async fn fetch(&self) -> Result<CachedTokens, StoreError> {
        // Taken before the read, so the list is never older than it claims.
        let at = Instant::now();
        let listed = self.store.tokens().list().await?;
        let tokens = listed.into_iter().map(|token| (token.id, token)).collect();
        let cached = CachedTokens { tokens: Arc::new(tokens), at };
        *lock(&self.cached) = Some(cached.clone());
        Ok(cached)
    }

    fn cached(&self) -> Option<CachedTokens> {
        lock(&self.cached).clone()
    }
}

fn authenticate(
    tokens: &HashMap<Uuid, StoredToken>,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<ApiCaller, Problem> {
    let missing = "the request has no token; send Authorization: Bearer ichido_…; create a token with `ichido token create NAME --role ROLE`";
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let field = lines.next().ok_or_else(|| Problem::new(Code::TokenMissing, missing))?;
    if lines.next().is_some() {
        // A proxy in front may have checked the other one.
        let detail = "the Authorization header is repeated; send it once";
        return Err(Problem::new(Code::TokenInvalid, detail));
    }
    field.to_str().ok().and_then(bearer).and_then(|text| verify(tokens, text, now)).ok_or_else(invalid)
}

/// Returns the holder of a valid token.
fn verify(tokens: &HashMap<Uuid, StoredToken>, text: &str, now: Timestamp) -> Option<ApiCaller> {
    let (id, secret) = token::parse(text)?;
    let hash = Digest::of_bytes(secret.as_bytes());
    let found = tokens.get(&id)?;
    let matches = bool::from(found.hash.ct_eq(hash.as_bytes()));
    (matches && found.is_live(now)).then(|| caller_of(found))
}

fn caller_of(token: &StoredToken) -> ApiCaller {
    ApiCaller { name: token.name.clone(), role: token.role.clone(), token: Some(token.id) }
}

/// The response does not say what is wrong with a token: a caller with a valid one can list the tokens.
fn invalid() -> Problem {
    let detail = "the token is malformed, unknown, revoked or expired; create a new one with `ichido token create NAME --role ROLE`";
    Problem::new(Code::TokenInvalid, detail)
}

fn bearer(field: &str) -> Option<&str> {
    let (scheme, token) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_matches(' '))
}

/// Checks that the host is this machine.
///
/// Another name could be pointed here by somebody else's DNS; `localhost` cannot.
pub(super) fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let lines: Vec<_> = headers.get_all(HOST).iter().collect();
    let named = lines.iter().map(|line| Authority::try_from(line.as_bytes()).ok());
    // HTTP/2 may have its host only in the target.
    let hosts: Option<Vec<Authority>> = named.chain(uri.authority().cloned().map(Some)).collect();
    let is_own = |hosts: &[Authority]| {
        !hosts.is_empty()
            && hosts.iter().all(|host| is_this_machine(host.host()) && !host.as_str().contains('@'))
    };
    if lines.len() <= 1 && hosts.is_some_and(|hosts| is_own(&hosts)) {
        return Ok(());
    }
    Err(Problem::new(
        Code::HostNotAllowed,
        "the Host header does not name this machine, which is required while no token exists; use localhost or 127.0.0.1, or \
         create a token with `ichido token create NAME --role ROLE`",
    ))
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Checks the origin of a change.
///
/// Our own pages have our host as their origin. A page of another origin may send reads, whose responses its browser hides, but
/// must not change anything.
fn check_origin(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    // HTTP/2 has its host in the target.
    let target = || uri.authority().map(Authority::as_str);
    let host = headers.get(HOST).map_or_else(target, |host| host.to_str().ok());
    let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| Some(origin) == host);
    let origins_own = headers.get_all(ORIGIN).iter().all(|origin| origin.to_str().is_ok_and(own));
    let sites_own =
        headers.get_all(FETCH_SITE).iter().all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"));
    if origins_own && sites_own {
        return Ok(());
    }
    Err(Problem::new(
        Code::OriginNotAllowed,
        "a page of another origin cannot change anything while no token exists; create a token with `ichido token create NAME --role ROLE`, and \
         send the request with it from the page's own server",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        fields
            .iter()
            .map(|(name, value)| {
                (HeaderName::try_from(*name).expect("a name"), value.parse().expect("a value"))
            })
            .collect()
    }

    fn host(fields: &[(&str, &str)], uri: &str) -> bool {
        check_host(&uri.parse().expect("a target"), &headers(fields)).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_are_its_host() {
        for own in ["localhost", "LocalHost:4180", "127.0.0.1", "127.8.9.1:80", "[::1]:4180"] {
            assert!(host(&[("host", own)], "/"), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example@127.0.0.1",
            "localhost.evil.example:4180",
            "10.0.0.1",
            "127.0.0.1.evil.example",
        ] {
            assert!(!host(&[("host", foreign)], "/"), "{foreign}");
        }
        assert!(!host(&[], "/"), "nobody is named");
        assert!(!host(&[("host", "localhost")], "http://evil.example/"), "two are named");
        assert!(host(&[], "http://127.0.0.1:4180/"), "HTTP/2 names it in the target");
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        let here = Uri::from_static("/v1/queues/demo/pause");
        let change = |fields: &[(&str, &str)]| check_origin(&Method::POST, &here, &headers(fields)).is_ok();
        let own = ("host", "localhost:4180");
        assert!(change(&[own]), "no page asks");
        assert!(change(&[own, ("origin", "http://localhost:4180"), ("sec-fetch-site", "same-origin")]));
        for foreign in ["http://evil.example", "http://localhost:3000", "https://localhost:4180", "null"] {
            assert!(!change(&[own, ("origin", foreign)]), "{foreign}");
            assert!(check_origin(&Method::GET, &here, &headers(&[own, ("origin", foreign)])).is_ok());
        }
        assert!(!change(&[own, ("sec-fetch-site", "cross-site")]), "a form has no origin in old browsers");
    }

    #[test]
    fn a_page_of_our_own_is_known_on_http2_too() {
        let target = Uri::from_static("http://localhost:4180/v1/queues/demo/pause");
        let change =
            |origin: &str| check_origin(&Method::POST, &target, &headers(&[("origin", origin)])).is_ok();
        assert!(change("http://localhost:4180"));
        assert!(!change("http://localhost:3000") && !change("http://evil.example"));
    }
}
