//! One message in an honest but unreliable world, explored exhaustively.
//!
//! A call, once begun, lands or vanishes at any time while it travels. Workers are refused, lose answers and die;
//! receivers answer truthfully when asked; a person decides truthfully and requeues whatever may be requeued. In every
//! world that can be reached, what must happen once happens at most once, and nothing that is said is false.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use ichido_core::fence::Fence;
use ichido_core::lifecycle::{Begun, Decision, Event, Failure, Found, State};
use ichido_core::retry::Safety;
use ichido_core::time::Timestamp;
use ichido_core::verdict::Effect;

/// How long a call may travel, and how long the world lasts, in seconds.
const TRAVEL: i64 = 2;
const END: i64 = 4;
const CLAIMS_MAX: u64 = 3;
/// Far above what is reached (some ten thousand), so that a mistake in the model cannot run for ever.
const WORLDS_MAX: usize = 400_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct World {
    state: State,
    now: i64,
    claims: u64,
    /// How often the work took effect.
    effects: u8,
    /// A call under way lands before this moment, if it lands.
    travelling: Option<i64>,
    /// Whether the present holder has called.
    called: bool,
    /// Whether anybody has called.
    ever_called: bool,
}

#[derive(Clone, Copy)]
struct Terms {
    safety: Safety,
    begun: Begun,
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

impl World {
    const START: i64 = 0;

    fn new() -> Self {
        let state = State::queued(at(Self::START), NonZeroU32::new(2).expect("two tries"));
        let (effects, called) = (0, false);
        Self { state, now: Self::START, claims: 0, effects, travelling: None, called, ever_called: called }
    }

    /// The world after an event, if the message takes it.
    fn after(self, event: Event, change: impl Fn(&mut Self)) -> Option<Self> {
        let (first, second) = self.state.advance(event, at(self.now)).ok()?;
        let mut next = Self { state: second.unwrap_or(first), ..self };
        change(&mut next);
        Some(next)
    }

    fn is_suspect(&self) -> bool {
        matches!(self.state, State::Queued { history, .. } | State::Failed { history, .. } if history.suspect)
    }

    /// A second call while one travels: the first is counted as landed, the worst that can happen.
    fn call(&mut self) {
        (self.called, self.ever_called) = (true, true);
        if self.travelling.replace(self.now + TRAVEL).is_some() {
            self.effects += 1;
        }
    }

    fn next(self, terms: Terms) -> Vec<(&'static str, World)> {
        let mut worlds = Vec::new();
        let mut add = |name, world: Option<World>| worlds.extend(world.map(|world| (name, world)));
        let fence = Fence::new(self.claims + 1).expect("a small number");
        // The call of a suspect is always marked.
        let begun = if self.is_suspect() { Begun::NotYet } else { terms.begun };
        add(
            "claim",
            self.after(Event::Claimed { fence, begun }, |next| {
                (next.claims, next.called) = (next.claims + 1, false);
            }),
        );
        if let State::Sending { fence, begun, .. } = self.state {
            self.at_work(terms, fence, begun, &mut add);
        }
        if self.travelling.is_some() {
            add("lands", Some(World { travelling: None, effects: self.effects + 1, ..self }));
            add("vanishes", Some(World { travelling: None, ..self }));
        }
        self.answered_late(&mut add);
        let found = if self.effects > 0 { Found::Done } else { Found::NotDone { due: at(self.now) } };
        add("reconciled", self.after(Event::Reconciled(found), |_| ()));
        if self.travelling.is_none() {
            let truth = if self.effects > 0 { Decision::WasDone } else { Decision::SendAgain };
            add("decided", self.after(Event::Decided(truth), |_| ()));
        }
        add("given up", self.after(Event::Decided(Decision::GiveUp), |_| ()));
        add("requeued", self.after(Event::Requeued { allowed: true, safety: terms.safety }, |_| ()));
        add("cancelled", self.after(Event::Cancelled, |_| ()));
        // A parked message waits until its call can no longer be travelling, even past the end.
        let waits = match self.state {
            State::Parked { history } => {
                history.doubt.is_some_and(|doubt| at(self.now) < doubt.travels_until)
            }
            _ => false,
        };
        if (self.now < END || waits) && self.travelling.is_none_or(|until| self.now + 1 < until) {
            add("a second passes", Some(World { now: self.now + 1, ..self }));
        }
        worlds
    }

