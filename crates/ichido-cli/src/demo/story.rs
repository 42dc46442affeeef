//! The story: what is sent when, how the broker behaves meanwhile, and what it is to show.
//!
//! Guarantee: the same seed tells the same story. Nothing here reads a clock or a socket, and every sight is shown by some step.

use ichido_core::alert::Rule;

use super::order::{Order, Queue};
use super::sight::Sight;

/// How the broker of the orders behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// 503, and nothing is done.
    Down,
    /// It does as it is told, and the connection breaks before its answer.
    Mute,
    /// 400, and nothing is done.
    Picky,
    /// A bit of all of that, for the traffic after the story.
    Moody,
}

impl Mood {
    /// The faults, each with its share of the calls, as `ichido paper` names them.
    pub(super) const fn faults(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Well => &[],
            Self::Down => &[("server_error_before", 1.0)],
            Self::Mute => &[("reset_after", 1.0)],
            Self::Picky => &[("bad_request", 1.0)],
            Self::Moody => &[("server_error_before", 0.15), ("reset_after", 0.1), ("bad_request", 0.05)],
        }
    }

    pub(super) const fn told(self) -> &'static str {
        match self {
            Self::Well => "the broker is well again",
            Self::Down => "the broker is down from now on: 503 to every call",
            Self::Mute => {
                "the broker loses its answers from now on: it does the work, and the connection breaks"
            }
            Self::Picky => "the broker takes no order from now on: 400 to every call",
            Self::Moody => "the broker fails three calls of ten from now on, in all these ways",
        }
    }
}

/// One thing that is done or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Broker(Mood),
    /// Puts something in, and does not wait for its end; it may show what became of a key that was used before.
    Send(Order, Option<Sight>),
    /// Waits until the first try of what was put in under the key has failed.
    Fails(String),
    /// Waits until it has ended so.
    Ends(String, Sight),
    /// Sends a dead one again.
    Requeue(String),
    /// Says of a parked one that it was done.
    Decide(String),
    /// Waits until there is an incident.
    Opens(Rule, Queue),
    /// Waits until what was measured is found to be well again, which is the beginning of its end.
    Clears(Rule, Queue),
    /// Waits until it is over.
    Resolves(Rule, Queue),
    /// Turns the clock of the demo's own store ahead, in place of waiting.
    TurnClock,
}

/// Where a reader may look for more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A command of ours, without the server.
    Command(&'static str),
    /// The same about a message, whose id follows.
    About(&'static str, String),
    /// A page of the server.
    Page(&'static str),
}

/// Steps that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chapter {
    pub(super) title: &'static str,
    pub(super) why: &'static str,
    pub(super) steps: Vec<Step>,
    pub(super) look: Vec<Look>,
}

/// The story, and how many orders are in it.
pub(super) fn story(seed: u64) -> (Vec<Chapter>, u32) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut order = |queue, number| Order::new(queue, number, &mut dice);
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|number| order(Queue::Orders, number));
    let (payment, fax) = (order(Queue::Payments, 1), order(Queue::Faxes, 1));
    let chapters = vec![
        sent(first.clone()),
        repeated(first),
        failed(second),
        lost(third, payment.clone(), fax.clone()),
        refused(fourth.clone()),
        alerted(),
        mended(fourth.key, fax.key),
        later(payment.key),
    ];
    (chapters, 4)
}

fn sent(order: Order) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "An order is sent",
        why: "201 says that it is on the disk. From then on Ichido sees to it, whatever becomes of the caller.",
        steps: vec![Step::Send(order, None), Step::Ends(key.clone(), Sight::Sent)],
        look: vec![Look::About("ichido messages show", key)],
    }
}

fn repeated(order: Order) -> Chapter {
    let other = order.other();
    Chapter {
        title: "The same key again",
        why: "Who got no answer sends the same again and gets the first one. Another request is refused.",
        steps: vec![Step::Send(order, Some(Sight::Replayed)), Step::Send(other, Some(Sight::Refused))],
        look: vec![],
    }
}

fn failed(order: Order) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "The broker is down",
        why: "A failure that may mend itself is tried again, after waits that grow.",
        steps: vec![
            Step::Broker(Mood::Down),
            Step::Send(order, None),
            Step::Fails(key.clone()),
            Step::Broker(Mood::Well),
            Step::Ends(key.clone(), Sight::Retried),
        ],
        look: vec![Look::About("ichido messages show", key)],
    }
}

