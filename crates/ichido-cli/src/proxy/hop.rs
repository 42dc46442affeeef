//! The roles `bff` and `gateway`: a hop that does not own idempotency (SPEC C2, C4).
//!
//! Guarantee: a hop checks the key and passes it on; it stores nothing, never answers in place of the owner, and
//! never makes a conflict of its own. It repeats a request only where the boundary's plan covers it *and* SPEC C4
//! allows it: a POST with a key, whose whole body it holds, after a network fault or a 502, 503 or 504. Everything
//! else, a 202 that says "processing" included, passes as it came.

use std::num::NonZeroU32;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ichido_core::boundary::RetryPlan;
use ichido_core::retry::{Jitter, Retry, Schedule, hop_may_repeat};
use ichido_core::verdict::{Answer, Echo, Effect, Seen, Table};
use tokio::time::{Instant, sleep};

use super::body::{AnswerBody, BodyFault, Timed, Upload};
use super::limits::{Limits, RETRY_BODY_BYTES_MAX};
use super::passage::{Arrived, Rules};
use super::problem::Problem;
use super::server::Answers;
use super::upstream::{Call, Failure, Upstream};
use crate::clock;

/// A hop between a caller and the next component.
pub(crate) struct HopRole {
    pub(crate) rules: Rules,
    pub(crate) upstream: Upstream,
    pub(crate) limits: Limits,
    pub(crate) patience: Patience,
}

/// How long a hop waits, and how often it tries.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// How long one try may take.
    pub(crate) try_max: Duration,
    /// How long all tries together may take.
    pub(crate) in_all: Duration,
    /// When it tries again; `None` is never.
    pub(crate) plan: Option<RetryPlan>,
}

impl Answers for HopRole {
    async fn answer(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let slip = self.rules.slip(request.headers());
        let method = request.method().clone();
        let answered = match self.rules.arrive(request, &slip, &self.limits) {
            Ok(arrived) => self.pass_on(arrived).await,
            Err(problem) => Err(problem),
        };
        let mut response = answered.unwrap_or_else(Problem::into_response);
        self.rules.leave(&mut response, &slip);
        let (status, request_id) = (response.status().as_u16(), slip.request_id.as_str());
        tracing::info!(%method, status, request_id, key = slip.key_hash(), "answered");
        response
    }
}

impl HopRole {
    async fn pass_on(&self, arrived: Arrived) -> Result<Response<AnswerBody>, Problem> {
        let Arrived { call, body, key } = arrived;
        let by = Instant::now() + self.patience.in_all;
        // What is certainly not repeated need not be kept.
        let plan = self.patience.plan.as_ref().filter(|_| key.is_some() && call.method == "POST");
        let Some(plan) = plan else {
            return self.send_once(&call, Upload::streamed(Bytes::new(), body), by).await;
        };
        match gather(body).await {
            Ok(Gathered::Whole(bytes)) => self.send_by_plan(&call, &bytes, plan, by).await,
            Ok(Gathered::TooLarge(upload)) => self.send_once(&call, upload, by).await,
            Err(fault) => Err(Problem::of_failure(Failure::Upload(fault), Effect::NotDone)),
        }
    }

    async fn send_once(
        &self,
        call: &Call,
        upload: Upload,
        by: Instant,
    ) -> Result<Response<AnswerBody>, Problem> {
        let within = self.within(by);
        match self.upstream.send(call, upload, within).await {
            Ok(answer) => Ok(self.streamed(answer)),
            Err(failure) => Err(Problem::of_failure(failure, effect_of(failure))),
        }
    }

    async fn send_by_plan(
        &self,
        call: &Call,
        bytes: &Bytes,
        plan: &RetryPlan,
        by: Instant,
    ) -> Result<Response<AnswerBody>, Problem> {
        let mut effect = Effect::NotDone;
        let mut failures = NonZeroU32::MIN;
        loop {
            let sent = self.upstream.send(call, Upload::whole(bytes.clone()), self.within(by)).await;
            if let Err(failure) = &sent {
                effect = effect.after(effect_of(*failure));
            }
            match after_try(sent, call, plan, failures, by) {
                (_, Some(wait)) => {
                    tracing::info!(failures, ?wait, "trying again, under the same key");
                    sleep(wait).await;
                }
                (Ok(answer), None) => return Ok(self.streamed(answer)),
                (Err(failure), None) => return Err(Problem::of_failure(failure, effect)),
            }
            failures = failures.saturating_add(1);
        }
    }

    /// How long the next try may take: never past the time in all.
    fn within(&self, by: Instant) -> Duration {
        self.patience.try_max.min(by.saturating_duration_since(Instant::now()))
    }

    fn streamed(&self, mut answer: Response<Incoming>) -> Response<AnswerBody> {
        self.rules.filter(&mut answer);
        let idle = self.limits.body_idle;
        answer.map(|body| Timed::answer(body, idle).map_err(Into::into).boxed_unsync())
    }
}

type Sent = Result<Response<Incoming>, Failure>;

/// Whether to try again after this one, and when. An answer that would have been repeated too late is still the answer.
fn after_try(
    sent: Sent,
    call: &Call,
    plan: &RetryPlan,
    failures: NonZeroU32,
    by: Instant,
) -> (Sent, Option<Duration>) {
    let headers: Vec<(&str, &[u8])> = match &sent {
        Ok(answer) => {
            answer.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect()
        }
        Err(_) => Vec::new(),
    };
    let seen = match &sent {
        Ok(answer) => Seen::Answer(Answer {
            status: answer.status().as_u16(),
            headers: &headers,
            body: b"",
            echo: Echo::Absent,
        }),
        Err(Failure::Network(fault)) => Seen::Network(*fault),
        // The body was whole before the first try, so this does not happen; it would be no reason to repeat.
        Err(Failure::Upload(_)) => return (sent, None),
    };
    let method = call.method.as_str();
    let may = plan.covers(method, &seen) && hop_may_repeat(method, true, &seen);
    let wait = plan.wait_after(failures).filter(|_| may).map(|wait| {
        let hint = Table::http().judge(&seen, clock::now()).hint;
        // Spread over the wait, so that those who failed together do not come back together.
        let retry =
            Retry { schedule: Schedule::List(vec![wait]), jitter: Jitter::Full, tries: plan.attempts };
        retry.wait(NonZeroU32::MIN, fastrand::f64(), hint)
    });
    let in_time = wait.filter(|wait| Instant::now() + *wait < by);
    drop(headers);
    (sent, in_time)
}

/// What one failure says of the effect.
pub(crate) fn effect_of(failure: Failure) -> Effect {
    match failure {
        Failure::Network(fault) => Table::http().judge(&Seen::Network(fault), clock::now()).effect,
        // A part of it may have arrived, and some services act before the end.
        Failure::Upload(_) => Effect::Unknown,
    }
}

enum Gathered {
    Whole(Bytes),
    /// Over the bound: what came so far, and the rest as it comes.
    TooLarge(Upload),
}

/// Takes a body in, as long as it is small enough to be sent again.
async fn gather(mut body: Timed) -> Result<Gathered, BodyFault> {
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if RETRY_BODY_BYTES_MAX < expected {
        return Ok(Gathered::TooLarge(Upload::streamed(Bytes::new(), body)));
    }
    let mut bytes = BytesMut::with_capacity(expected);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if RETRY_BODY_BYTES_MAX < bytes.len() {
            return Ok(Gathered::TooLarge(Upload::streamed(bytes.freeze(), body)));
        }
    }
    Ok(Gathered::Whole(bytes.freeze()))
}
