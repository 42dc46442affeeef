//! The upstream: sends requests and reports what a failure means.
//!
//! Guarantee: a request is sent once. It moves to another connection only if no byte of it was written. Every failure
//! says whether the upstream may have seen the request.
// Spec: C4.

use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, Version};
use hyper::body::Incoming;
use ichido_core::verdict::NetworkFault;
use ichido_http::client::{HttpClient, ServerNameError};
use ichido_http::server::body::BodyError;
use ichido_http::server::limits::Limits;
use ichido_http::trust::ClientConfig;
use ichido_http::url::HttpUrl;
use tokio::time::Instant;

use super::body::{TrackedUpload, Upload};

/// Where requests go.
pub(crate) struct Upstream {
    client: HttpClient<TrackedUpload>,
    connect: Duration,
    /// How long an upload may take, in addition to the response timeout.
    max_upload: Duration,
    /// How long a response body may make no progress.
    pub(crate) body_idle: Duration,
}

/// A request without its body, which may be sent several times.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamRequest {
    pub(crate) method: Method,
    pub(crate) target: PathAndQuery,
    pub(crate) headers: HeaderMap,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The network or the upstream failed.
    Network(NetworkFault),
    /// The client's body was incomplete, so the upstream got at most part of it.
    Upload(BodyError),
}

impl Upstream {
    /// Creates the upstream without connecting.
    ///
    /// `tls` is for an `https` URL.
    pub(crate) fn new(
        url: &HttpUrl,
        tls: Option<Arc<ClientConfig>>,
        limits: &Limits,
        connect: Duration,
    ) -> Result<Self, ServerNameError> {
        let client = HttpClient::new(url, tls, |_| true)?;
        Ok(Self { client, connect, max_upload: limits.body, body_idle: limits.body_idle })
    }

    /// Sends one request and waits for the head of its response.
    ///
    /// `response_timeout` starts when the client has sent its whole body.
    pub(crate) async fn send(
        &self,
        call: &UpstreamRequest,
        upload: Upload,
        response_timeout: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        let (body, progress) = TrackedUpload::new(upload);
        let deadline = Instant::now() + self.max_upload + response_timeout;
        let patience = || async {
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => (),
                () = progress.sent() => tokio::time::sleep(response_timeout).await,
            }
        };
        let sent = self.client.send(self.request(call, body), self.connect, deadline, patience).await;
        match (sent, progress.fault()) {
            // It would change the protocol without being asked.
            (Ok(response), _) if response.status().is_informational() => {
                Err(Failure::Network(NetworkFault::ResponseCut))
            }
            (Ok(mut response), _) => {
                // The version belongs to the upstream connection, which ends here.
                *response.version_mut() = Version::HTTP_11;
                Ok(response)
            }
            (Err(_), Some(fault)) => Err(Failure::Upload(fault)),
            (Err(error), None) => {
                if error.kind == NetworkFault::Tls {
                    tracing::warn!(error = error.why, "upstream refused over TLS; check --trusted-roots");
                }
                Err(Failure::Network(error.kind))
            }
        }
    }

    fn request(&self, call: &UpstreamRequest, body: TrackedUpload) -> Request<TrackedUpload> {
        let mut request = Request::new(body);
        *request.uri_mut() = call.target.clone().into();
        *request.method_mut() = call.method.clone();
        request.headers_mut().clone_from(&call.headers);
        request.headers_mut().entry(HOST).or_insert_with(|| self.client.host_field());
        request
    }
}
