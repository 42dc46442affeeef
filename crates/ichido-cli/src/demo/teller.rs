//! Tells the story: does each step, waits for what it is to show, and says what came.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::alert::{CLEAR_FOR, Rule};
use ichido_server::serve::shown::Alert;
use serde_json::json;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::order::{Order, Queue};
use super::page::paragraph;
use super::server::{Called, Put};
use super::sight::{Message, Seen, Sight};
use super::story::{Chapter, Look, Mood, Step};
use super::traffic::{Beat, Traffic};
use crate::exit::Exit;
use crate::out;

/// How long a step waits for what it is to show. The slowest is a receiver that is asked after something: once a minute, should the clock
/// be turned at a bad moment.
const SHOWN_WITHIN: Duration = Duration::from_secs(75);
/// How often it is looked whether something has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Who tells it.
pub(super) struct Teller {
    called: Called,
    server: SocketAddr,
    broker: SocketAddr,
    /// Turns the clock of the demo's own store ahead.
    turn_clock: Box<dyn Fn(Duration) + Send + Sync>,
    /// How far it was turned in all.
    pub(super) turned: Duration,
    ids: HashMap<String, Uuid>,
    pub(super) seen: Seen,
}

impl Teller {
    pub(super) fn new(
        server: SocketAddr,
        broker: SocketAddr,
        turn_clock: Box<dyn Fn(Duration) + Send + Sync>,
    ) -> Result<Self, Exit> {
        let called = Called::new(server, broker)?;
        let (ids, seen) = (HashMap::new(), Seen::default());
        Ok(Self { called, server, broker, turn_clock, turned: Duration::ZERO, ids, seen })
    }

    /// Tells a chapter.
    pub(super) async fn tell(&mut self, number: usize, chapter: Chapter) -> Result<(), Exit> {
        let Chapter { title, why, steps, look } = chapter;
        out::line(format_args!("\n{number}. {title}\n{}", paragraph(why)))?;
        for step in steps {
            self.step(step).await?;
        }
        for look in look {
            out::line(format_args!("   $ {}", self.shown(&look)))?;
        }
        Ok(())
    }

    /// What comes after the story, and what may be tried meanwhile.
    pub(super) async fn turn_to_traffic(&self) -> Result<(), Exit> {
        out::line(
            "\nThat was the story. Slow traffic goes on until Ctrl-C, and all these commands work meanwhile:",
        )?;
        let (server, broker) = (self.server, self.broker);
        out::line(format_args!(
            "   $ ichido dead requeue --queue orders --yes --server http://{server}\n   \
             $ curl -X PUT http://{broker}/paper/faults -d '{{\"faults\":{{}}}}'   # the broker is well"
        ))?;
        self.called.behave(Mood::Moody).await?;
        say(Mood::Moody.told())
    }

    /// Sends slowly and for ever.
    pub(super) async fn go_on(&mut self, mut traffic: Traffic) -> Result<(), Exit> {
        loop {
            let Beat { pause, order, shows } = traffic.next();
            sleep(pause).await;
            let put = self.called.put(&order).await?;
            let told = match self.put(&order, put, shows) {
                Ok(told) => told,
                // It is new: what becomes of it is what is told.
                Err(id) => {
                    let message = self.until(id, Message::has_ended).await?;
                    if let Some(sight) = message.as_ref().and_then(Message::sight) {
                        self.seen.count(sight);
                    }
                    message.map_or("not over yet".to_owned(), |message| message.told())
                }
            };
            say(&format!("{:28} → {told}", order.told()))?;
        }
    }

    /// Whether the broker did nothing twice, and what it did.
    pub(super) async fn effects(&self) -> Result<(bool, String), Exit> {
        let book = self.called.book().await?;
        let (calls, done) = (book.calls, book.effects);
        let is_once = book.effects_max <= 1;
        let twice = if is_once { "none of them twice" } else { "SOME OF THEM TWICE" };
        Ok((is_once, format!("the broker was called {calls} times, and did {done} orders, {twice}")))
    }

    async fn step(&mut self, step: Step) -> Result<(), Exit> {
        match step {
            Step::Broker(mood) => {
                self.called.behave(mood).await?;
                say(mood.told())
            }
            Step::Send(order, shows) => {
                let put = self.called.put(&order).await?;
                let told = self.put(&order, put, shows).unwrap_or_else(|_| "201, accepted".to_owned());
                say(&format!("{:28} → {told}", order.told()))
            }
            Step::Fails(key) => {
                let failed = |message: &Message| message.last_error.is_some();
                let message = self.until(self.id(&key)?, failed).await?;
                say(&message.map_or_else(|| not_seen(&key), |message| format!("{key}: {}", message.told())))
            }
            Step::Ends(key, sight) => self.ends(&key, sight).await,
            Step::Requeue(key) => {
                let reason = json!({ "reason": "the broker takes orders again" });
                self.called.step(self.id(&key)?, "requeue", reason).await?;
                say(&format!("{key}: requeued, its tries back at 0"))
            }
            Step::Decide(key) => {
                let decision = json!({ "decision": "sent", "reason": "it lies on their desk" });
                self.called.step(self.id(&key)?, "decide", decision).await?;
                say(&format!("{key}: decided, it was done"))
            }
            Step::Opens(rule, queue) => {
                let name = format!("alert {}", rule.as_str());
                let Some(alert) = self.incident(rule, queue, |alert| alert.state == "firing").await? else {
                    return say(&not_seen(&name));
                };
                self.seen.count(Sight::AlertOpened);
                say(&format!("{name}: {}", alert.text))
            }
            Step::Clears(rule, queue) => {
                let alert = self.incident(rule, queue, |alert| alert.clear_since.is_some()).await?;
                if alert.is_some() { Ok(()) } else { say(&not_over(rule)) }
            }
            Step::Resolves(rule, queue) => {
                if self.incident(rule, queue, |alert| alert.state == "resolved").await?.is_none() {
                    return say(&not_over(rule));
                }
                self.seen.count(Sight::AlertResolved);
                say(&format!("alert {} of {}: over", rule.as_str(), queue.as_str()))
            }
            Step::TurnClock => {
                (self.turn_clock)(CLEAR_FOR);
                self.turned += CLEAR_FOR;
                let minutes = CLEAR_FOR.as_secs() / 60;
                say(&format!(
                    "(the demo turns the clock of its own store {minutes} minutes ahead, in place of waiting)"
                ))
            }
        }
    }

