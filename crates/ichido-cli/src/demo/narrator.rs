//! Plays the scenario: performs each step, waits for its result, and prints it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use ichido_core::alert::{AlertRule, CLEAR_FOR};
use ichido_server::serve::views::Alert;
use serde_json::json;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::client::{DemoClient, EnqueueOutcome};
use super::expectations::{Expectation, Observations, ShownMessage};
use super::order::{DemoOrder, DemoQueue};
use super::page::paragraph;
use super::scenario::{Chapter, FaultMode, Hint, ScenarioStep};
use super::traffic::{ScheduledOrder, Traffic};
use crate::exit::Exit;
use crate::out;

/// How long a step waits for its result.
///
/// Reconciliation is the slowest: it runs once a minute, and the clock may be advanced at a bad moment.
const STEP_TIMEOUT: Duration = Duration::from_secs(75);
/// The interval between polls.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Plays the scenario.
pub(super) struct Narrator {
    client: DemoClient,
    server: SocketAddr,
    broker: SocketAddr,
    /// Advances the clock of the demo's own store.
    advance_clock: Box<dyn Fn(Duration) + Send + Sync>,
    /// How far the clock was advanced in total.
    pub(super) clock_ahead: Duration,
    ids: HashMap<String, Uuid>,
    pub(super) observed: Observations,
}

impl Narrator {
    pub(super) fn new(
        server: SocketAddr,
        broker: SocketAddr,
        advance_clock: Box<dyn Fn(Duration) + Send + Sync>,
    ) -> Result<Self, Exit> {
        let client = DemoClient::new(server, broker)?;
        let (ids, observed) = (HashMap::new(), Observations::default());
        Ok(Self { client, server, broker, advance_clock, clock_ahead: Duration::ZERO, ids, observed })
    }

    /// Plays a chapter.
    pub(super) async fn play_chapter(&mut self, number: usize, chapter: Chapter) -> Result<(), Exit> {
        let Chapter { title, why, steps, hints } = chapter;
        out::print_line(format_args!("\n{number}. {title}\n{}", paragraph(why)))?;
        for step in steps {
            self.step(step).await?;
        }
        for hint in hints {
            out::print_line(format_args!("   $ {}", self.render_hint(&hint)))?;
        }
        Ok(())
    }

    /// Introduces the traffic after the scenario, and commands to try meanwhile.
    pub(super) async fn start_traffic(&self) -> Result<(), Exit> {
        out::print_line(
            "\nThat was the scenario. Slow traffic continues until Ctrl-C. Try these commands meanwhile:",
        )?;
        let (server, broker) = (self.server, self.broker);
        out::print_line(format_args!(
            "   $ ichido dead requeue --queue orders --yes --server http://{server}\n   \
             $ curl -X PUT http://{broker}/mock/faults -d '{{\"faults\":{{}}}}'   # stop the faults"
        ))?;
        self.client.set_faults(FaultMode::Moody).await?;
        print_paragraph(FaultMode::Moody.describe())
    }

    /// Sends orders slowly, without end.
    pub(super) async fn run_traffic(&mut self, mut traffic: Traffic) -> Result<(), Exit> {
        loop {
            let ScheduledOrder { pause, order, shows } = traffic.next();
            sleep(pause).await;
            let enqueued = self.client.enqueue(&order).await?;
            let text = match self.record_enqueue(&order, enqueued, shows) {
                Ok(text) => text,
                // The order is new, so its outcome is what gets printed.
                Err(id) => {
                    let message = self.wait_for_message(id, ShownMessage::has_ended).await?;
                    if let Some(expectation) = message.as_ref().and_then(ShownMessage::expectation) {
                        self.observed.count(expectation);
                    }
                    message.map_or("not finished yet".to_owned(), |message| message.describe())
                }
            };
            print_paragraph(&format!("{:28} → {text}", order.describe()))?;
        }
    }

