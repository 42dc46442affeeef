//! The client: tries, waits, and says what came of it.

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
use ichido_core::verdict::{self, Echo, Effect, NetworkFault, Seen};
use ichido_http::client::{CallLimits, HttpClient, NetworkError};
use ichido_http::clock;
use tokio::time::{Instant, sleep};

use crate::action::{Action, ActionError, OURS, parse_path};
use crate::answer::Answer;
use crate::next::{self, AttemptHistory, Decision, DecisionContext, NextStep, Refusal, RetryRules, Why};
use call::ClientCall;

/// Sends actions to one server. Made by [`ClientSettings::resolve`](crate::ClientSettings::resolve), used inside a tokio runtime with I/O
/// and time, and by many at once.
pub struct Client {
    pub(crate) http: HttpClient<Full<Bytes>>,
    /// What stands before every path: the base URL's own path, without a slash at its end.
    pub(crate) prefix: String,
    /// Fields of every request, the token among them.
    pub(crate) headers: HeaderMap,
    pub(crate) hop_name: HopName,
    pub(crate) rules: RetryRules,
    /// What is left of the retries that all calls share.
    pub(crate) budget: Mutex<Option<Budget>>,
    pub(crate) limits: CallLimits,
    pub(crate) total: Duration,
}

/// What came of an action.
#[derive(Debug)]
pub enum Outcome {
    /// It was done, now or at an earlier try ([`Answer::is_replay`]).
    Done {
        /// The answer.
        answer: Answer,
        /// Requests made for it.
        tries: u32,
    },
    /// The server will not do it, however often it is asked: a 4xx other than 408 and 429, a redirect, a failure that it keeps.
    Refused {
        /// Why, in the server's words: [`Answer::problem`].
        answer: Answer,
        /// What kind of no it is.
        reason: Refusal,
        /// What is known of the effect. `Unknown` where an earlier try was lost, or where the answer leaves it open.
        effect: Effect,
        /// Requests made for it.
        tries: u32,
    },
    /// No outcome was learnt. The same action may be sent again, under the same key; one without a key only where it was not done.
    GaveUp {
        /// Why it was not tried again.
        why: Why,
        /// What was seen last.
        last: Last,
        /// What is known of the effect of these tries: `NotDone` where none can have arrived.
        effect: Effect,
        /// Requests made for it.
        tries: u32,
    },
}

impl Outcome {
    /// Whether the server says that the key was used for a different request, by the words of its profile.
    pub const fn is_key_conflict(&self) -> bool {
        matches!(self, Self::Refused { reason: Refusal::KeyConflict, .. })
    }
}

/// What was seen of the last try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Last {
    /// An answer, which was no outcome.
    Answer(Answer),
    /// No answer, or not a whole one.
    Fault {
        /// What that says of the request.
        kind: NetworkFault,
        /// Why, in words.
        why: String,
    },
}

ichido_core::debug_only! {
    /// Where it is, and no header field.
    Client as client { authority: client.http.authority().as_str(), rules }
}

impl Client {
    /// Adds header fields to every request, such as a vendor's API key. `Authorization` may be one of them. A field of the same name that
    /// the client or the action sets wins.
    pub fn with_headers(mut self, headers: HeaderMap) -> Result<Self, ActionError> {
        let ours = OURS.into_iter().find(|name| *name != AUTHORIZATION && headers.contains_key(name));
        if let Some(name) = ours {
            return Err(ActionError::Ours(name));
        }
        self.headers.extend(headers);
        Ok(self)
    }

