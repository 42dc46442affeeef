//! Models behind HTTP.
//!
//! Guarantee: one call sends at most one request, as in [`ichido::destination::http`]. It follows no redirect and takes
//! no proxy from the environment. Connecting and the whole call have timeouts, and the response has a size limit. The
//! key appears in no text and no error.

mod redact;
mod response;
mod settings;

pub use redact::Redactor;
pub use settings::{MAX_ENDPOINTS, ServiceSettings};

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::Full;
use ichido::destination::http::endpoint;
use ichido_core::verdict::NetworkFault;
use ichido_http::client::{CallLimits, FullResponse, HttpClient, NetworkError};
use ichido_http::clock;
use serde_json::Value;

use super::{Model, ModelFuture, Prompt, Reply};

/// Maximum size of a response that is read.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A model behind HTTP, at one or more endpoints.
pub struct HttpModel {
    model: String,
    /// The names of the endpoints, in the order of `endpoints`.
    names: Vec<String>,
    endpoints: Vec<HttpEndpoint>,
    /// The header fields of every request.
    headers: HeaderMap,
    limits: CallLimits,
    api_key: Option<String>,
    api: ApiDialect,
}

/// Builds the body of a request.
type Write = Box<dyn Fn(&str, &Prompt) -> Value + Send + Sync>;

/// How to speak an API.
pub(super) struct ApiDialect {
    /// The path of requests, under each base URL.
    pub(super) path: &'static str,
    /// The header fields of every request.
    pub(super) fields: &'static [(&'static str, &'static str)],
    /// The header field that carries the key.
    pub(super) key_field: fn(&str) -> (&'static str, String),
    /// Builds the body of a request.
    pub(super) write: Write,
    /// Reads a response; `None` if it is not from this API.
    pub(super) read: fn(&Value) -> Option<Reply>,
}

struct HttpEndpoint {
    client: HttpClient<Full<Bytes>>,
    target: PathAndQuery,
}

ichido_core::debug_only! {
    /// Shows neither the key nor the values of header fields.
    HttpModel as http_model { model, endpoints: http_model.names, limits }
}

impl Model for HttpModel {
    fn name(&self) -> &str {
        &self.model
    }

    fn endpoints(&self) -> &[String] {
        &self.names
    }

    fn timeout(&self) -> Duration {
        self.limits.total
    }

    fn ask<'a>(&'a self, endpoint: usize, prompt: &'a Prompt) -> ModelFuture<'a> {
        Box::pin(async move {
            let seen = self.post(endpoint, &(self.api.write)(&self.model, prompt)).await;
            let redactor = Redactor { prompt, api_key: self.api_key.as_deref() };
            response::report(seen, &redactor, self.api.read, clock::now())
        })
    }
}

impl HttpModel {
    async fn post(&self, endpoint: usize, body: &Value) -> Result<FullResponse, NetworkError> {
        let Some(HttpEndpoint { client, target }) = self.endpoints.get(endpoint) else {
            return Err(NetworkError::new(
                NetworkFault::NotSent,
                format!("endpoint {endpoint} does not exist"),
            ));
        };
        let body = Bytes::from(body.to_string());
        let mut request = endpoint::request(client, Method::POST, target.clone(), &self.headers, body);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        client.exchange(request, &self.limits).await
    }
}
