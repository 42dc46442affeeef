//! The scenario of the demo.
//!
//! It says what is sent and when, how the broker behaves, and what the viewer should see.
//!
//! Guarantee: the same seed gives the same scenario. Nothing here reads a clock or a socket, and every expectation
//! belongs to some step.

use ichido_core::alert::AlertRule;

use super::expectations::Expectation;
use super::order::{DemoOrder, DemoQueue};

/// How the broker behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultMode {
    Well,
    /// Answers 503 and does nothing.
    Down,
    /// Executes the order, then breaks the connection before answering.
    Mute,
    /// Answers 400 and does nothing.
    Picky,
    /// A mix of all faults, for the traffic after the scenario.
    Moody,
}

impl FaultMode {
    /// Returns the faults and their rates, as `ichido mock-broker` names them.
    pub(super) const fn faults(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Well => &[],
            Self::Down => &[("server_error_before", 1.0)],
            Self::Mute => &[("reset_after", 1.0)],
            Self::Picky => &[("bad_request", 1.0)],
            Self::Moody => &[("server_error_before", 0.15), ("reset_after", 0.1), ("bad_request", 0.05)],
        }
    }

    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::Well => "the broker works again",
            Self::Down => "the broker is down: it responds 503 to every call",
            Self::Mute => "the broker loses its responses: it executes the order, then the connection breaks",
            Self::Picky => "the broker rejects every order: it responds 400 to every call",
            Self::Moody => "the broker fails three of ten calls, in all these ways",
        }
    }
}

/// An action, or something to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScenarioStep {
    Broker(FaultMode),
    /// Enqueues an order without waiting for its outcome; a reused key meets an expectation.
    Send(DemoOrder, Option<Expectation>),
    /// Waits until the first attempt of the message with this key has failed.
    Fails(String),
    /// Waits until the message has ended and meets the expectation.
    Ends(String, Expectation),
    /// Requeues a dead letter.
    Requeue(String),
    /// Decides that a parked message was done.
    Decide(String),
    /// Waits until an incident opens.
    Opens(AlertRule, DemoQueue),
    /// Waits until the condition has cleared, which starts the resolution.
    Clears(AlertRule, DemoQueue),
    /// Waits until the incident is resolved.
    Resolves(AlertRule, DemoQueue),
    /// Advances the clock of the demo's own store, instead of waiting.
    TurnClock,
}

/// Where a viewer can look for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// An `ichido` command, without the server's URL.
    Command(&'static str),
    /// An `ichido` command about a message, whose id follows.
    About(&'static str, String),
    /// A page of the server.
    Page(&'static str),
}

/// A group of related steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) steps: Vec<ScenarioStep>,
    pub(super) hints: Vec<Hint>,
}

/// Returns the chapters, and the number of orders in them.
pub(super) fn scenario(seed: u64) -> (Vec<Chapter>, u32) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut order = |queue, number| DemoOrder::new(queue, number, &mut dice);
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|number| order(DemoQueue::Orders, number));
    let (payment, fax) = (order(DemoQueue::Payments, 1), order(DemoQueue::Faxes, 1));
    let chapters = vec![
        sent(first.clone()),
        repeated(first),
        failed(second),
        lost(third, payment.clone(), fax.clone()),
        refused(fourth.clone()),
        alerted(),
        fixed_by_hand(fourth.key, fax.key),
        later(payment.key),
    ];
    (chapters, 4)
}

fn sent(order: DemoOrder) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "An order is sent",
        why: "201 means that the order is on disk. Ichido delivers it even if the caller crashes.",
        steps: vec![ScenarioStep::Send(order, None), ScenarioStep::Ends(key.clone(), Expectation::Sent)],
        hints: vec![Hint::About("ichido messages show", key)],
    }
}

fn repeated(order: DemoOrder) -> Chapter {
    let other = order.with_other_body();
    Chapter {
        title: "The same key again",
        why: "A repeated request gets the first response. A different request with the same key is refused.",
        steps: vec![
            ScenarioStep::Send(order, Some(Expectation::Replayed)),
            ScenarioStep::Send(other, Some(Expectation::Refused)),
        ],
        hints: vec![],
    }
}

fn failed(order: DemoOrder) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "The broker is down",
        why: "A temporary failure is retried with exponential backoff.",
        steps: vec![
            ScenarioStep::Broker(FaultMode::Down),
            ScenarioStep::Send(order, None),
            ScenarioStep::Fails(key.clone()),
            ScenarioStep::Broker(FaultMode::Well),
            ScenarioStep::Ends(key.clone(), Expectation::Retried),
        ],
        hints: vec![Hint::About("ichido messages show", key)],
    }
}

fn lost(order: DemoOrder, payment: DemoOrder, fax: DemoOrder) -> Chapter {
    let keys = [&order, &payment, &fax].map(|order| order.key.clone());
    let [key, paid, faxed] = keys;
    Chapter {
        title: "Responses get lost",
        why: "Did it take effect? A receiver that deduplicates by key is called again. Otherwise the message is parked.",
        steps: vec![
            ScenarioStep::Broker(FaultMode::Mute),
            ScenarioStep::Send(order, None),
            ScenarioStep::Send(payment, None),
            ScenarioStep::Send(fax, None),
            ScenarioStep::Fails(key.clone()),
            ScenarioStep::Broker(FaultMode::Well),
            ScenarioStep::Ends(key, Expectation::LostAndDoneOnce),
            ScenarioStep::Ends(paid, Expectation::Parked),
            ScenarioStep::Ends(faxed, Expectation::Parked),
        ],
        hints: vec![Hint::Command("ichido dead list --parked")],
    }
}

