//! Properties of every sequence of attempts, whatever the server does.

use std::time::Duration;

use ichido_core::retry::BudgetSettings;
use ichido_core::verdict::{Echo, HttpResponse, NetworkFault};
use proptest::prelude::*;
use proptest::sample::select;

use super::super::*;

const NOW: Timestamp = Timestamp::from_secs(1_800_000_000);

/// The reaction of a server to one attempt.
#[derive(Clone, Debug)]
enum ServerReaction {
    Fault(NetworkFault),
    Answer { status: u16, retry_after: Option<u64>, processing: bool, replayed: bool, body: &'static str },
}

impl ServerReaction {
    fn see<T>(&self, look: impl FnOnce(&AttemptResponse<'_>) -> T) -> T {
        match self {
            Self::Fault(fault) => look(&AttemptResponse::Network(*fault)),
            Self::Answer { status, retry_after, processing, replayed, body } => {
                let seconds = retry_after.map(|seconds| seconds.to_string());
                let mut headers: Vec<(&str, &[u8])> = Vec::new();
                headers.extend(seconds.as_ref().map(|seconds| ("Retry-After", seconds.as_bytes())));
                headers.extend(processing.then_some(("Idempotency-Status", &b"processing"[..])));
                headers.extend(replayed.then_some(("Idempotency-Replayed", &b"true"[..])));
                let body = body.as_bytes();
                look(&AttemptResponse::Http(HttpResponse {
                    status: *status,
                    headers: &headers,
                    body,
                    echo: Echo::Absent,
                }))
            }
        }
    }

    /// Whether this attempt alone proves that nothing was done, read from the response and not from a table.
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

fn reaction() -> impl Strategy<Value = ServerReaction> {
    use NetworkFault as Fault;
    let faults = vec![
        Fault::NameNotResolved,
        Fault::ConnectRefused,
        Fault::ConnectTimeout,
        Fault::Tls,
        Fault::StreamRefused,
        Fault::NotSent,
        Fault::ClosedUnused,
        Fault::Timeout,
        Fault::Broken,
        Fault::ResponseCut,
    ];
    let bodies = vec![
        "",
        r#"{"code":"key_in_flight"}"#,
        r#"{"code":"key_conflict"}"#,
        r#"{"error":{"type":"idempotency_error","code":"idempotency_key_in_use"}}"#,
    ];
    // Retried statuses occur as often as all others together. A 1xx is not a response: it announces one.
    let status = prop_oneof![select(vec![202_u16, 408, 409, 422, 429, 500, 503]), 200_u16..1000];
    let after = proptest::option::of(0_u64..200);
    let answer = (status, after, any::<bool>(), proptest::bool::weighted(0.1), select(bodies));
    let answer = answer.prop_map(|(status, retry_after, processing, replayed, body)| {
        ServerReaction::Answer { status, retry_after, processing, replayed, body }
    });
    prop_oneof![select(faults).prop_map(ServerReaction::Fault), answer]
}

fn rules() -> impl Strategy<Value = RetryRules> {
    let profile = select(Profile::ALL.to_vec());
    (profile, 1_u32..8, 0_u64..90).prop_map(|(profile, attempts, max_retry_after)| RetryRules {
        retry: Retry { max_attempts: NonZeroU32::new(attempts).unwrap_or(NonZeroU32::MIN), ..Retry::CLIENT },
        max_retry_after: Duration::from_secs(max_retry_after),
        profile,
    })
}

/// One decision of a run: the server's reaction, the context and the result.
struct RecordedDecision<'a> {
    reaction: &'a ServerReaction,
    context: DecisionContext,
    decided: Decision,
}

/// Makes attempts until the client stops or the reactions run out.
fn run<'a>(
    rules: &RetryRules,
    safety: Safety,
    reaction: &'a [ServerReaction],
    left: Duration,
    dice: f64,
) -> Vec<RecordedDecision<'a>> {
    let mut steps = Vec::new();
    let mut attempts = AttemptHistory::NONE;
    let mut context = DecisionContext { now: NOW, left, budget: None };
    for reaction in reaction {
        let decided = reaction.see(|seen| decide(rules, safety, attempts, seen, context, dice));
        steps.push(RecordedDecision { reaction, context, decided });
        let NextStep::Retry { wait, attempts: so_far } = decided.next else { break };
        attempts = so_far;
        context = DecisionContext {
            now: context.now.plus(wait),
            left: context.left.saturating_sub(wait),
            ..context
        };
    }
    steps
}

