//! The client: tries, waits, and says what came of it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request};
use http_body_util::Full;
use ichido_core::key::IdempotencyKey;
use ichido_core::retry::Safety;
use ichido_core::verdict::{self, Echo, Effect, NetworkFault, Seen};
use tokio::time::{Instant, sleep};

use crate::action::{Action, ActionError, IDEMPOTENCY_KEY, TRY, key_field, parse_path};
use crate::answer::Answer;
use crate::clock;
use crate::next::{self, Moment, Next, Rules, Tries, Why};
use crate::token::Token;
use crate::wire::{Bounds, Fault, Peer};

/// How we call ourselves.
const AGENT: HeaderValue = HeaderValue::from_static(concat!("ichido-client/", env!("CARGO_PKG_VERSION")));

/// Sends actions to one server. Made by [`ClientSettings::resolve`](crate::ClientSettings::resolve), used inside a tokio runtime with I/O
/// and time, and by many at once.
pub struct Client {
    pub(crate) peer: Peer,
    /// What stands before every path: the base URL's own path, without a slash at its end.
    pub(crate) prefix: String,
    pub(crate) token: Option<Token>,
    pub(crate) rules: Rules,
    pub(crate) bounds: Bounds,
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
    /// The server will not do it, however often it is asked: a 4xx other than 408 and 429, a redirect.
    Refused {
        /// Why, in the server's words: [`Answer::problem`].
        answer: Answer,
        /// What is known of the effect. `Unknown` where an earlier try was lost, or where the answer leaves it open.
        effect: Effect,
        /// Requests made for it.
        tries: u32,
    },
    /// No outcome was learnt. The same action may be sent again, under the same key.
    GaveUp {
        /// Why it was not tried again.
        why: Why,
        /// What was seen last.
        last: Last,
        /// What is known of the effect: `NotDone` where no try can have arrived.
        effect: Effect,
        /// Requests made for it.
        tries: u32,
    },
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

/// Where it is, and no token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("authority", &self.peer.authority.as_str())
            .field("token", &self.token)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Client {
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
        self.ask(&Call::Action(action)).await
    }

    /// Asks for what is at a path, which follows the base URL and may have a query. A read changes nothing: it has no key, and is made again
    /// by the same rules as an action. What is said of its effect means nothing.
    pub async fn read(&self, path: &str) -> Result<Outcome, ActionError> {
        Ok(self.ask(&Call::Read(parse_path(path)?)).await)
    }

    async fn ask(&self, call: &Call<'_>) -> Outcome {
        let deadline = Instant::now() + self.total;
        let mut tries = Tries::NONE;
        loop {
            let seen = self.try_once(call, tries.sent, deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            let moment = Moment { now: clock::now(), left };
            let decided = decide(&self.rules, call, tries, &seen, moment);
            let key = call.key().map(IdempotencyKey::log_hash);
            tracing::debug!(key, sent = tries.sent + 1, next = ?decided, "a try ended");
            match decided {
                Next::Again { wait, tries: so_far } => {
                    tries = so_far;
                    sleep(wait).await;
                }
                end => return outcome(end, seen, tries.sent.saturating_add(1)),
            }
        }
    }

    async fn try_once(&self, call: &Call<'_>, sent: u32, deadline: Instant) -> Result<Answer, Fault> {
        let Some(request) = self.request(call, sent) else {
            // Cannot happen for what `Action` and `ClientSettings` let through; nothing was sent, and that is what is said.
            return Err(Fault::new(NetworkFault::HeldBack, "the request cannot be written as HTTP"));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let bounds = Bounds { total: self.bounds.total.min(left), ..self.bounds };
        self.peer.exchange(request, &bounds).await
    }

    /// The request of the try that follows `sent` others.
    fn request(&self, call: &Call<'_>, sent: u32) -> Option<Request<Full<Bytes>>> {
        let (method, path, body) = match call {
            Call::Action(action) => (action.method.clone(), &action.path, action.body.clone()),
            Call::Read(path) => (Method::GET, path, Bytes::new()),
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = PathAndQuery::try_from(format!("{}{path}", self.prefix)).ok()?.into();
        let fields = request.headers_mut();
        fields.insert(ACCEPT, HeaderValue::from_static("*/*"));
        if let Call::Action(action) = call {
            fields.extend(action.headers.clone());
            if let Some(key) = &action.key {
                fields.insert(IDEMPOTENCY_KEY, key_field(key)?);
            }
            fields.insert(TRY, HeaderValue::from_str(&action.try_field(sent)).ok()?);
        }
        fields.insert(HOST, HeaderValue::from_str(self.peer.authority.as_str()).ok()?);
        fields.insert(USER_AGENT, AGENT);
        if let Some(token) = &self.token {
            fields.insert(AUTHORIZATION, token.field());
        }
        Some(request)
    }
}

/// What the server is asked.
enum Call<'a> {
    Action(&'a Action),
    Read(PathAndQuery),
}

impl Call<'_> {
    const fn key(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Action(action) => action.key.as_ref(),
            Self::Read(_) => None,
        }
    }

    const fn safety(&self) -> Safety {
        match self {
            Self::Action(action) => action.safety(),
            Self::Read(_) => Safety::Repeatable,
        }
    }
}

fn decide(
    rules: &Rules,
    call: &Call<'_>,
    tries: Tries,
    seen: &Result<Answer, Fault>,
    moment: Moment,
) -> Next {
    let dice = fastrand::f64();
    match seen {
        Ok(answer) => {
            let fields = answer.fields();
            let seen = Seen::Answer(verdict::Answer {
                status: answer.status,
                headers: &fields,
                body: &answer.body,
                // Where no key was sent, none that comes back is about another action.
                echo: call.key().map_or(Echo::Absent, |key| Echo::of(key, fields.iter().copied())),
            });
            next::decide(rules, call.safety(), tries, &seen, moment, dice)
        }
        Err(fault) => next::decide(rules, call.safety(), tries, &Seen::Network(fault.kind), moment, dice),
    }
}

/// The end, with what was seen last. Only an answer can be a yes or a no: a fault that were judged one leaves the effect unknown.
fn outcome(end: Next, seen: Result<Answer, Fault>, tries: u32) -> Outcome {
    match (end, seen) {
        (Next::Done, Ok(answer)) => Outcome::Done { answer, tries },
        (Next::Refused { effect }, Ok(answer)) => Outcome::Refused { answer, effect, tries },
        (Next::GiveUp { why, effect }, seen) => Outcome::GaveUp { why, last: last(seen), effect, tries },
        (_, seen) => {
            Outcome::GaveUp { why: Why::TriesSpent, last: last(seen), effect: Effect::Unknown, tries }
        }
    }
}

fn last(seen: Result<Answer, Fault>) -> Last {
    match seen {
        Ok(answer) => Last::Answer(answer),
        Err(Fault { kind, why }) => Last::Fault { kind, why },
    }
}
