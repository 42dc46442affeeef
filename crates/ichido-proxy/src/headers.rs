//! Which header fields pass through the proxy.
//!
//! Guarantee: hop-by-hop fields end here, including those that `Connection` names, and nobody can use them to strip a
//! field that the next hop relies on. A name with anything but letters, digits and hyphens does not pass: a service
//! that reads `X_User_Id` as `X-User-Id` would get a field that a list drops. The key, the hops and the fields needed
//! to read the body pass every list.
// Spec: C1, F1.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST, HeaderName,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RETRY_AFTER, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};
use ichido_boundary::{Boundary, Crossing, HeaderLists, Party, Traffic, is_portable};

/// The key's header field, under its two names.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(crate) const X_KEY: HeaderName = HeaderName::from_static("x-idempotency-key");
/// Reports of an idempotency layer: a request in flight or a replay, in every profile.
pub(crate) const STATUS: HeaderName = HeaderName::from_static("idempotency-status");
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const REPLAYED_BY_STRIPE: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The hops of a request.
pub(crate) const HOPS: HeaderName = HeaderName::from_static("ichido-hops");
/// The id of a request.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The position of a request in a trace.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// Sent with `Upgrade: h2c` by clients that prefer HTTP/2 (RFC 7540, 3.2).
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Hop-by-hop fields (RFC 9110, 7.6.1), and those that only the next hop should read.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HTTP2_SETTINGS,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
];

/// Fields that every request list lets through.
///
/// The first four keep the chain intact, the last one the body.
const ALWAYS_IN_REQUESTS: [HeaderName; 5] = [KEY, X_KEY, HOPS, REQUEST_ID, CONTENT_LENGTH];
/// Fields that every response list lets through: the key's and the body's length.
const ALWAYS_IN_RESPONSES: [HeaderName; 7] =
    [KEY, X_KEY, STATUS, REPLAYED, REPLAYED_BY_STRIPE, RETRY_AFTER, CONTENT_LENGTH];

/// Removes what a service reports about its own keys: the caller would read it as a report about ours.
pub(crate) fn strip_reports(headers: &mut HeaderMap) {
    for name in [STATUS, REPLAYED, REPLAYED_BY_STRIPE] {
        headers.remove(name);
    }
}

/// Which fields pass.
#[derive(Clone, Debug)]
pub(crate) struct HeaderFilter {
    /// Our party in the boundary files.
    pub(crate) party: Party,
    /// The boundary files, each with its lists by direction.
    pub(crate) files: Vec<Boundary>,
    /// The flags' lists for requests.
    pub(crate) requests: HeaderLists,
    /// The flags' lists for responses.
    pub(crate) answers: HeaderLists,
}

impl HeaderFilter {
    /// Removes the fields of a request that must not enter.
    pub(crate) fn filter_inbound(&self, headers: &mut HeaderMap) {
        retain(headers, |name| self.files_pass(name, Crossing::Arriving));
    }

    /// Removes the fields of a request that must not leave.
    ///
    /// The flags apply here, because incoming fields may still identify the caller.
    pub(crate) fn filter_outbound(&self, headers: &mut HeaderMap) {
        retain(headers, |name| {
            let by_flags = ALWAYS_IN_REQUESTS.contains(name) || self.requests.passes(name.as_str());
            by_flags && self.files_pass(name, Crossing::Leaving)
        });
    }

    fn files_pass(&self, name: &HeaderName, crossing: Crossing) -> bool {
        let passes = |file: &Boundary| file.passes(self.party, crossing, Traffic::Requests, name.as_str());
        ALWAYS_IN_REQUESTS.contains(name) || self.files.iter().all(passes)
    }

    /// Removes the fields of a response that must not pass.
    pub(crate) fn filter_response(&self, headers: &mut HeaderMap) {
        retain(headers, |name| {
            let passes = |file: &Boundary| {
                file.passes(self.party, Crossing::Leaving, Traffic::Responses, name.as_str())
            };
            ALWAYS_IN_RESPONSES.contains(name)
                || (self.answers.passes(name.as_str()) && self.files.iter().all(passes))
        });
    }
}

fn retain(headers: &mut HeaderMap, passes: impl Fn(&HeaderName) -> bool) {
    let refused: Vec<HeaderName> = headers.keys().filter(|name| !passes(name)).cloned().collect();
    for name in refused {
        headers.remove(name);
    }
}

/// `Connection` names a field that every hop relies on.
///
/// It would be stripped here and missed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamesEndToEnd;

/// Fields that `Connection` must not name, because every hop needs them.
const NEVER_NAMED: [HeaderName; 9] =
    [KEY, X_KEY, HOPS, REQUEST_ID, HOST, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, AUTHORIZATION];

/// Removes hop-by-hop fields from a request, and names that services read in different ways.
///
/// `relied_on` are more fields that `Connection` must not name: a client that names them would hide them from the
/// next hop.
pub(crate) fn strip_request(headers: &mut HeaderMap, relied_on: &[HeaderName]) -> Result<(), NamesEndToEnd> {
    let named = named_by_connection(headers);
    if named.iter().any(|name| NEVER_NAMED.contains(name) || relied_on.contains(name)) {
        return Err(NamesEndToEnd);
    }
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
    // We handle it ourselves when we start to read the body.
    headers.remove(EXPECT);
    retain(headers, |name| is_portable(name.as_str()));
    Ok(())
}

/// Removes hop-by-hop fields from a response.
///
/// The upstream is trusted: fields that it names by mistake stay.
pub(crate) fn strip_response(headers: &mut HeaderMap) {
    // Only the encoding counts if both are present (RFC 9112, 6.3), and then the length is wrong.
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    let named = named_by_connection(headers).into_iter().filter(|name| !NEVER_NAMED.contains(name));
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
}

