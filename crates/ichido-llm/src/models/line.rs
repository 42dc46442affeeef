//! The way over HTTP to a model's endpoints.
//!
//! Guarantee: one call puts at most one request on the wire, as [`ichido::destination::http`] does it: no redirect is followed, no proxy is
//! taken from the environment, connecting and the whole call have their time, and an answer its size. The key is in no text and no
//! error.

mod heard;
mod hush;
mod settings;

pub use hush::Hush;
pub use settings::{ENDPOINTS_MAX, ServiceSettings};

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use ichido::destination::http::AGENT;
use ichido_core::verdict::NetworkFault;
use ichido_http::client::{CallLimits, FullResponse, HttpClient, NetworkError};
use ichido_http::clock;
use serde_json::Value;

use super::{Prompt, Reply, Trial};

/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// A model's endpoints, and who we are there.
pub(super) struct Line {
    pub(super) model: String,
    /// The endpoints' names, in the order of `endpoints`.
    names: Vec<String>,
    endpoints: Vec<Endpoint>,
    /// The fields of every request.
    headers: HeaderMap,
    limits: CallLimits,
    api_key: Option<String>,
}

struct Endpoint {
    client: HttpClient<Full<Bytes>>,
    target: PathAndQuery,
}

/// Neither the key nor the values of header fields.
impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("model", &self.model)
            .field("endpoints", &self.names)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn endpoints(&self) -> &[String] {
        &self.names
    }

    pub(super) fn time_out(&self) -> Duration {
        self.limits.total
    }

    /// One call: what is sent, and how an answer that is one is read.
    pub(super) async fn ask(
        &self,
        endpoint: usize,
        prompt: &Prompt,
        body: &Value,
        read: fn(&Value) -> Option<Reply>,
    ) -> Trial {
        let seen = self.post(endpoint, body).await;
        let hush = Hush { prompt, api_key: self.api_key.as_deref() };
        heard::trial(seen, &hush, read, clock::now())
    }

    async fn post(&self, endpoint: usize, body: &Value) -> Result<FullResponse, NetworkError> {
        let Some(Endpoint { client, target }) = self.endpoints.get(endpoint) else {
            return Err(NetworkError::new(
                NetworkFault::HeldBack,
                format!("there is no endpoint number {endpoint}"),
            ));
        };
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = target.clone().into();
        let fields = request.headers_mut();
        fields.clone_from(&self.headers);
        fields.insert(HOST, client.host_field());
        fields.insert(USER_AGENT, AGENT);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        client.exchange(request, &self.limits).await
    }
}