    /// Sends an action until its outcome is known, or until it must not be sent again. It ends within the total time.
    ///
    /// Whoever drops it before its end does not know what became of the action, and may send it again under the same key.
    ///
    /// ```no_run
    /// use ichido_client::{Action, ClientSettings, Outcome};
    /// use ichido_core::key::IdempotencyKey;
    ///
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = ClientSettings::new("http://127.0.0.1:4180").resolve()?;
    /// // Made once, where the person is, and kept with the body until the outcome is known.
    /// let key = IdempotencyKey::parse("0198c5a2-order-1")?;
    /// let path = "/v1/queues/demo/messages";
    /// let order = Action::new(http::Method::POST, path, key, "application/json", r#"{"symbol":"ACME","qty":1}"#)?;
    /// match client.send(&order).await {
    ///     Outcome::Done { answer, .. } => println!("done: {}", answer.status),
    ///     Outcome::Refused { answer, .. } => println!("refused: {:?}", answer.problem()),
    ///     Outcome::GaveUp { why, effect, .. } => println!("{why}; of the effect is known: {effect:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, action: &Action) -> Outcome {
        self.ask(&ClientCall::Action(action)).await
    }

    /// Asks for what is at a path, which follows the base URL and may have a query. A read changes nothing: it has no key, and is made again
    /// by the same rules as an action. What is said of its effect means nothing.
    pub async fn read(&self, path: &str) -> Result<Outcome, ActionError> {
        Ok(self.ask(&ClientCall::Read(parse_path(path)?)).await)
    }

    /// One try of an action.
    #[cfg(feature = "queue")]
    pub(crate) async fn try_action(&self, action: &Action) -> Result<Answer, NetworkError> {
        self.try_once(&ClientCall::Action(action), 0, Instant::now() + self.limits.total).await
    }

    /// What rules in place of the client's own say of a try.
    #[cfg(feature = "queue")]
    pub(crate) fn judge_by(
        rules: &RetryRules,
        action: &Action,
        before: AttemptHistory,
        seen: &Result<Answer, NetworkError>,
    ) -> NextStep {
        // Whoever waits as long as it takes has no deadline.
        let context = DecisionContext { now: clock::now(), left: Duration::MAX, budget: None };
        judge(rules, &ClientCall::Action(action), before, seen, context).next
    }

    async fn ask(&self, call: &ClientCall<'_>) -> Outcome {
        let deadline = Instant::now() + self.total;
        let mut tries = AttemptHistory::NONE;
        loop {
            let seen = self.try_once(call, tries.sent, deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let decided = self.decide(call, tries, &seen, left);
            let key = call.key().map(IdempotencyKey::log_hash);
            tracing::debug!(key, sent = tries.sent + 1, next = ?decided, "a try ended");
            match decided {
                NextStep::Retry { wait, tries: so_far } => {
                    tries = so_far;
                    sleep(wait).await;
                }
                end => return outcome(end, seen, tries.sent.saturating_add(1)),
            }
        }
    }

    async fn try_once(
        &self,
        call: &ClientCall<'_>,
        sent: u32,
        deadline: Instant,
    ) -> Result<Answer, NetworkError> {
        let Some(request) = call.request(self, sent, clock::now(), fastrand::u128(..)) else {
            // Cannot happen for what `Action` and `ClientSettings` let through; nothing was sent, and that is what is said.
            return Err(NetworkError::new(NetworkFault::HeldBack, "the request cannot be written as HTTP"));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let limits = CallLimits { total: self.limits.total.min(left), ..self.limits };
        self.http.exchange(request, &limits).await.map(Answer::from)
    }

    fn decide(
        &self,
        call: &ClientCall<'_>,
        tries: AttemptHistory,
        seen: &Result<Answer, NetworkError>,
        left: Duration,
    ) -> NextStep {
        // Held for the decision, which does nothing but decide: two calls never pay with the same retry. A panic in here leaves the
        // budget as it was.
        let mut budget = lock(&self.budget);
        let context = DecisionContext { now: clock::now(), left, budget: *budget };
        let decided = judge(&self.rules, call, tries, seen, context);
        *budget = decided.budget;
        decided.next
    }
}

/// What the rules say of a try.
fn judge(
    rules: &RetryRules,
    call: &ClientCall<'_>,
    tries: AttemptHistory,
    seen: &Result<Answer, NetworkError>,
    context: DecisionContext,
) -> Decision {
    let fields = seen.as_ref().map(Answer::fields).unwrap_or_default();
    let seen = match seen {
        Ok(answer) => Seen::Answer(verdict::Answer {
            status: answer.status,
            headers: &fields,
            body: &answer.body,
            // Where no key was sent, none that comes back is about another action.
            echo: call.key().map_or(Echo::Absent, |key| Echo::of(key, fields.iter().copied())),
        }),
        Err(fault) => Seen::Network(fault.kind),
    };
    next::decide(rules, call.safety(), tries, &seen, context, fastrand::f64())
}

/// The end, with what was seen last. Only an answer can be a yes or a no: a fault that were judged one leaves the effect unknown.
fn outcome(end: NextStep, seen: Result<Answer, NetworkError>, tries: u32) -> Outcome {
    match (end, seen) {
        (NextStep::Done, Ok(answer)) => Outcome::Done { answer, tries },
        (NextStep::Refused { effect, reason }, Ok(answer)) => {
            Outcome::Refused { answer, reason, effect, tries }
        }
        (NextStep::GiveUp { why, effect }, seen) => Outcome::GaveUp { why, last: last(seen), effect, tries },
        (_, seen) => {
            Outcome::GaveUp { why: Why::TriesSpent, last: last(seen), effect: Effect::Unknown, tries }
        }
    }
}

fn last(seen: Result<Answer, NetworkError>) -> Last {
    match seen {
        Ok(answer) => Last::Answer(answer),
        Err(NetworkError { kind, why, .. }) => Last::Fault { kind, why },
    }
}
