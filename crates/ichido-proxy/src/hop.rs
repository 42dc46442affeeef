//! The roles `bff` and `gateway`: hops that do not own idempotency.
//!
//! Guarantee: a hop checks the key and passes it on. It stores nothing, never answers instead of the owner, and never
//! creates a conflict of its own. It repeats a request only if the boundary's retry plan covers it *and* the request
//! is a POST with a key, whose whole body it holds, after a network error or a 502, 503 or 504. Everything else
//! passes unchanged, including a 202 that says "processing".
// Spec: C2, C4.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_boundary::RetryPlan;
use ichido_core::retry::{Jitter, Retry, Schedule, hop_may_repeat};
use ichido_core::verdict::{AttemptResponse, Effect, VerdictTable};
use ichido_http::clock;
use ichido_http::server::Peer;
use ichido_http::server::body::{BodyError, ResponseBody, Timed};
use ichido_http::server::limits::Limits;
use ichido_http::server::permits::{Permit, Permits};
use tokio::time::{Instant, sleep};

use super::body::Upload;
use super::filters::{AdmittedRequest, FilterRules, RequestContext};
use super::forward::judge_response;
use super::problem::Problem;
use super::upstream::{Failure, Upstream, UpstreamRequest};

/// The largest request body that is kept for a retry. A larger one is streamed and sent once.
const MAX_RETRY_BODY_BYTES: usize = 1024 * 1024;

/// A hop between a caller and the next component.
pub(crate) struct HopRole {
    pub(crate) rules: FilterRules,
    pub(crate) limits: Limits,
    pub(crate) upstream: Upstream,
    pub(crate) timeouts: RetryTimeouts,
    /// Memory permits for bodies that are kept for a retry.
    pub(crate) bodies: Permits<Peer>,
}

/// How long a hop waits, and how often it retries.
#[derive(Clone, Debug)]
pub(crate) struct RetryTimeouts {
    /// The timeout of one attempt.
    pub(crate) attempt_timeout: Duration,
    /// The timeout of all attempts together.
    pub(crate) total: Duration,
    /// When to retry; `None` means never.
    pub(crate) plan: Option<RetryPlan>,
}

impl RetryTimeouts {
    /// Returns the timeout of a request that is sent once.
    fn single_attempt(&self) -> Duration {
        self.attempt_timeout.min(self.total)
    }
}

impl HopRole {
    /// Handles a request.
    pub(crate) async fn handle(
        &self,
        request: Request<Incoming>,
        context: &RequestContext,
    ) -> Result<Response<ResponseBody>, Problem> {
        let is_guarded = self.rules.methods.changes_state(request.method().as_str());
        let AdmittedRequest { mut call, body, peer, key } =
            self.rules.admit(request, context, &self.limits, is_guarded)?;
        self.rules.filter_outbound(&mut call);
        // A request that is never repeated need not be kept.
        let plan = self.timeouts.plan.as_ref().filter(|_| key.is_some() && call.method == "POST");
        let Some(plan) = plan else {
            let upload = Upload::streamed(Bytes::new(), body);
            return self.upstream.send_once(&self.rules, &call, upload, self.timeouts.single_attempt()).await;
        };
        let mut permit = self.bodies.empty(peer);
        match gather(body, &mut permit).await {
            Ok(GatheredBody::Whole(bytes)) => self.send_with_retries(&call, &bytes, plan).await,
            Ok(GatheredBody::Streamed(upload)) => {
                self.upstream.send_once(&self.rules, &call, upload, self.timeouts.single_attempt()).await
            }
            Err(fault) => Err(Problem::no_response(Failure::Upload(fault), Effect::NotDone)),
        }
    }

