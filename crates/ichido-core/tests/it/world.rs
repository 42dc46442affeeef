//! One message in an honest but unreliable environment, explored exhaustively.
//!
//! A call, once started, lands or is lost at any time while it is in transit. Workers are refused, lose responses and
//! die; receivers answer truthfully when asked; a person decides truthfully and requeues whatever may be requeued. In
//! every reachable scenario, what must happen once happens at most once, and no statement is false.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Decision, Event, Failure, Reconciled, StartMark, State};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;

/// How long a call may be in transit, and how long the scenario lasts, in seconds.
const TRAVEL: i64 = 2;
const END: i64 = 4;
const MAX_CLAIMS: u64 = 3;
/// Far above what is reached (some ten thousand), so a mistake in the model cannot run forever.
const MAX_SCENARIOS: usize = 400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scenario {
    state: State,
    now: i64,
    claims: u64,
    /// How often the work took effect.
    effects: u8,
    /// A call in transit lands before this time, if it lands.
    travelling: Option<i64>,
    /// Whether the current holder has called.
    called: bool,
    /// Whether any holder has called.
    ever_called: bool,
}

#[derive(Clone, Copy)]
struct Assumptions {
    safety: Safety,
    start_mark: StartMark,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

impl Scenario {
    const START: i64 = 0;

    fn new() -> Self {
        let state = State::queued(at(Self::START), NonZeroU32::new(2).expect("two tries"));
        let (effects, called) = (0, false);
        Self { state, now: Self::START, claims: 0, effects, travelling: None, called, ever_called: called }
    }

    /// Returns the scenario after an event, if the message accepts it.
    fn after(self, event: Event, change: impl Fn(&mut Self)) -> Option<Self> {
        let (first, second) = self.state.advance(event, at(self.now)).ok()?;
        let mut next = Self { state: second.unwrap_or(first), ..self };
        change(&mut next);
        Some(next)
    }

    fn is_suspect(&self) -> bool {
        matches!(self.state, State::Queued { history, .. } | State::Failed { history, .. } if history.suspect)
    }

    /// A second call while one is in transit: the first counts as landed, the worst case.
    fn call(&mut self) {
        (self.called, self.ever_called) = (true, true);
        if self.travelling.replace(self.now + TRAVEL).is_some() {
            self.effects += 1;
        }
    }

    fn next(self, assumptions: Assumptions) -> Vec<(&'static str, Scenario)> {
        let mut scenarios = Vec::new();
        let mut add =
            |name, scenario: Option<Scenario>| scenarios.extend(scenario.map(|scenario| (name, scenario)));
        let fence = Fence::new(self.claims + 1).expect("a small number");
        // The call of a suspect always gets a start mark.
        let start_mark = if self.is_suspect() { StartMark::NotYet } else { assumptions.start_mark };
        add(
            "claim",
            self.after(Event::Claimed { fence, start_mark }, |next| {
                (next.claims, next.called) = (next.claims + 1, false);
            }),
        );
        if let State::Sending { fence, start_mark, .. } = self.state {
            self.at_work(assumptions, fence, start_mark, &mut add);
        }
        if self.travelling.is_some() {
            add("lands", Some(Scenario { travelling: None, effects: self.effects + 1, ..self }));
            add("vanishes", Some(Scenario { travelling: None, ..self }));
        }
        self.answered_late(&mut add);
        let found =
            if self.effects > 0 { Reconciled::Done } else { Reconciled::NotDone { due: at(self.now) } };
        add("reconciled", self.after(Event::Reconciled(found), |_| ()));
        if self.travelling.is_none() {
            let truth = if self.effects > 0 { Decision::Done } else { Decision::NotDone };
            add("decided", self.after(Event::Decided(truth), |_| ()));
        }
        add("given up", self.after(Event::Decided(Decision::GiveUp), |_| ()));
        add("requeued", self.after(Event::Requeued { allowed: true, safety: assumptions.safety }, |_| ()));
        add("cancelled", self.after(Event::Cancelled, |_| ()));
        // A parked message waits until its call can no longer be in transit, even past the end.
        let waits = match self.state {
            State::Parked { history } => {
                history.doubt.is_some_and(|doubt| at(self.now) < doubt.in_flight_until)
            }
            _ => false,
        };
        if (self.now < END || waits) && self.travelling.is_none_or(|until| self.now + 1 < until) {
            add("a second passes", Some(Scenario { now: self.now + 1, ..self }));
        }
        scenarios
    }