    /// Keeps what became of an order that was put in: what it shows in words, or its id where it is new.
    fn put(&mut self, order: &Order, put: Put, shows: Option<Sight>) -> Result<String, Uuid> {
        let (sight, told) = match put {
            Put::New { id } => {
                self.ids.insert(order.key.clone(), id);
                return Err(id);
            }
            Put::Again => (Sight::Replayed, "201 as the first time, Idempotency-Replayed: true"),
            Put::Conflict => (Sight::Refused, "409, the key was used for a different request"),
        };
        if shows == Some(sight) {
            self.seen.count(sight);
        }
        Ok(told.to_owned())
    }

    async fn ends(&mut self, key: &str, sight: Sight) -> Result<(), Exit> {
        let id = self.id(key)?;
        // What was asked after or decided was parked before.
        let was_parked = matches!(sight, Sight::AskedAfter | Sight::Decided);
        let ended = |message: &Message| message.has_ended() && !(was_parked && message.status == "parked");
        let Some(message) = self.until(id, ended).await? else { return say(&not_seen(key)) };
        let is_sent = message.status == "sent";
        let (is_seen, told) = match sight {
            Sight::LostAndDoneOnce => {
                let book = self.called.book().await?;
                let of_key = book.keys.get(key);
                let (calls, effects) = of_key.map_or((0, 0), |of_key| (of_key.calls, of_key.effects));
                let how_often = if effects == 1 { "once" } else { "NOT ONCE" };
                let told = format!(
                    "{}; the broker was called {calls} times, and did it {how_often}",
                    message.told()
                );
                (is_sent && 1 < calls && effects == 1, told)
            }
            Sight::AskedAfter => (is_sent, "sent, says the office when it is asked by the key".to_owned()),
            Sight::Decided => (is_sent, "sent, and so it stays".to_owned()),
            Sight::Requeued => (is_sent, message.told()),
            sight => (message.sight() == Some(sight), message.told()),
        };
        if is_seen {
            self.seen.count(sight);
        }
        say(&format!("{key}: {told}"))
    }

    /// The last incident of a rule about a queue once it is so; `None` where it is not within the time.
    async fn incident(
        &self,
        rule: Rule,
        queue: Queue,
        is_so: impl Fn(&Alert) -> bool,
    ) -> Result<Option<Alert>, Exit> {
        shown(async || Ok(self.called.alert(rule.as_str(), queue).await?.filter(&is_so))).await
    }

    /// The message once it is so; `None` where it is not within the time.
    async fn until(&self, id: Uuid, is_so: impl Fn(&Message) -> bool) -> Result<Option<Message>, Exit> {
        shown(async || Ok(Some(self.called.message(id).await?).filter(&is_so))).await
    }

    fn id(&self, key: &str) -> Result<Uuid, Exit> {
        // It was refused, which was said, where none was put in.
        self.ids
            .get(key)
            .copied()
            .ok_or_else(|| Exit::Failed(format!("{key} was not taken, so that its story ends here")))
    }

    fn shown(&self, look: &Look) -> String {
        let server = self.server;
        match look {
            Look::Command(command) => format!("{command} --server http://{server}"),
            Look::About(command, key) => {
                let id = self.ids.get(key).copied().unwrap_or_default();
                format!("{command} {id} --server http://{server}")
            }
            Look::Page(path) => format!("curl 'http://{server}{path}'"),
        }
    }
}

/// Looks again and again until there is something; `None` where there is nothing within the time.
async fn shown<T>(look: impl AsyncFn() -> Result<Option<T>, Exit>) -> Result<Option<T>, Exit> {
    let looking = async {
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            sleep(LOOK_EVERY).await;
        }
    };
    timeout(SHOWN_WITHIN, looking).await.ok().transpose()
}

/// A line of a chapter.
fn say(text: &str) -> Result<(), Exit> {
    out::line(paragraph(text))
}

fn not_seen(what: &str) -> String {
    format!("{what}: nothing came of it within {} seconds", SHOWN_WITHIN.as_secs())
}

fn not_over(rule: Rule) -> String {
    not_seen(&format!("the end of alert {}", rule.as_str()))
}