    /// An answer to the first claim, if what was done was not done by the present holder.
    fn answered_late(self, add: &mut impl FnMut(&'static str, Option<World>)) {
        let by_the_holder = matches!(self.state, State::Sending { .. }) && self.called;
        let earlier = !by_the_holder || self.travelling.is_some();
        if 0 < self.effects && earlier {
            let fence = Fence::new(1).expect("a small number");
            add("answered late", self.after(Event::LateSuccess { fence }, |_| ()));
        }
    }

    /// What a worker that holds the message may do or suffer.
    fn at_work(
        self,
        terms: Terms,
        fence: Fence,
        begun: Begun,
        add: &mut impl FnMut(&'static str, Option<World>),
    ) {
        let now = at(self.now);
        let travels_until = at(self.now + TRAVEL);
        let failed =
            |failure, effect| Event::Failed { fence, failure, effect, safety: terms.safety, travels_until };
        let again = Failure::Again { due: now };
        if !self.called {
            add("given back", self.after(Event::GivenBack { fence, due: now }, |_| ()));
            if begun == Begun::NotYet {
                add("begins", self.after(Event::Began { fence }, World::call));
            } else {
                let mut calling = self;
                calling.call();
                add("calls", Some(calling));
            }
        } else if self.travelling.is_some() {
            // A clean refusal is possible only when the call has not landed and never will.
            let refused = |next: &mut World| next.travelling = None;
            add("refused", self.after(failed(again, Effect::NotDone), refused));
            add("refused for good", self.after(failed(Failure::ForGood, Effect::NotDone), refused));
        }
        if self.called {
            add("lost", self.after(failed(again, Effect::Unknown), |_| ()));
            add("unclear for good", self.after(failed(Failure::ForGood, Effect::Unknown), |_| ()));
            add("unclear", self.after(failed(Failure::InDoubt, Effect::Unknown), |_| ()));
            if self.travelling.is_none() && self.effects > 0 {
                add("succeeded", self.after(Event::Succeeded { fence }, |_| ()));
            }
        }
        for (name, alone) in [("died alone", true), ("died in a batch", false)] {
            let died = Event::WorkerDied { fence, alone, safety: terms.safety, due: now, travels_until };
            add(name, self.after(died, |_| ()));
        }
    }

    /// What is wrong with this world, if anything is.
    fn fault(self, terms: Terms) -> Option<&'static str> {
        let happened = 0 < self.effects;
        // Without marks, and where a repetition could do it twice, a message whose worker died may have been called.
        let is_known = terms.begun == Begun::NotYet || terms.safety != Safety::Neither;
        match self.state {
            State::Dead { .. } | State::Parked { .. } if !self.ever_called && is_known => {
                Some("it was never called, and is given up")
            }
            _ if 1 < self.effects && terms.safety == Safety::Neither => Some("the work was done twice"),
            State::Sent if !happened => Some("it says sent, and nothing was done"),
            State::Dead { effect: Effect::NotDone, .. }
            | State::Cancelled { effect: Effect::NotDone, .. }
                if happened =>
            {
                Some("it says not done, and it was")
            }
            State::Queued { history, .. } if !history.may_try_again() => {
                Some("it waits for a try it does not have")
            }
            State::Parked { history } if history.doubt.is_none() => Some("it is parked without a doubt"),
            _ => None,
        }
    }
}

/// Every world that can be reached, each with the way there.
fn explore(terms: Terms) -> usize {
    let key = |world: &World| format!("{world:?}");
    let mut ways: HashMap<String, Vec<&'static str>> = HashMap::from([(key(&World::new()), Vec::new())]);
    let mut open = VecDeque::from([World::new()]);
    while let Some(world) = open.pop_front() {
        let way = ways[&key(&world)].clone();
        assert!(ways.len() < WORLDS_MAX, "the model does not end");
        if let Some(fault) = world.fault(terms) {
            panic!("{fault}: {:?}, {:?}, by {way:?}", terms.safety, terms.begun);
        }
        let next = world.next(terms);
        assert!(!next.is_empty() || world.state.is_final(), "stuck: {world:?}, by {way:?}");
        for (name, next) in next.into_iter().filter(|(_, next)| next.claims <= CLAIMS_MAX) {
            ways.entry(key(&next)).or_insert_with(|| {
                open.push_back(next);
                way.iter().copied().chain([name]).collect()
            });
        }
    }
    ways.len()
}

#[test]
fn in_every_world_the_effect_happens_once_and_what_is_said_is_true() {
    for safety in [Safety::Neither, Safety::Keyed, Safety::Repeatable] {
        for begun in [Begun::NotYet, Begun::NotTracked] {
            let worlds = explore(Terms { safety, begun });
            assert!(1_000 < worlds, "{safety:?}, {begun:?}: only {worlds} worlds were reached");
        }
    }
}
