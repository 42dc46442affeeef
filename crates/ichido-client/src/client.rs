//! The client: sends attempts, waits, and reports the outcome.

mod call;

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http_body_util::Full;
use ichido_core::hops::HopName;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Budget;
use ichido_core::sync::lock;
use ichido_core::verdict::{self, AttemptResponse, Echo, Effect, NetworkFault};
use ichido_http::client::{CallLimits, HttpClient, NetworkError};
use ichido_http::clock;
use tokio::time::{Instant, sleep};

use crate::action::{Action, ActionError, OURS, parse_path};
use crate::decision::{
    self, AttemptHistory, Decision, DecisionContext, GiveUpReason, NextStep, RefusalReason, RetryRules,
};
use crate::response::Response;
use call::ClientCall;

/// Sends actions to one server.
///
/// [`ClientSettings::resolve`](crate::ClientSettings::resolve) creates it. It needs a tokio runtime with I/O and
/// time, and can be shared.
pub struct Client {
    pub(crate) http: HttpClient<Full<Bytes>>,
    /// The base URL's own path, without a trailing slash.
    pub(crate) prefix: String,
    /// Fields of every request, including the token.
    pub(crate) headers: HeaderMap,
    pub(crate) hop_name: HopName,
    pub(crate) rules: RetryRules,
    /// The rest of the retry budget that all calls share.
    pub(crate) budget: Mutex<Option<Budget>>,
    pub(crate) limits: CallLimits,
    pub(crate) total: Duration,
}

/// The outcome of an action.
#[derive(Debug)]
pub enum Outcome {
    /// It was done, now or at an earlier attempt ([`Response::is_replay`]).
    Done {
        /// The response.
        answer: Response,
        /// The number of requests.
        attempts: u32,
    },
    /// The server refuses it, and a retry would not help.
    ///
    /// This is a 4xx other than 408 and 429, a redirect, or a stored failure.
    Refused {
        /// The response, with the server's reason in [`Response::problem`].
        answer: Response,
        /// The kind of refusal.
        reason: RefusalReason,
        /// The effect, as far as it is known. `Unknown` if an earlier attempt was lost or the response leaves it open.
        effect: Effect,
        /// The number of requests.
        attempts: u32,
    },
    /// The outcome is not known. The action may be sent again under the same key; without a key only if it was not
    /// done.
    GaveUp {
        /// Why it was not retried.
        why: GiveUpReason,
        /// The result of the last attempt.
        last: LastResult,
        /// The effect of these attempts, as far as it is known: `NotDone` if none can have arrived.
        effect: Effect,
        /// The number of requests.
        attempts: u32,
    },
}

impl Outcome {
    /// Whether the server reports that the key was used for a different request.
    pub const fn is_key_conflict(&self) -> bool {
        matches!(self, Self::Refused { reason: RefusalReason::KeyConflict, .. })
    }
}

/// The result of the last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastResult {
    /// A response that is not an outcome.
    Response(Response),
    /// No response, or an incomplete one.
    Error {
        /// The meaning of the error for the request.
        kind: NetworkFault,
        /// The reason as text.
        why: String,
    },
}

ichido_core::debug_only! {
    /// Shows the server's address and no header field.
    Client as client { authority: client.http.authority().as_str(), rules }
}

impl Client {
    /// Adds header fields to every request, such as a vendor's API key.
    ///
    /// `Authorization` is allowed. A field of the same name that the client or the action sets takes precedence.
    pub fn with_headers(mut self, headers: HeaderMap) -> Result<Self, ActionError> {
        let ours = OURS.into_iter().find(|name| *name != AUTHORIZATION && headers.contains_key(name));
        if let Some(name) = ours {
            return Err(ActionError::ReservedHeader(name));
        }
        self.headers.extend(headers);
        Ok(self)
    }

