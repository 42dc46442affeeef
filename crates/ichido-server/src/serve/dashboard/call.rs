//! Calls of the API within the process.
//!
//! Guarantee: the dashboard sees and changes only what the API allows its caller, because every page with messages and every action is a
//! request to the API's own routes, which check the role again.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tower_service::Service as _;

use super::super::caller::ApiCaller;
use super::super::problem::{Code, Problem};
use super::Dashboard;
use super::shell::PageRefusal;

impl Dashboard {
    /// Sends a request to the API, and returns a response that is not an error.
    pub(super) async fn call(
        &self,
        caller: &ApiCaller,
        method: Method,
        target: &str,
        body: String,
    ) -> Result<Response, PageRefusal> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(caller, target, request).await
    }

    /// Sends a request with its own header fields to the API, and returns a response that is not an error.
    pub(super) async fn send(
        &self,
        caller: &ApiCaller,
        target: &str,
        mut request: Request<Body>,
    ) -> Result<Response, PageRefusal> {
        *request.uri_mut() = Uri::try_from(target)
            .map_err(|_| Problem::new(Code::ParameterInvalid, "the address is not valid"))?;
        request.extensions_mut().insert(caller.clone());
        let is_change = request.method() != Method::GET;
        let answered: Result<Response, Infallible> = self.routes.clone().call(request).await;
        if is_change {
            self.sampler.forget();
            self.shared_reads.forget();
        }
        let response = answered.unwrap_or_else(|never| match never {});
        if response.status().is_client_error() || response.status().is_server_error() {
            let status = response.status();
            let bytes = collect(response).await?;
            return Err(refusal(status, &bytes));
        }
        Ok(response)
    }

    /// Reads a document of the API. Pages that refresh themselves at the same time share it.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        caller: &ApiCaller,
        target: &str,
    ) -> Result<T, PageRefusal> {
        let read = async {
            let response = self.call(caller, Method::GET, target, String::new()).await?;
            collect(response).await
        };
        let bytes = self.shared_reads.get(&caller.role, target, read).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            tracing::error!(%error, "failed to read a response of the API");
            unreadable()
        })
    }
}

/// Reads a whole body.
pub(super) async fn collect(response: Response) -> Result<Bytes, PageRefusal> {
    let collected = response.into_body().collect().await;
    collected.map(http_body_util::Collected::to_bytes).map_err(|error| {
        tracing::error!(%error, "failed to read a response of the API");
        unreadable()
    })
}

fn refusal(status: StatusCode, bytes: &[u8]) -> PageRefusal {
    #[derive(Deserialize)]
    struct Members {
        title: String,
        detail: String,
        code: String,
    }
    match serde_json::from_slice(bytes) {
        Ok(Members { title, detail, code }) => {
            PageRefusal { status: status.as_u16(), title, detail, code: Some(code) }
        }
        Err(_) => unreadable(),
    }
}

/// Refuses a page whose data cannot be read.
pub(super) fn unreadable() -> PageRefusal {
    Problem::new(Code::RecordUnreadable, "the response of the API cannot be read; see the server's log")
        .into()
}
