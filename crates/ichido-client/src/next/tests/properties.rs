//! What holds for every run of tries, whatever the server does.

use std::time::Duration;

use ichido_core::retry::BudgetSettings;
use ichido_core::verdict::{Answer, Echo, NetworkFault};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::*;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// What a server did with one try.
#[derive(Clone, Debug)]
enum Came {
    Fault(NetworkFault),
    Answer { status: u16, retry_after: Option<u64>, processing: bool, replayed: bool, body: &'static str },
}

impl Came {
    fn see<T>(&self, look: impl FnOnce(&Seen<'_>) -> T) -> T {
        match self {
            Self::Fault(fault) => look(&Seen::Network(*fault)),
            Self::Answer { status, retry_after, processing, replayed, body } => {
                let seconds = retry_after.map(|seconds| seconds.to_string());
                let mut headers: Vec<(&str, &[u8])> = Vec::new();
                headers.extend(seconds.as_ref().map(|seconds| ("Retry-After", seconds.as_bytes())));
                headers.extend(processing.then_some(("Idempotency-Status", &b"processing"[..])));
                headers.extend(replayed.then_some(("Idempotency-Replayed", &b"true"[..])));
                let body = body.as_bytes();
                look(&Seen::Answer(Answer { status: *status, headers: &headers, body, echo: Echo::Absent }))
            }
        }
    }

    /// Whether it proves that nothing was done by this one try, read off the wire and not out of a table.
    fn proves_not_done(&self) -> bool {
        match self {
            Self::Fault(fault) => !fault.may_have_arrived(),
            Self::Answer { status, .. } => *status == 429,
        }
    }

    fn asked_for(&self) -> Duration {
        match self {
            Self::Answer { retry_after: Some(seconds), .. } => Duration::from_secs(*seconds),
            Self::Answer { .. } | Self::Fault(_) => Duration::ZERO,
        }
    }
}

fn came() -> impl Strategy<Value = Came> {
    use NetworkFault as Fault;
    let faults = vec![
        Fault::NameNotResolved,
        Fault::ConnectRefused,
        Fault::ConnectTimeout,
        Fault::Tls,
        Fault::StreamRefused,
        Fault::HeldBack,
        Fault::ClosedUnused,
        Fault::Timeout,
        Fault::Broken,
        Fault::AnswerCut,
    ];
    let bodies = vec![
        "",
        r#"{"code":"key_in_flight"}"#,
        r#"{"code":"key_conflict"}"#,
        r#"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#,
    ];
    // Those that are tried again come up as often as all others together. A 1xx is no answer: it announces one.
    let status = prop_oneof![select(vec![202_u16, 408, 409, 422, 429, 500, 503]), 200_u16..1000];
    let after = proptest::option::of(0_u64..200);
    let answer = (status, after, any::<bool>(), proptest::bool::weighted(0.1), select(bodies));
    let answer = answer.prop_map(|(status, retry_after, processing, replayed, body)| Came::Answer {
        status,
        retry_after,
        processing,
        replayed,
        body,
    });
    prop_oneof![select(faults).prop_map(Came::Fault), answer]
}

fn rules() -> impl Strategy<Value = Rules> {
    let profile = select(vec![Profile::Ichido, Profile::Ietf, Profile::Stripe]);
    (profile, 1_u32..8, 0_u64..90).prop_map(|(profile, tries, retry_after_max)| Rules {
        retry: Retry { tries: NonZeroU32::new(tries).unwrap_or(NonZeroU32::MIN), ..Retry::CLIENT },
        retry_after_max: Duration::from_secs(retry_after_max),
        profile,
    })
}

/// One decision of a run: what was seen, when, and what came of it.
struct Step<'a> {
    came: &'a Came,
    moment: Moment,
    decided: Decided,
}

/// Tries one after the other, until the client ends it or the server has nothing more to say.
fn run<'a>(rules: &Rules, safety: Safety, came: &'a [Came], left: Duration, dice: f64) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let mut tries = Tries::NONE;
    let mut moment = Moment { now: NOW, left, budget: None };
    for came in came {
        let decided = came.see(|seen| decide(rules, safety, tries, seen, moment, dice));
        steps.push(Step { came, moment, decided });
        let Next::Again { wait, tries: so_far } = decided.next else { break };
        tries = so_far;
        moment = Moment { now: moment.now.plus(wait), left: moment.left.saturating_sub(wait), ..moment };
    }
    steps
}