fn lost(order: Order, payment: Order, fax: Order) -> Chapter {
    let keys = [&order, &payment, &fax].map(|order| order.key.clone());
    let [key, paid, faxed] = keys;
    Chapter {
        title: "Answers get lost",
        why: "Was it done? Who honours keys may be called again. Of others nobody knows: nothing is guessed.",
        steps: vec![
            Step::Broker(Mood::Mute),
            Step::Send(order, None),
            Step::Send(payment, None),
            Step::Send(fax, None),
            Step::Fails(key.clone()),
            Step::Broker(Mood::Well),
            Step::Ends(key, Sight::LostAndDoneOnce),
            Step::Ends(paid, Sight::Parked),
            Step::Ends(faxed, Sight::Parked),
        ],
        look: vec![Look::Command("ichido dead list --parked")],
    }
}

fn refused(order: Order) -> Chapter {
    let key = order.key.clone();
    Chapter {
        title: "An order that no retry mends",
        why: "What is refused as wrong is not tried again: it is a dead letter, and waits for a person.",
        steps: vec![
            Step::Broker(Mood::Picky),
            Step::Send(order, None),
            Step::Ends(key, Sight::Dead),
            Step::Broker(Mood::Well),
        ],
        look: vec![Look::Command("ichido dead list")],
    }
}

fn alerted() -> Chapter {
    Chapter {
        title: "Somebody is told",
        why: "One worker looks every ten seconds; each trouble is one incident, however long it lasts.",
        steps: vec![Step::Opens(Rule::DeadLetter, Queue::Orders), Step::Opens(Rule::Parked, Queue::Faxes)],
        look: vec![Look::Command("ichido alerts"), Look::Page("/v1/alerts?state=firing")],
    }
}

fn mended(dead: String, parked: String) -> Chapter {
    Chapter {
        title: "A person mends it",
        why: "The broker takes orders again: the dead letter is sent again. The fax arrived, says who got it.",
        steps: vec![
            Step::Requeue(dead.clone()),
            Step::Ends(dead.clone(), Sight::Requeued),
            Step::Decide(parked.clone()),
            Step::Ends(parked, Sight::Decided),
        ],
        look: vec![Look::About("ichido messages show", dead)],
    }
}

fn later(paid: String) -> Chapter {
    Chapter {
        title: "A few minutes later",
        why: "When no call can still be on its way, the office is asked about the payment. Alerts end.",
        steps: vec![
            Step::TurnClock,
            Step::Ends(paid, Sight::AskedAfter),
            // An alert is over when it has been clear for a while: were the clock turned before, the while would only begin.
            Step::Clears(Rule::DeadLetter, Queue::Orders),
            Step::Clears(Rule::Parked, Queue::Faxes),
            Step::TurnClock,
            Step::Resolves(Rule::DeadLetter, Queue::Orders),
            Step::Resolves(Rule::Parked, Queue::Faxes),
        ],
        look: vec![Look::Command("ichido alerts --all"), Look::Command("ichido queues list")],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sights(step: &Step) -> Option<Sight> {
        match step {
            Step::Send(_, sight) => *sight,
            Step::Ends(_, sight) => Some(*sight),
            Step::Opens(..) => Some(Sight::AlertOpened),
            Step::Resolves(..) => Some(Sight::AlertResolved),
            Step::Broker(_)
            | Step::Fails(_)
            | Step::Requeue(_)
            | Step::Decide(_)
            | Step::Clears(..)
            | Step::TurnClock => None,
        }
    }

    #[test]
    fn the_same_seed_tells_the_same_story_and_another_one_another() {
        assert_eq!(story(7), story(7));
        assert_ne!(story(7), story(8));
    }

    #[test]
    fn the_story_shows_every_sight() {
        let (chapters, _) = story(1);
        let shown: BTreeSet<Sight> =
            chapters.iter().flat_map(|chapter| &chapter.steps).filter_map(sights).collect();
        let all = BTreeSet::from(Sight::ALL);
        assert_eq!(shown, all);
    }

    #[test]
    fn nothing_is_waited_for_that_was_not_sent_and_the_broker_is_well_at_the_end() {
        let (chapters, orders) = story(1);
        let (mut sent, mut mood) = (BTreeSet::new(), Mood::Well);
        for step in chapters.iter().flat_map(|chapter| &chapter.steps) {
            match step {
                Step::Broker(now) => mood = *now,
                // A key that was used before is what is to be seen.
                Step::Send(order, seen) => {
                    assert_ne!(sent.insert(order.key.clone()), seen.is_some(), "{order:?}");
                }
                Step::Fails(key) | Step::Ends(key, _) | Step::Requeue(key) | Step::Decide(key) => {
                    assert!(sent.contains(key), "{key}");
                }
                Step::Opens(..) | Step::Clears(..) | Step::Resolves(..) | Step::TurnClock => (),
            }
        }
        assert_eq!(mood, Mood::Well);
        assert_eq!(sent.iter().filter(|key| key.starts_with("order-")).count(), orders as usize);
    }
}
