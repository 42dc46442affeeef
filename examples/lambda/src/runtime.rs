//! Lambda's runtime API: waits for invocations and reports their results.
//!
//! The API is three requests, so the crate `lambda_runtime` would add more code than it saves.
//! See <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>.

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request};
use http_body_util::Full;
use ichido_core::time::Timestamp;
use ichido_http::client::{CallLimits, FullResponse, HttpClient};
use ichido_http::url::HttpUrl;
use serde_json::{Value, json};

/// The version of the API, as the beginning of its paths.
const VERSION: &str = "/2018-06-01/runtime";
/// Maximum wait for an invocation. Lambda stops an idle process long before.
const MAX_IDLE: Duration = Duration::from_hours(24);
const LIMITS: CallLimits = CallLimits {
    connect: Duration::from_secs(3),
    response: MAX_IDLE,
    total: MAX_IDLE,
    // Lambda's own limit of an event.
    max_response_bytes: 6 << 20,
};

/// The API, at the address that Lambda passes in the environment.
pub(crate) struct RuntimeApi(HttpClient<Full<Bytes>>);

/// An event to handle.
pub(crate) struct Invocation {
    pub(crate) id: String,
    /// When Lambda kills the process.
    pub(crate) deadline: Timestamp,
    pub(crate) event: Bytes,
}

impl RuntimeApi {
    /// Creates a client for an address such as `127.0.0.1:9001`.
    pub(crate) fn new(address: &str) -> Result<Self, String> {
        let url = HttpUrl::parse(&format!("http://{address}"));
        let url = url.map_err(|error| format!("the runtime API's address is invalid: {error}"))?;
        HttpClient::new(&url, None, |_| true).map(Self).map_err(|error| error.to_string())
    }

    /// Waits for the next invocation.
    pub(crate) async fn next(&self) -> Result<Invocation, String> {
        let response = self.send(Method::GET, "invocation/next", Bytes::new()).await?;
        let field = |name: &str| response.headers.get(name).and_then(|value| value.to_str().ok());
        let id = field("lambda-runtime-aws-request-id").map(str::to_owned);
        let deadline = field("lambda-runtime-deadline-ms").and_then(|text| text.parse().ok());
        let (id, deadline) = id.zip(deadline).ok_or("the invocation has no id or no deadline")?;
        Ok(Invocation { id, deadline: Timestamp::from_millis(deadline), event: response.body })
    }

    /// Reports the result of an invocation.
    pub(crate) async fn respond(&self, id: &str, result: &Value) -> Result<(), String> {
        self.send(Method::POST, &format!("invocation/{id}/response"), result.to_string()).await.map(drop)
    }

    /// Reports that an invocation failed.
    pub(crate) async fn fail(&self, id: &str, why: &str) -> Result<(), String> {
        self.send(Method::POST, &format!("invocation/{id}/error"), error(why)).await.map(drop)
    }

    /// Reports that the function cannot start.
    pub(crate) async fn fail_init(&self, why: &str) -> Result<(), String> {
        self.send(Method::POST, "init/error", error(why)).await.map(drop)
    }

    async fn send(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Result<FullResponse, String> {
        let failed = |why: String| format!("the runtime API failed: {method} {path}: {why}");
        let request = Request::builder()
            .method(&method)
            .uri(format!("{VERSION}/{path}"))
            .header(HOST, self.0.host_field())
            .body(Full::new(body.into()))
            .map_err(|error| failed(error.to_string()))?;
        let response = self.0.exchange(request, &LIMITS).await.map_err(|error| failed(error.why))?;
        match response.status {
            200..=299 if response.is_whole => Ok(response),
            200..=299 => Err(failed(format!("the event is larger than {} bytes", LIMITS.max_response_bytes))),
            status => Err(failed(format!("it returned {status}"))),
        }
    }
}

/// Renders an error as Lambda expects it.
fn error(why: &str) -> String {
    json!({ "errorType": "Ichido.Judge", "errorMessage": why }).to_string()
}