proptest! {
    #[test]
    fn without_a_key_nothing_is_sent_again_without_proof(
        rules in rules(),
        came in proptest::collection::vec(came(), 1..12),
        dice in 0.0..1.0,
    ) {
        for Step { came, decided, .. } in run(&rules, Safety::Neither, &came, Duration::from_hours(1), dice) {
            if let Next::Again { tries, .. } = decided.next {
                prop_assert!(came.proves_not_done(), "sent again after {:?}", came);
                prop_assert_eq!(tries.effect, Effect::NotDone);
            }
        }
    }

    /// But for an outcome that the server keeps under the key: without a key there is none to keep.
    #[test]
    fn a_key_never_makes_it_less_likely_to_be_sent_again(
        rules in rules(),
        came in came().prop_filter("nothing is kept", |came| !matches!(came, Came::Answer { replayed: true, .. })),
        dice in 0.0..1.0,
    ) {
        let left = Duration::from_hours(1);
        let next = |safety| run(&rules, safety, std::slice::from_ref(&came), left, dice)[0].decided.next;
        if let again @ Next::Again { .. } = next(Safety::Neither) {
            prop_assert_eq!(next(Safety::Keyed), again);
        }
    }

    #[test]
    fn no_wait_is_shorter_than_asked_for_nor_ends_past_the_deadline_nor_are_there_more_tries_than_allowed(
        rules in rules(),
        came in proptest::collection::vec(came(), 1..12),
        left in 0_u64..120,
        dice in 0.0..1.0,
    ) {
        for Step { came, moment, decided } in run(&rules, Safety::Keyed, &came, Duration::from_secs(left), dice) {
            if let Next::Again { wait, tries } = decided.next {
                prop_assert!(came.asked_for() <= wait);
                prop_assert!(came.asked_for() <= rules.retry_after_max);
                prop_assert!(wait < moment.left);
                prop_assert!(tries.failed < rules.retry.tries.get());
            }
        }
    }

    #[test]
    fn only_what_a8_and_c6_allow_is_sent_again(rules in rules(), came in came(), dice in 0.0..1.0) {
        let steps = run(&rules, Safety::Keyed, std::slice::from_ref(&came), Duration::from_hours(1), dice);
        let allowed = match &came {
            Came::Fault(_) => true,
            Came::Answer { status: 408 | 429 | 500..=599, replayed, .. } => !replayed,
            Came::Answer { status: 202, processing, .. } => *processing,
            Came::Answer { status: 409, .. } => rules.profile != Profile::Ichido,
            Came::Answer { .. } => false,
        };
        let is_again = matches!(steps[0].decided.next, Next::Again { .. });
        prop_assert!(allowed || !is_again);
    }

    /// A hundred calls, one after the other, with one budget.
    #[test]
    fn retries_are_no_more_than_were_saved_up_and_earned(
        rules in rules(),
        calls in proptest::collection::vec(proptest::collection::vec(came(), 1..6), 1..100),
        capacity in 0_u32..2_000,
        earned_per_success in 0_u32..200,
    ) {
        let settings = BudgetSettings { capacity, earned_per_success };
        let mut budget = Some(Budget::full(settings));
        let (mut retries, mut successes) = (0_u32, 0_u32);
        for came in calls {
            let mut tries = Tries::NONE;
            for came in came {
                let moment = Moment { now: NOW, left: Duration::from_hours(1), budget };
                let decided = came.see(|seen| decide(&rules, Safety::Keyed, tries, seen, moment, 0.0));
                budget = decided.budget;
                successes += u32::from(decided.next == Next::Done && tries.failed == 0);
                let Next::Again { tries: so_far, .. } = decided.next else { break };
                retries += so_far.failed - tries.failed;
                tries = so_far;
            }
        }
        prop_assert!(100 * retries <= capacity + successes * earned_per_success);
    }
}