fn refused(order: DemoOrder) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "A permanent error",
        why: "A rejected request is not retried. It becomes a dead letter and waits for an operator.",
        steps: vec![
            ScenarioStep::Broker(FaultMode::Picky),
            ScenarioStep::Send(order, None),
            ScenarioStep::Ends(key, Expectation::Dead),
            ScenarioStep::Broker(FaultMode::Well),
        ],
        hints: vec![Hint::Command("ichido dead list")],
    }
}

fn alerted() -> Chapter {
    Chapter {
        title: "Alerts fire",
        why: "One worker checks every ten seconds. Each problem is one incident, however long it lasts.",
        steps: vec![
            ScenarioStep::Opens(AlertRule::DeadLetter, DemoQueue::Orders),
            ScenarioStep::Opens(AlertRule::Parked, DemoQueue::Faxes),
        ],
        hints: vec![Hint::Command("ichido alerts"), Hint::Page("/v1/alerts?state=firing")],
    }
}

fn fixed_by_hand(dead: String, parked: String) -> Chapter {
    Chapter {
        title: "An operator fixes it",
        why: "The broker accepts orders again, so the dead letter is requeued. The recipient confirms the fax.",
        steps: vec![
            ScenarioStep::Requeue(dead.clone()),
            ScenarioStep::Ends(dead.clone(), Expectation::Requeued),
            ScenarioStep::Decide(parked.clone()),
            ScenarioStep::Ends(parked, Expectation::Decided),
        ],
        hints: vec![Hint::About("ichido messages show", dead)],
    }
}

fn later(paid: String) -> Chapter {
    Chapter {
        title: "A few minutes later",
        why: "Once no call can be in flight, the office is asked about the payment. Alerts are resolved.",
        steps: vec![
            ScenarioStep::TurnClock,
            ScenarioStep::Ends(paid, Expectation::AskedAfter),
            // An alert resolves after it has been clear for a while. If the clock advanced first, that time would
            // only start.
            ScenarioStep::Clears(AlertRule::DeadLetter, DemoQueue::Orders),
            ScenarioStep::Clears(AlertRule::Parked, DemoQueue::Faxes),
            ScenarioStep::TurnClock,
            ScenarioStep::Resolves(AlertRule::DeadLetter, DemoQueue::Orders),
            ScenarioStep::Resolves(AlertRule::Parked, DemoQueue::Faxes),
        ],
        hints: vec![Hint::Command("ichido alerts --all"), Hint::Command("ichido queues list")],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn expectation_of(step: &ScenarioStep) -> Option<Expectation> {
        match step {
            ScenarioStep::Send(_, expectation) => *expectation,
            ScenarioStep::Ends(_, expectation) => Some(*expectation),
            ScenarioStep::Opens(..) => Some(Expectation::AlertOpened),
            ScenarioStep::Resolves(..) => Some(Expectation::AlertResolved),
            ScenarioStep::Broker(_)
            | ScenarioStep::Fails(_)
            | ScenarioStep::Requeue(_)
            | ScenarioStep::Decide(_)
            | ScenarioStep::Clears(..)
            | ScenarioStep::TurnClock => None,
        }
    }

    #[test]
    fn scenario_depends_only_on_the_seed() {
        assert_eq!(scenario(7), scenario(7));
        assert_ne!(scenario(7), scenario(8));
    }

    #[test]
    fn scenario_covers_every_expectation() {
        let (chapters, _) = scenario(1);
        let shown: BTreeSet<Expectation> =
            chapters.iter().flat_map(|chapter| &chapter.steps).filter_map(expectation_of).collect();
        let all = BTreeSet::from(Expectation::ALL);
        assert_eq!(shown, all);
    }

    #[test]
    fn scenario_awaits_only_sent_messages_and_ends_without_faults() {
        let (chapters, orders) = scenario(1);
        let (mut sent, mut mode) = (BTreeSet::new(), FaultMode::Well);
        for step in chapters.iter().flat_map(|chapter| &chapter.steps) {
            match step {
                ScenarioStep::Broker(now) => mode = *now,
                // The reused key is the expectation.
                ScenarioStep::Send(order, seen) => {
                    assert_ne!(sent.insert(order.key.clone()), seen.is_some(), "{order:?}");
                }
                ScenarioStep::Fails(key)
                | ScenarioStep::Ends(key, _)
                | ScenarioStep::Requeue(key)
                | ScenarioStep::Decide(key) => {
                    assert!(sent.contains(key), "{key}");
                }
                ScenarioStep::Opens(..)
                | ScenarioStep::Clears(..)
                | ScenarioStep::Resolves(..)
                | ScenarioStep::TurnClock => (),
            }
        }
        assert_eq!(mode, FaultMode::Well);
        assert_eq!(sent.iter().filter(|key| key.starts_with("order-")).count(), orders as usize);
    }
}
