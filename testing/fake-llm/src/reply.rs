//! A response, before it is sent.

use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::Value;

/// A response.
#[derive(Debug)]
pub(crate) struct HttpReply {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: String,
}

impl HttpReply {
    /// Creates a JSON response.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Creates a response of another media type.
    pub(crate) fn new(status: u16, kind: &'static str, body: String) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = (http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Self { status, headers: vec![kind], body }
    }

    /// Sets a header, replacing those of the same name.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
        self
    }

    /// Sets a header with a name and text of our own.
    pub(crate) fn with_text(self, name: &str, text: &str) -> Self {
        let name = HeaderName::try_from(name).expect("this crate creates valid names");
        let value = HeaderValue::from_str(text).expect("this crate creates values without line breaks");
        self.with(name, value)
    }

    pub(crate) fn into_response(self) -> Response<Full<bytes::Bytes>> {
        let mut response = Response::new(Full::from(self.body));
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        response
    }
}

/// Returns the response of a proxy when the provider does not respond.
pub(crate) fn bad_gateway() -> HttpReply {
    let page = "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>";
    HttpReply::new(502, "text/html", page.to_owned())
}