    async fn send_with_retries(
        &self,
        call: &UpstreamRequest,
        bytes: &Bytes,
        plan: &RetryPlan,
    ) -> Result<Response<ResponseBody>, Problem> {
        // Start after the body has arrived: how long the client takes is limited elsewhere and is not the upstream's
        // fault.
        let deadline = Instant::now() + self.timeouts.total;
        let mut effect = Effect::NotDone;
        let mut failures = NonZeroU32::MIN;
        loop {
            let sent =
                self.upstream.send(call, Upload::whole(bytes.clone()), self.next_timeout(deadline)).await;
            let judged = judge(&sent, call, plan, failures, deadline);
            effect = effect.after(judged.effect);
            match (judged.wait, sent) {
                (Some(wait), _) => {
                    tracing::info!(failures, ?wait, "retried with the same key");
                    sleep(wait).await;
                }
                (None, Ok(response)) => return Ok(self.upstream.stream_response(&self.rules, response)),
                (None, Err(failure)) => return Err(Problem::no_response(failure, effect)),
            }
            failures = failures.saturating_add(1);
        }
    }

    /// Returns the timeout of the next attempt, which never exceeds the total.
    fn next_timeout(&self, deadline: Instant) -> Duration {
        self.timeouts.attempt_timeout.min(deadline.saturating_duration_since(Instant::now()))
    }
}

/// The verdict on one attempt.
struct AttemptVerdict {
    /// The effect, as far as it is known.
    effect: Effect,
    /// How long to wait before the next attempt; `None` if this was the last.
    ///
    /// A response that would be repeated too late is returned to the client.
    wait: Option<Duration>,
}

fn judge(
    sent: &Result<Response<Incoming>, Failure>,
    call: &UpstreamRequest,
    plan: &RetryPlan,
    failures: NonZeroU32,
    deadline: Instant,
) -> AttemptVerdict {
    let judge = |seen: &AttemptResponse<'_>| judge_outcome(seen, call.method.as_str(), plan, failures);
    let judged = match sent {
        Ok(response) => judge_response(response, judge),
        Err(Failure::Network(fault)) => judge(&AttemptResponse::Network(*fault)),
        // The body was complete before the first attempt, so this does not happen; it would not justify a retry.
        Err(failure @ Failure::Upload(_)) => AttemptVerdict { effect: failure.effect(), wait: None },
    };
    AttemptVerdict { wait: judged.wait.filter(|wait| Instant::now() + *wait < deadline), ..judged }
}

fn judge_outcome(
    seen: &AttemptResponse<'_>,
    method: &str,
    plan: &RetryPlan,
    failures: NonZeroU32,
) -> AttemptVerdict {
    let verdict = VerdictTable::http().judge(seen, clock::now());
    let may = plan.covers(method, seen) && hop_may_repeat(method, true, seen);
    let wait = plan.wait_after(failures).filter(|_| may).map(|wait| {
        // Spread over the wait, so clients that failed together do not retry together.
        let retry =
            Retry { schedule: Schedule::List(vec![wait]), jitter: Jitter::Full, max_attempts: plan.attempts };
        retry.wait(NonZeroU32::MIN, fastrand::f64(), verdict.hint)
    });
    AttemptVerdict { effect: verdict.effect, wait }
}

enum GatheredBody {
    Whole(Bytes),
    /// The body is too large, or there is no memory for it.
    ///
    /// It has the bytes so far and the rest of the stream, and is sent once.
    Streamed(Upload),
}

/// Buffers a body for a retry if it is small and memory is available.
async fn gather(mut body: Timed, permit: &mut Permit<Peer>) -> Result<GatheredBody, BodyError> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if MAX_RETRY_BODY_BYTES < expected || permit.try_grow(expected).is_err() {
        return Ok(GatheredBody::Streamed(Upload::streamed(Bytes::new(), body)));
    }
    let mut permitted = expected;
    let mut bytes = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        let more = bytes.len().saturating_sub(permitted);
        if MAX_RETRY_BODY_BYTES < bytes.len() || permit.try_grow(more).is_err() {
            return Ok(GatheredBody::Streamed(Upload::streamed(bytes.freeze(), body)));
        }
        permitted += more;
    }
    Ok(GatheredBody::Whole(bytes.freeze()))
}