    /// Sends an action until its outcome is known or it must not be retried.
    ///
    /// It ends within the total timeout. If the future is dropped early, the outcome is unknown, and the action may
    /// be sent again under the same key.
    ///
    /// ```no_run
    /// use ichido_client::{Action, ClientSettings, Outcome};
    /// use ichido_core::key::IdempotencyKey;
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = ClientSettings::new("http://127.0.0.1:4180").resolve()?;
    /// // Create the key once, when the person acts, and keep it with the body until the outcome is known.
    /// let key = IdempotencyKey::parse("0198c5a2-order-1")?;
    /// let path = "/v1/queues/demo/messages";
    /// let order = Action::new(http::Method::POST, path, key, "application/json", r#"{"symbol":"ACME","qty":1}"#)?;
    /// match client.send(&order).await {
    ///     Outcome::Done { answer, .. } => println!("done: {}", answer.status),
    ///     Outcome::Refused { answer, .. } => println!("refused: {:?}", answer.problem()),
    ///     Outcome::GaveUp { why, effect, .. } => println!("{why}; effect: {effect:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, action: &Action) -> Outcome {
        self.send_until_settled(&ClientCall::Action(action)).await
    }

    /// Reads a path, which is appended to the base URL and may have a query.
    ///
    /// A read changes nothing: it has no key and is retried by the same rules as an action. The `effect` in its
    /// outcome has no meaning.
    pub async fn read(&self, path: &str) -> Result<Outcome, ActionError> {
        Ok(self.send_until_settled(&ClientCall::Read(parse_path(path)?)).await)
    }

    /// Makes one attempt of an action.
    #[cfg(feature = "queue")]
    pub(crate) async fn try_action(&self, action: &Action) -> Result<Response, NetworkError> {
        self.try_once(&ClientCall::Action(action), 0, Instant::now() + self.limits.total).await
    }

    /// Judges an attempt with rules other than the client's own.
    #[cfg(feature = "queue")]
    pub(crate) fn judge_with(
        rules: &RetryRules,
        action: &Action,
        before: AttemptHistory,
        seen: &Result<Response, NetworkError>,
    ) -> NextStep {
        // An unlimited wait has no deadline.
        let context = DecisionContext { now: clock::now(), left: Duration::MAX, budget: None };
        judge(rules, &ClientCall::Action(action), before, seen, context).next
    }

    async fn send_until_settled(&self, call: &ClientCall<'_>) -> Outcome {
        let deadline = Instant::now() + self.total;
        let mut attempts = AttemptHistory::NONE;
        loop {
            let seen = self.try_once(call, attempts.sent, deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let decided = self.decide(call, attempts, &seen, left);
            let key = call.key().map(IdempotencyKey::log_hash);
            tracing::debug!(key, sent = attempts.sent + 1, next = ?decided, "attempt finished");
            match decided {
                NextStep::Retry { wait, attempts: so_far } => {
                    attempts = so_far;
                    sleep(wait).await;
                }
                end => return outcome(end, seen, attempts.sent.saturating_add(1)),
            }
        }
    }

    async fn try_once(
        &self,
        call: &ClientCall<'_>,
        sent: u32,
        deadline: Instant,
    ) -> Result<Response, NetworkError> {
        let Some(request) = call.request(self, sent, clock::now(), fastrand::u128(..)) else {
            // This cannot happen with valid `Action`s and `ClientSettings`; nothing was sent, and the error says so.
            return Err(NetworkError::new(NetworkFault::NotSent, "the request cannot be encoded as HTTP"));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let limits = CallLimits { total: self.limits.total.min(left), ..self.limits };
        self.http.exchange(request, &limits).await.map(Response::from)
    }

    fn decide(
        &self,
        call: &ClientCall<'_>,
        attempts: AttemptHistory,
        seen: &Result<Response, NetworkError>,
        left: Duration,
    ) -> NextStep {
        // Held during the decision only, so two calls never spend the same retry. A panic here leaves the budget
        // unchanged.
        let mut budget = lock(&self.budget);
        let context = DecisionContext { now: clock::now(), left, budget: *budget };
        let decided = judge(&self.rules, call, attempts, seen, context);
        *budget = decided.budget;
        decided.next
    }
}

/// Applies the rules to an attempt.
fn judge(
    rules: &RetryRules,
    call: &ClientCall<'_>,
    attempts: AttemptHistory,
    seen: &Result<Response, NetworkError>,
    context: DecisionContext,
) -> Decision {
    let fields = seen.as_ref().map(Response::fields).unwrap_or_default();
    let seen = match seen {
        Ok(answer) => AttemptResponse::Http(verdict::HttpResponse {
            status: answer.status,
            headers: &fields,
            body: &answer.body,
            // Without a key of ours, no key in the response can be a different one.
            echo: call.key().map_or(Echo::Absent, |key| Echo::read(key, fields.iter().copied())),
        }),
        Err(fault) => AttemptResponse::Network(fault.kind),
    };
    decision::decide(rules, call.safety(), attempts, &seen, context, fastrand::f64())
}

/// Combines the decision with the last result.
///
/// Only a response can be a success or a refusal: an error that is judged as one leaves the effect unknown.
fn outcome(end: NextStep, seen: Result<Response, NetworkError>, attempts: u32) -> Outcome {
    match (end, seen) {
        (NextStep::Done, Ok(answer)) => Outcome::Done { answer, attempts },
        (NextStep::Refused { effect, reason }, Ok(answer)) => {
            Outcome::Refused { answer, reason, effect, attempts }
        }
        (NextStep::GiveUp { why, effect }, seen) => {
            Outcome::GaveUp { why, last: last(seen), effect, attempts }
        }
        (_, seen) => Outcome::GaveUp {
            why: GiveUpReason::TriesSpent,
            last: last(seen),
            effect: Effect::Unknown,
            attempts,
        },
    }
}

fn last(seen: Result<Response, NetworkError>) -> LastResult {
    match seen {
        Ok(answer) => LastResult::Response(answer),
        Err(NetworkError { kind, why, .. }) => LastResult::Error { kind, why },
    }
}