    /// A response to the first claim, if the current holder did not do the work.
    fn answered_late(self, add: &mut impl FnMut(&'static str, Option<Scenario>)) {
        let by_the_holder = matches!(self.state, State::Sending { .. }) && self.called;
        let earlier = !by_the_holder || self.travelling.is_some();
        if 0 < self.effects && earlier {
            let fence = Fence::new(1).expect("a small number");
            add("answered late", self.after(Event::LateSuccess { fence }, |_| ()));
        }
    }

    /// What can happen to a worker that holds the message.
    fn at_work(
        self,
        assumptions: Assumptions,
        fence: Fence,
        start_mark: StartMark,
        add: &mut impl FnMut(&'static str, Option<Scenario>),
    ) {
        let now = at(self.now);
        let in_flight_until = at(self.now + TRAVEL);
        let failed = |failure, effect| Event::Failed {
            fence,
            failure,
            effect,
            safety: assumptions.safety,
            in_flight_until,
        };
        let again = Failure::Retry { due: now };
        if !self.called {
            add("given back", self.after(Event::GivenBack { fence, due: now }, |_| ()));
            add("stopped before the call", self.after(Event::Stopped { fence }, |_| ()));
            if start_mark == StartMark::NotYet {
                add("begins", self.after(Event::Started { fence }, Scenario::call));
            } else {
                let mut calling = self;
                calling.call();
                add("calls", Some(calling));
            }
        } else if self.travelling.is_some() {
            // A clean refusal is possible only if the call has not landed and never will.
            let refused = |next: &mut Scenario| next.travelling = None;
            add("refused", self.after(failed(again, Effect::NotDone), refused));
            add("stopped on request", self.after(Event::Stopped { fence }, refused));
            add("refused for good", self.after(failed(Failure::Permanent, Effect::NotDone), refused));
        }
        if self.called {
            add("lost", self.after(failed(again, Effect::Unknown), |_| ()));
            add("unclear for good", self.after(failed(Failure::Permanent, Effect::Unknown), |_| ()));
            add("unclear", self.after(failed(Failure::InDoubt, Effect::Unknown), |_| ()));
            if self.travelling.is_none() && self.effects > 0 {
                add("succeeded", self.after(Event::Succeeded { fence }, |_| ()));
            }
        }
        for (name, alone) in [("died alone", true), ("died in a batch", false)] {
            let died =
                Event::WorkerDied { fence, alone, safety: assumptions.safety, due: now, in_flight_until };
            add(name, self.after(died, |_| ()));
        }
    }

    /// Returns what is wrong with this scenario, if anything is.
    fn violation(self, assumptions: Assumptions) -> Option<&'static str> {
        let happened = 0 < self.effects;
        // Without marks, and if a repetition could apply it twice, a message whose worker died may have been called.
        let is_known = assumptions.start_mark == StartMark::NotYet || assumptions.safety != Safety::None;
        match self.state {
            State::Dead { .. } | State::Parked { .. } if !self.ever_called && is_known => {
                Some("it was never called, but is dead")
            }
            _ if 1 < self.effects && assumptions.safety == Safety::None => Some("the work was done twice"),
            State::Sent if !happened => Some("it says sent, and nothing was done"),
            State::Dead { effect: Effect::NotDone, .. }
            | State::Cancelled { effect: Effect::NotDone, .. }
                if happened =>
            {
                Some("it says not done, and it was")
            }
            State::Queued { history, .. } if !history.has_attempts_left() => {
                Some("it waits for an attempt that it does not have")
            }
            State::Parked { history } if history.doubt.is_none() => Some("it is parked without a doubt"),
            _ => None,
        }
    }
}

/// Explores every reachable scenario, each with the path to it.
fn explore(assumptions: Assumptions) -> usize {
    let key = |scenario: &Scenario| format!("{scenario:?}");
    let mut paths: HashMap<String, Vec<&'static str>> = HashMap::from([(key(&Scenario::new()), Vec::new())]);
    let mut open = VecDeque::from([Scenario::new()]);
    while let Some(scenario) = open.pop_front() {
        let path = paths[&key(&scenario)].clone();
        assert!(paths.len() < MAX_SCENARIOS, "the model does not end");
        if let Some(violation) = scenario.violation(assumptions) {
            panic!("{violation}: {:?}, {:?}, by {path:?}", assumptions.safety, assumptions.start_mark);
        }
        let next = scenario.next(assumptions);
        assert!(!next.is_empty() || scenario.state.is_final(), "stuck: {scenario:?}, by {path:?}");
        for (name, next) in next.into_iter().filter(|(_, next)| next.claims <= MAX_CLAIMS) {
            paths.entry(key(&next)).or_insert_with(|| {
                open.push_back(next);
                path.iter().copied().chain([name]).collect()
            });
        }
    }
    paths.len()
}

#[test]
fn every_world_has_one_effect_and_true_reports() {
    for safety in [Safety::None, Safety::Keyed, Safety::Idempotent] {
        for start_mark in [StartMark::NotYet, StartMark::NotTracked] {
            let scenarios = explore(Assumptions { safety, start_mark });
            assert!(1_000 < scenarios, "{safety:?}, {start_mark:?}: only {scenarios} worlds were reached");
        }
    }
}
