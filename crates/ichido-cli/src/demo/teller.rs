//! Tells the story: does each step, waits for what it is to show, and says what came.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::alert::{CLEAR_FOR, Rule};
use ichido_store::Store;
use serde_json::json;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::order::{Order, Queue};
use super::page::paragraph;
use super::server::{Alert, Called, Put};
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
    /// The demo's own: its clock is turned.
    store: Store,
    ids: HashMap<String, Uuid>,
    pub(super) seen: Seen,
}

impl Teller {
    pub(super) fn new(server: SocketAddr, broker: SocketAddr, store: Store) -> Result<Self, Exit> {
        let called = Called::new(server, broker)?;
        Ok(Self { called, server, broker, store, ids: HashMap::new(), seen: Seen::default() })
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

    /// How far the store's clock was turned ahead.
    pub(super) fn turned(&self) -> Duration {
        self.store.skewed_by()
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
            Step::Opens(rule, queue) => self.opens(rule, queue).await,
            Step::Clears(rule, queue) => self.clears(rule, queue).await,
            Step::Resolves(rule, queue) => self.resolves(rule, queue).await,
            Step::TurnClock => {
                self.store.skew_by(CLEAR_FOR);
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

    /// Waits for an incident that is so; `None` where there is none within the time.
    async fn incident(
        &self,
        rule: Rule,
        queue: Queue,
        is_so: impl Fn(&Alert) -> bool,
    ) -> Result<Option<Alert>, Exit> {
        let looking = async {
            loop {
                let found = self.called.alert(rule.as_str(), queue).await?;
                if let Some(alert) = found.filter(&is_so) {
                    return Ok(alert);
                }
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(SHOWN_WITHIN, looking).await.ok().transpose()
    }

    async fn opens(&mut self, rule: Rule, queue: Queue) -> Result<(), Exit> {
        let name = rule.as_str();
        match self.incident(rule, queue, |alert| alert.state == "firing").await? {
            Some(alert) => {
                self.seen.count(Sight::AlertOpened);
                say(&format!("alert {name}: {}", alert.text))
            }
            None => say(&not_seen(&format!("alert {name}"))),
        }
    }

    async fn clears(&self, rule: Rule, queue: Queue) -> Result<(), Exit> {
        match self.incident(rule, queue, |alert| alert.clear_since.is_some()).await? {
            Some(_) => Ok(()),
            None => say(&not_seen(&format!("the end of alert {}", rule.as_str()))),
        }
    }

    async fn resolves(&mut self, rule: Rule, queue: Queue) -> Result<(), Exit> {
        let name = rule.as_str();
        match self.incident(rule, queue, |alert| alert.state == "resolved").await? {
            Some(_) => {
                self.seen.count(Sight::AlertResolved);
                say(&format!("alert {name} of {}: over", queue.name()))
            }
            None => say(&not_seen(&format!("the end of alert {name}"))),
        }
    }

    /// The message once it is as asked; `None` where it is not within the time.
    async fn until(&self, id: Uuid, is_so: impl Fn(&Message) -> bool) -> Result<Option<Message>, Exit> {
        let looking = async {
            loop {
                let message = self.called.message(id).await?;
                if is_so(&message) {
                    return Ok(message);
                }
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(SHOWN_WITHIN, looking).await.ok().transpose()
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

/// A line of a chapter.
fn say(text: &str) -> Result<(), Exit> {
    out::line(paragraph(text))
}

fn not_seen(what: &str) -> String {
    format!("{what}: nothing came of it within {} seconds", SHOWN_WITHIN.as_secs())
}
