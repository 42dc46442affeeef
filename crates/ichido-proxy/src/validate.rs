//! Checks for requests that no role forwards.
//!
//! Guarantee: a request that passes has one method, one target, one host and at most one authorization, however it is
//! read. It asks for no WebSocket and is not a tunnel. The framing was checked earlier
//! ([`ichido_http::server::framing`]); this module checks what shows only in the parsed request.

use http::header::{AUTHORIZATION, HOST};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Method, Uri, Version, request};

use super::headers::asks_for_websocket;
use super::problem::Problem;

/// Validates a request and returns its target.
pub(crate) fn validated_target(head: &request::Parts) -> Result<PathAndQuery, Problem> {
    if head.method == Method::CONNECT || asks_for_websocket(&head.headers) {
        return Err(Problem::upgrade());
    }
    check_method(&head.method)?;
    check_host(&head.uri, &head.headers, head.version)?;
    if head.headers.get_all(AUTHORIZATION).iter().nth(1).is_some() {
        // Two readers that pick different ones would see two different callers.
        return Err(Problem::malformed("the Authorization header was sent more than once; send it once"));
    }
    match head.uri.path_and_query() {
        Some(target) if target.path().starts_with('/') => Ok(target.clone()),
        Some(target) if target.as_str() == "*" && head.method == Method::OPTIONS => Ok(target.clone()),
        // An absolute target may omit the path, which is then the root.
        None if head.uri.authority().is_some() => Ok(PathAndQuery::from_static("/")),
        Some(_) | None => {
            Err(Problem::malformed("the request's target is not a path; send one that begins with /"))
        }
    }
}

/// Rejects lower-case methods.
///
/// `post` is not POST here and needs no key, but a service that ignores case would treat it as POST.
fn check_method(method: &Method) -> Result<(), Problem> {
    if method.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(Problem::malformed(
            "the request's method has lowercase letters, which some servers read as uppercase; use uppercase",
        ));
    }
    Ok(())
}

/// Requires one host, named once. Two readers that pick different ones would route the request differently.
fn check_host(uri: &Uri, headers: &HeaderMap, version: Version) -> Result<(), Problem> {
    let mut lines = headers.get_all(HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(Problem::malformed("the Host header was sent more than once; send it once"));
    }
    let named = match line {
        None => None,
        Some(value) => Some(
            Authority::try_from(value.as_bytes())
                .map_err(|_| Problem::malformed("the Host header is not a host, or a host and a port"))?,
        ),
    };
    match (uri.authority(), named) {
        (Some(target), Some(named)) if *target != named => Err(Problem::malformed(
            "the request's target and its Host header name different hosts; send the same in both",
        )),
        // HTTP/1.0 has no Host header; HTTP/2 may have only the authority.
        (None, None) if Version::HTTP_11 <= version => {
            Err(Problem::malformed("the request has no Host header; send one"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn target(method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        validated_target(&head).ok().map(|target| target.to_string())
    }

    #[test]
    fn a_request_with_one_target_and_one_host_passes() {
        let host = [("host", "Example.org:80")];
        assert_eq!(target("POST", "/a%2Fb?c=d", &host).as_deref(), Some("/a%2Fb?c=d"));
        assert_eq!(target("GET", "http://example.org:80/a", &host).as_deref(), Some("/a"));
        assert_eq!(target("OPTIONS", "*", &host).as_deref(), Some("*"));
    }

    #[test]
    fn missing_or_duplicate_host_is_rejected() {
        assert_eq!(target("GET", "/", &[]), None);
        assert_eq!(target("GET", "/", &[("host", "a"), ("host", "a")]), None);
        assert_eq!(target("GET", "http://b/", &[("host", "a")]), None);
        assert_eq!(target("GET", "/", &[("host", "a b")]), None);
        assert_eq!(target("GET", "*", &[("host", "a")]), None);
    }

    #[test]
    fn lowercase_method_is_rejected() {
        for method in ["post", "Post", "gET", "m-search"] {
            assert_eq!(target(method, "/", &[("host", "a")]), None, "{method}");
        }
        assert_eq!(target("M-SEARCH", "/", &[("host", "a")]).as_deref(), Some("/"));
    }

    #[test]
    fn tunnels_and_websockets_are_rejected_but_other_upgrades_pass() {
        let host = ("host", "a");
        assert_eq!(target("CONNECT", "a:443", &[host]), None);
        for upgrade in ["websocket", "WebSocket", "h2c, websocket", "websocket/13 ,h2c"] {
            assert_eq!(target("GET", "/", &[host, ("upgrade", upgrade)]), None, "{upgrade}");
        }
        for upgrade in ["h2c", "TLS/1.0, HTTP/1.1", "", "websockets"] {
            assert_eq!(target("GET", "/", &[host, ("upgrade", upgrade)]).as_deref(), Some("/"), "{upgrade}");
        }
        assert_eq!(target("GET", "/", &[host, ("connection", "keep-alive, Upgrade")]).as_deref(), Some("/"));
    }

    #[test]
    fn duplicate_authorization_is_rejected() {
        let (host, token) = (("host", "a"), ("authorization", "Bearer a"));
        assert_eq!(target("GET", "/", &[host, token]).as_deref(), Some("/"));
        assert_eq!(target("GET", "/", &[host, token, token]), None);
    }
}
