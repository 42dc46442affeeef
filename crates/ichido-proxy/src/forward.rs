//! One call to the upstream, and its answer as it comes: what both kinds of role share.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_core::verdict::{Answer, Echo, Effect, Seen, Table};
use ichido_http::clock;
use ichido_http::server::body::{AnswerBody, Timed};

use super::body::Upload;
use super::passage::Rules;
use super::problem::Problem;
use super::upstream::{Call, Failure, Upstream};

/// The way to the upstream and back.
pub(crate) struct Forward {
    pub(crate) upstream: Upstream,
    /// How long an answer's body may make no progress.
    pub(crate) body_idle: Duration,
}

impl Forward {
    /// Sends a request, and waits so long for its answer to begin.
    pub(crate) async fn send(
        &self,
        call: &Call,
        upload: Upload,
        within: Duration,
    ) -> Result<Response<Incoming>, Failure> {
        self.upstream.send(call, upload, within).await
    }

    /// Sends a request that is not tried again.
    pub(crate) async fn once(
        &self,
        rules: &Rules,
        call: &Call,
        upload: Upload,
        within: Duration,
    ) -> Result<Response<AnswerBody>, Problem> {
        match self.send(call, upload, within).await {
            Ok(answer) => Ok(self.passed(rules, answer)),
            Err(failure) => Err(Problem::of_failure(failure, effect_of(failure))),
        }
    }

    /// An answer whose body is handed on as it comes.
    pub(crate) fn passed(&self, rules: &Rules, mut answer: Response<Incoming>) -> Response<AnswerBody> {
        rules.filter(&mut answer);
        answer.map(|body| Timed::answer(body, self.body_idle).map_err(Into::into).boxed_unsync())
    }
}

/// The header fields of an answer, as a verdict takes them.
pub(crate) fn fields<B>(answer: &Response<B>) -> Vec<(&str, &[u8])> {
    answer.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
}

/// An answer as a verdict takes it. Its body still streams, and says nothing that is needed here.
pub(crate) fn seen<'a, B>(answer: &Response<B>, headers: &'a [(&'a str, &'a [u8])]) -> Seen<'a> {
    Seen::Answer(Answer { status: answer.status().as_u16(), headers, body: b"", echo: Echo::Absent })
}

/// What one failure says of the effect.
pub(crate) fn effect_of(failure: Failure) -> Effect {
    match failure {
        Failure::Network(fault) => Table::http().judge(&Seen::Network(fault), clock::now()).effect,
        // A part of it may have arrived, and some services act before the end.
        Failure::Upload(_) => Effect::Unknown,
    }
}