proptest! {
    #[test]
    fn unkeyed_request_is_not_retried_without_proof(
        rules in rules(),
        reaction in proptest::collection::vec(reaction(), 1..12),
        dice in 0.0..1.0,
    ) {
        for RecordedDecision { reaction, decided, .. } in run(&rules, Safety::None, &reaction, Duration::from_hours(1), dice) {
            if let NextStep::Retry { attempts, .. } = decided.next {
                prop_assert!(reaction.proves_not_done(), "sent again after {:?}", reaction);
                prop_assert_eq!(attempts.effect, Effect::NotDone);
            }
        }
    }

    /// Except for an outcome that the server stores under the key: without a key it stores none.
    #[test]
    fn key_never_prevents_a_retry(
        rules in rules(),
        reaction in reaction().prop_filter("nothing is kept", |reaction| !matches!(reaction, ServerReaction::Answer { replayed: true, .. })),
        dice in 0.0..1.0,
    ) {
        let left = Duration::from_hours(1);
        let next = |safety| run(&rules, safety, std::slice::from_ref(&reaction), left, dice)[0].decided.next;
        if let again @ NextStep::Retry { .. } = next(Safety::None) {
            prop_assert_eq!(next(Safety::Keyed), again);
        }
    }

    #[test]
    fn waits_and_attempts_stay_within_all_limits(
        rules in rules(),
        reaction in proptest::collection::vec(reaction(), 1..12),
        left in 0_u64..120,
        dice in 0.0..1.0,
    ) {
        for RecordedDecision { reaction, context, decided } in run(&rules, Safety::Keyed, &reaction, Duration::from_secs(left), dice) {
            if let NextStep::Retry { wait, attempts } = decided.next {
                prop_assert!(reaction.asked_for() <= wait);
                prop_assert!(reaction.asked_for() <= rules.max_retry_after);
                prop_assert!(wait < context.left);
                prop_assert!(attempts.failed < rules.retry.max_attempts.get());
            }
        }
    }

    #[test]
    fn only_retryable_results_are_retried(rules in rules(), reaction in reaction(), dice in 0.0..1.0) {
        let steps = run(&rules, Safety::Keyed, std::slice::from_ref(&reaction), Duration::from_hours(1), dice);
        let allowed = match &reaction {
            ServerReaction::Fault(_) => true,
            ServerReaction::Answer { status: 408 | 429 | 500..=599, replayed, .. } => !replayed,
            ServerReaction::Answer { status: 202, processing, .. } => *processing,
            ServerReaction::Answer { status: 409, .. } => rules.profile != Profile::Ichido,
            ServerReaction::Answer { .. } => false,
        };
        let is_again = matches!(steps[0].decided.next, NextStep::Retry { .. });
        prop_assert!(allowed || !is_again);
    }

    /// A hundred consecutive calls with one budget.
    #[test]
    fn retries_never_exceed_the_budget(
        rules in rules(),
        calls in proptest::collection::vec(proptest::collection::vec(reaction(), 1..6), 1..100),
        capacity in 0_u32..2_000,
        earned_per_success in 0_u32..200,
    ) {
        let settings = BudgetSettings { capacity, earned_per_success };
        let mut budget = Some(Budget::full(settings));
        let (mut retries, mut successes) = (0_u32, 0_u32);
        for reaction in calls {
            let mut attempts = AttemptHistory::NONE;
            for reaction in reaction {
                let context = DecisionContext { now: NOW, left: Duration::from_hours(1), budget };
                let decided = reaction.see(|seen| decide(&rules, Safety::Keyed, attempts, seen, context, 0.0));
                budget = decided.budget;
                successes += u32::from(decided.next == NextStep::Done && attempts.failed == 0);
                let NextStep::Retry { attempts: so_far, .. } = decided.next else { break };
                retries += so_far.failed - attempts.failed;
                attempts = so_far;
            }
        }
        prop_assert!(100 * retries <= capacity + successes * earned_per_success);
    }
}