    /// Returns whether nothing took effect twice, and a summary.
    pub(super) async fn effects(&self) -> Result<(bool, String), Exit> {
        let broker = self.client.effects().await?;
        let (calls, done) = (broker.calls, broker.effects);
        let is_once = broker.max_effects <= 1;
        let twice = if is_once { "none of them twice" } else { "SOME OF THEM TWICE" };
        Ok((is_once, format!("the broker was called {calls} times and executed {done} orders, {twice}")))
    }

    async fn step(&mut self, step: ScenarioStep) -> Result<(), Exit> {
        match step {
            ScenarioStep::Broker(mode) => {
                self.client.set_faults(mode).await?;
                print_paragraph(mode.describe())
            }
            ScenarioStep::Send(order, shows) => {
                let enqueued = self.client.enqueue(&order).await?;
                let text = self
                    .record_enqueue(&order, enqueued, shows)
                    .unwrap_or_else(|_| "201, accepted".to_owned());
                print_paragraph(&format!("{:28} → {text}", order.describe()))
            }
            ScenarioStep::Fails(key) => {
                let failed = |message: &ShownMessage| message.last_error.is_some();
                let message = self.wait_for_message(self.id(&key)?, failed).await?;
                print_paragraph(
                    &message
                        .map_or_else(|| not_seen(&key), |message| format!("{key}: {}", message.describe())),
                )
            }
            ScenarioStep::Ends(key, expectation) => self.wait_for_end(&key, expectation).await,
            ScenarioStep::Requeue(key) => {
                let reason = json!({ "reason": "the broker accepts orders again" });
                self.client.step(self.id(&key)?, "requeue", reason).await?;
                print_paragraph(&format!("{key}: requeued, attempts reset to 0"))
            }
            ScenarioStep::Decide(key) => {
                let decision = json!({ "decision": "done", "reason": "the recipient has it" });
                self.client.step(self.id(&key)?, "decide", decision).await?;
                print_paragraph(&format!("{key}: decided, it took effect"))
            }
            ScenarioStep::Opens(rule, queue) => {
                let name = format!("alert {}", rule.as_str());
                let Some(alert) = self.wait_for_alert(rule, queue, |alert| alert.state == "firing").await?
                else {
                    return print_paragraph(&not_seen(&name));
                };
                self.observed.count(Expectation::AlertOpened);
                print_paragraph(&format!("{name}: {}", alert.text))
            }
            ScenarioStep::Clears(rule, queue) => {
                let alert = self.wait_for_alert(rule, queue, |alert| alert.clear_since.is_some()).await?;
                if alert.is_some() { Ok(()) } else { print_paragraph(&not_over(rule)) }
            }
            ScenarioStep::Resolves(rule, queue) => {
                if self.wait_for_alert(rule, queue, |alert| alert.state == "resolved").await?.is_none() {
                    return print_paragraph(&not_over(rule));
                }
                self.observed.count(Expectation::AlertResolved);
                print_paragraph(&format!("alert {} of {}: resolved", rule.as_str(), queue.as_str()))
            }
            ScenarioStep::TurnClock => {
                (self.advance_clock)(CLEAR_FOR);
                self.clock_ahead += CLEAR_FOR;
                let minutes = CLEAR_FOR.as_secs() / 60;
                print_paragraph(&format!(
                    "(the demo advances the clock of its own store by {minutes} minutes instead of waiting)"
                ))
            }
        }
    }

    /// Records the outcome of an enqueue.
    ///
    /// Returns its description, or the id of a new message.
    fn record_enqueue(
        &mut self,
        order: &DemoOrder,
        enqueued: EnqueueOutcome,
        shows: Option<Expectation>,
    ) -> Result<String, Uuid> {
        let (expectation, text) = match enqueued {
            EnqueueOutcome::New { id } => {
                self.ids.insert(order.key.clone(), id);
                return Err(id);
            }
            EnqueueOutcome::Replayed => (Expectation::Replayed, "201 as before, Idempotency-Replayed: true"),
            EnqueueOutcome::Conflict => {
                (Expectation::Refused, "409, the key was used for a different request")
            }
        };
        if shows == Some(expectation) {
            self.observed.count(expectation);
        }
        Ok(text.to_owned())
    }