/// Returns the fields that `Connection` names, ignoring invalid names.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(CONNECTION).into_iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// Whether a request asks for a WebSocket.
///
/// Any other upgrade is an offer that a server may ignore (RFC 9110, 7.8), such as the `h2c` of curl and of Java's
/// client. A client that needs a WebSocket cannot use an HTTP response.
pub(crate) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let protocols =
        headers.get_all(UPGRADE).into_iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let names = protocols.filter_map(|protocol| protocol.split(|byte| *byte == b'/').next());
    names.map(<[u8]>::trim_ascii).any(|name| name.eq_ignore_ascii_case(b"websocket"))
}

/// Sets a field to one value and removes all others.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    match HeaderValue::from_str(value) {
        Ok(value) => drop(headers.insert(name, value)),
        // Our values are checked when they are made; an invalid one is left out.
        Err(_) => drop(headers.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use ichido_boundary::FingerprintInput;

    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let fields = fields.iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        });
        fields.collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn hop_by_hop_headers_are_removed() {
        let mut fields = headers(&[
            ("connection", "close, X-Private"),
            ("connection", " x-other ,, "),
            ("x-private", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "x"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("proxy-authorization", "x"),
            ("expect", "100-continue"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAoAAAAAIAAAAA"),
            ("accept", "*/*"),
        ]);
        strip_request(&mut fields, &[]).expect("nothing is abused");
        assert_eq!(names(&fields), ["accept"]);
    }

    /// CGI, WSGI, Rack and PHP may read each of these as `X-User-Id`.
    #[test]
    fn ambiguous_header_names_are_dropped() {
        for name in
            ["x_user_id", "x-user_id", "x.user.id", "x~user-id", "_", "idempotency_key", "ichido_hops"]
        {
            let mut fields = headers(&[(name, "admin"), ("x-user-name", "7"), ("etag2", "1")]);
            strip_request(&mut fields, &[]).expect("nothing is abused");
            assert_eq!(names(&fields), ["etag2", "x-user-name"], "{name}");
        }
    }

    /// The checker must not promise that the adapter compares a field that ends here.
    #[test]
    fn fingerprint_never_uses_a_dropped_header() {
        for name in HOP_BY_HOP.into_iter().chain([HOST, EXPECT]) {
            assert!(FingerprintInput::parse(&format!("headers.{name}")).is_err(), "{name}");
        }
    }

    #[test]
    fn connection_header_cannot_remove_required_headers() {
        let identity = HeaderName::from_static("x-user-id");
        for name in
            ["Idempotency-Key", "x-idempotency-key", "host", "content-length", "ichido-hops", "X-User-Id"]
        {
            let mut fields = headers(&[("connection", name), (name, "1")]);
            assert_eq!(
                strip_request(&mut fields, std::slice::from_ref(&identity)),
                Err(NamesEndToEnd),
                "{name}"
            );
        }
    }

    fn lists(file: Option<&str>, allow: Option<&[&str]>, drop: &[&str]) -> HeaderFilter {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let read = |text: &str| Boundary::read("test.json", text.as_bytes()).expect("a boundary file");
        HeaderFilter {
            party: Party::Bff,
            files: file.map(read).into_iter().collect(),
            requests: HeaderLists { allow: allow.map(owned), drop: Some(owned(drop)) },
            answers: HeaderLists { allow: allow.map(owned), drop: None },
        }
    }

    fn pass(lists: &HeaderFilter, headers: &mut HeaderMap) {
        lists.filter_inbound(headers);
        lists.filter_outbound(headers);
    }

    #[test]
    fn allow_list_passes_its_headers_and_the_standard_ones() {
        let lists = lists(None, Some(&["accept", "x-app-*"]), &["x-user-id"]);
        let mut fields = headers(&[
            ("accept", "*/*"),
            ("cookie", "a=b"),
            ("idempotency-key", "k"),
            ("ichido-hops", "x"),
            ("x-app-version", "7"),
            ("x-user-id", "7"),
        ]);
        pass(&lists, &mut fields);
        assert_eq!(names(&fields), ["accept", "ichido-hops", "idempotency-key", "x-app-version"]);
    }

    #[test]
    fn header_must_be_allowed_by_file_and_flags() {
        let file = r#"{"boundary": "browser_to_bff", "headers": {
            "bff_inbound": {"allow": ["accept", "cookie"], "drop": ["cookie"]},
            "bff_response": {"allow": ["etag"]}
        }}"#;
        let lists = lists(Some(file), None, &[]);
        let mut request =
            headers(&[("accept", "*/*"), ("cookie", "a=b"), ("x-other", "1"), ("x-idempotency-key", "k")]);
        pass(&lists, &mut request);
        assert_eq!(names(&request), ["accept", "x-idempotency-key"]);
        let mut answer = headers(&[
            ("etag", "1"),
            ("server", "x"),
            ("idempotency-status", "processing"),
            ("retry-after", "1"),
        ]);
        lists.filter_response(&mut answer);
        assert_eq!(names(&answer), ["etag", "idempotency-status", "retry-after"]);
    }

    #[test]
    fn without_a_list_only_forbidden_headers_are_removed() {
        let lists = lists(None, None, &["X-User-Id"]);
        let mut fields =
            headers(&[("cookie", "a=b"), ("cookie", "c=d"), ("x-user-id", "7"), ("x-user-id", "8")]);
        pass(&lists, &mut fields);
        assert_eq!(names(&fields), ["cookie"]);
        assert_eq!(fields.get_all("cookie").iter().count(), 2, "repeats stay repeats");
    }
}
