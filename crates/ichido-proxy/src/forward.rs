//! One call to the upstream and its response, shared by all roles.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_core::verdict::{AttemptResponse, Echo, Effect, HttpResponse, VerdictTable};
use ichido_http::clock;
use ichido_http::server::body::{ResponseBody, Timed};

use super::body::Upload;
use super::filters::FilterRules;
use super::problem::Problem;
use super::upstream::{Failure, Upstream, UpstreamRequest};

impl Upstream {
    /// Sends a request without retries.
    pub(crate) async fn send_once(
        &self,
        rules: &FilterRules,
        call: &UpstreamRequest,
        upload: Upload,
        response_timeout: Duration,
    ) -> Result<Response<ResponseBody>, Problem> {
        match self.send(call, upload, response_timeout).await {
            Ok(response) => Ok(self.stream_response(rules, response)),
            Err(failure) => Err(Problem::no_response(failure, failure.effect())),
        }
    }

    /// Builds a response whose body streams through.
    pub(crate) fn stream_response(
        &self,
        rules: &FilterRules,
        mut response: Response<Incoming>,
    ) -> Response<ResponseBody> {
        rules.filter_response(&mut response);
        response.map(|body| Timed::response(body, self.body_idle).map_err(Into::into).boxed_unsync())
    }
}

impl Failure {
    /// Returns what the failure says about the effect.
    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::Network(fault) => {
                VerdictTable::http().judge(&AttemptResponse::Network(fault), clock::now()).effect
            }
            // Part of it may have arrived, and some services act before the end.
            Self::Upload(_) => Effect::Unknown,
        }
    }
}

/// Judges a response by its head. The body still streams and is not needed.
pub(crate) fn judge_response<T>(
    response: &Response<Incoming>,
    judge: impl FnOnce(&AttemptResponse<'_>) -> T,
) -> T {
    let headers: Vec<(&str, &[u8])> =
        response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let status = response.status().as_u16();
    judge(&AttemptResponse::Http(HttpResponse { status, headers: &headers, body: b"", echo: Echo::Absent }))
}