    async fn wait_for_end(&mut self, key: &str, expectation: Expectation) -> Result<(), Exit> {
        let id = self.id(key)?;
        // A reconciled or decided message was parked before.
        let was_parked = matches!(expectation, Expectation::AskedAfter | Expectation::Decided);
        let ended =
            |message: &ShownMessage| message.has_ended() && !(was_parked && message.status == "parked");
        let Some(message) = self.wait_for_message(id, ended).await? else {
            return print_paragraph(&not_seen(key));
        };
        let is_sent = message.status == "sent";
        let (is_seen, text) = match expectation {
            Expectation::LostAndDoneOnce => {
                let broker = self.client.effects().await?;
                let key_effects = broker.keys.get(key);
                let (calls, effects) =
                    key_effects.map_or((0, 0), |key_effects| (key_effects.calls, key_effects.effects));
                let how_often = if effects == 1 { "once" } else { "NOT ONCE" };
                let text = format!(
                    "{}; the broker was called {calls} times and executed it {how_often}",
                    message.describe()
                );
                (is_sent && 1 < calls && effects == 1, text)
            }
            Expectation::AskedAfter => (is_sent, "sent, as the office reports for its key".to_owned()),
            Expectation::Decided => (is_sent, "sent".to_owned()),
            Expectation::Requeued => (is_sent, message.describe()),
            expectation => (message.expectation() == Some(expectation), message.describe()),
        };
        if is_seen {
            self.observed.count(expectation);
        }
        print_paragraph(&format!("{key}: {text}"))
    }

    /// Waits for a matching alert of a rule; `None` after the timeout.
    async fn wait_for_alert(
        &self,
        rule: AlertRule,
        queue: DemoQueue,
        is_match: impl Fn(&Alert) -> bool,
    ) -> Result<Option<Alert>, Exit> {
        poll_until_found(async || Ok(self.client.alert(rule.as_str(), queue).await?.filter(&is_match))).await
    }

    /// Waits until a message matches; `None` after the timeout.
    async fn wait_for_message(
        &self,
        id: Uuid,
        is_match: impl Fn(&ShownMessage) -> bool,
    ) -> Result<Option<ShownMessage>, Exit> {
        poll_until_found(async || Ok(Some(self.client.message(id).await?).filter(&is_match))).await
    }

    fn id(&self, key: &str) -> Result<Uuid, Exit> {
        // An order without an id was refused, which was already printed.
        self.ids
            .get(key)
            .copied()
            .ok_or_else(|| Exit::Failed(format!("{key} was not accepted, so the scenario cannot continue")))
    }

    fn render_hint(&self, hint: &Hint) -> String {
        let server = self.server;
        match hint {
            Hint::Command(command) => format!("{command} --server http://{server}"),
            Hint::About(command, key) => {
                let id = self.ids.get(key).copied().unwrap_or_default();
                format!("{command} {id} --server http://{server}")
            }
            Hint::Page(path) => format!("curl 'http://{server}{path}'"),
        }
    }
}

/// Polls until a value is found; `None` after the timeout.
async fn poll_until_found<T>(find: impl AsyncFn() -> Result<Option<T>, Exit>) -> Result<Option<T>, Exit> {
    let polling = async {
        loop {
            if let Some(found) = find().await? {
                return Ok(found);
            }
            sleep(POLL_EVERY).await;
        }
    };
    timeout(STEP_TIMEOUT, polling).await.ok().transpose()
}

/// Prints a paragraph of a chapter.
fn print_paragraph(text: &str) -> Result<(), Exit> {
    out::print_line(paragraph(text))
}

fn not_seen(what: &str) -> String {
    format!("{what}: no result within {} seconds", STEP_TIMEOUT.as_secs())
}

fn not_over(rule: AlertRule) -> String {
    not_seen(&format!("the end of alert {}", rule.as_str()))
}
